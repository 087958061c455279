//! Writing a graph: the lists of one direction after those of the other, then what tells where they are, then the name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crc32c::{crc32c, crc32c_append};
use outcore_coding::lists::{encode, ListIndex, Vertex};

use super::header::{GraphHeader, GraphShape, SectionPlaces};
use crate::base::page::PAGE;
use crate::durable::partial::{clean_partials, Partial};
use crate::durable::publish::place_all;
use crate::durable::rename::copy_to;
use crate::io::{File, Mode};
use crate::{Io, StoreError};

/// Bytes that are written in one go.
const WRITE_BYTES: usize = 4 << 20;

/// Bytes that go to one place of the file, and the checksums of their pages.
struct ListStream {
    at: u64,
    pending: Vec<u8>,
    checksums: Vec<u32>,
}

impl ListStream {
    fn new(at: u64) -> ListStream {
        ListStream {
            at,
            pending: vec![],
            checksums: vec![],
        }
    }

    /// Writes what is there of whole pages, if it is much.
    fn give(&mut self, file: &File, io: &Io) -> Result<(), StoreError> {
        if self.pending.len() < WRITE_BYTES {
            return Ok(());
        }
        let whole = self.pending.len() / PAGE * PAGE;
        let pages = self.pending[..whole].chunks_exact(PAGE);
        self.checksums.extend(pages.map(crc32c));
        io.write(file, &self.pending[..whole], self.at)?;
        self.at += whole as u64;
        self.pending.drain(..whole);
        Ok(())
    }

    /// Writes the rest, and gives where it ends.
    fn end(&mut self, file: &File, io: &Io) -> Result<u64, StoreError> {
        self.pending.resize(self.pending.len().next_multiple_of(PAGE), 0);
        self.checksums.extend(self.pending.chunks_exact(PAGE).map(crc32c));
        if !self.pending.is_empty() {
            io.write(file, &self.pending, self.at)?;
        }
        self.at += self.pending.len() as u64;
        self.pending.clear();
        Ok(self.at)
    }
}

/// One direction while it is written.
struct ListsUnderWay {
    places: SectionPlaces,
    index: ListIndex,
    degrees: ListIndex,
    lists: ListStream,
    weights: ListStream,
    weights_end: u64,
    edges: u64,
}

/// A file that has no name until it is complete.
pub struct GraphWriter {
    file: File,
    partial: Partial,
    path: PathBuf,
    header: GraphHeader,
    current: Option<ListsUnderWay>,
    list: Vec<u8>,
    written: u64,
}

impl GraphWriter {
    /// Begins a file beside `path`. The number of edges must be known: weights lie before lists.
    ///
    /// # Errors
    /// More vertices than can be; a file of that name that may not be replaced, or one that cannot be made.
    pub fn create(path: &Path, shape: GraphShape, overwrite: bool, io: &Io) -> Result<GraphWriter, StoreError> {
        shape.check().map_err(StoreError::Invalid)?;
        // What processes that are gone left half-done.
        if let Some(folder) = path.parent() {
            clean_partials(folder)?;
        }
        let make = |partial: &Path| io.open(partial, Mode::CreateUnaligned);
        let (partial, file) = Partial::new_in(None, path, overwrite, make)?;
        Ok(GraphWriter {
            file: file.named(path.to_path_buf()),
            partial,
            path: path.to_path_buf(),
            header: GraphHeader { shape, places: vec![] },
            current: None,
            list: vec![],
            written: PAGE as u64,
        })
    }

    /// Bytes of memory that a graph takes while it is written, without those of the list that is written.
    pub fn memory_bytes(shape: &GraphShape) -> u64 {
        let item = shape.weights.map_or(0, |dtype| dtype.size() as u64);
        let pages = (shape.edges.saturating_mul(item + 5)).div_ceil(PAGE as u64);
        // A large list has so many neighbours at least, and a large degree is so many.
        let index = |neighbours| {
            let large = shape.vertices.min(shape.edges / neighbours);
            ListIndex::memory_bytes(shape.vertices, large, shape.edges.saturating_mul(5))
        };
        index(56) + index(255) + 4 * pages + 4 * WRITE_BYTES as u64
    }

    /// Adds the list of the next vertex, with the bytes of its weights if there are any. Neighbours ascend. Behind the last
    /// vertex of a direction comes the first of the other.
    ///
    /// # Errors
    /// Neighbours out of order or outside, weights that are too few, or a file that cannot be written.
    pub fn push(&mut self, neighbours: &[Vertex], weights: &[u8], io: &Io) -> Result<(), StoreError> {
        let shape = self.header.shape.clone();
        let invalid = |what: &str| StoreError::Invalid(format!("graph: {what}"));
        let item = shape.weights.map_or(0, |dtype| dtype.size());
        if weights.len() != neighbours.len() * item {
            return Err(invalid("a list has not as many weights as neighbours"));
        }
        let is_ascending = neighbours.is_sorted();
        if !is_ascending || neighbours.last().is_some_and(|last| u64::from(*last) >= shape.vertices) {
            return Err(invalid("neighbours of a vertex ascend, and are vertices"));
        }
        if self.current.is_none() {
            self.begin(&shape);
        }
        let lists = self.current.as_mut().expect("it was begun");
        if lists.index.len() as u64 >= shape.vertices || lists.edges + neighbours.len() as u64 > shape.edges {
            return Err(invalid("more lists or neighbours than were told"));
        }
        self.list.clear();
        encode(lists.index.len() as Vertex, neighbours, &mut self.list);
        lists.index.push(self.list.len() as u64);
        lists.degrees.push(neighbours.len() as u64);
        lists.edges += neighbours.len() as u64;
        lists.lists.pending.extend_from_slice(&self.list);
        lists.lists.give(&self.file, io)?;
        lists.weights.pending.extend_from_slice(weights);
        lists.weights.give(&self.file, io)?;
        match lists.index.len() as u64 == shape.vertices {
            true => self.end(io),
            false => Ok(()),
        }
    }

    fn begin(&mut self, shape: &GraphShape) {
        let item = shape.weights.map_or(0, |dtype| dtype.size() as u64);
        let page = PAGE as u64;
        let weights = self.written.next_multiple_of(page);
        let weights_end = weights + (shape.edges * item).next_multiple_of(page);
        self.current = Some(ListsUnderWay {
            places: SectionPlaces {
                weights,
                lists: weights_end,
                ..SectionPlaces::default()
            },
            index: ListIndex::default(),
            degrees: ListIndex::default(),
            lists: ListStream::new(weights_end),
            weights: ListStream::new(weights),
            weights_end,
            edges: 0,
        });
    }

    /// Completes a direction.
    fn end(&mut self, io: &Io) -> Result<(), StoreError> {
        let Some(mut lists) = self.current.take() else {
            return Ok(());
        };
        let weights = lists.weights.end(&self.file, io)?;
        if weights != lists.weights_end || lists.edges != self.header.shape.edges {
            return Err(StoreError::Invalid(format!(
                "graph: {} edges came, {} were told",
                lists.edges, self.header.shape.edges
            )));
        }
        self.written = lists.lists.end(&self.file, io)?;
        let places = &mut lists.places;
        places.list_bytes = lists.index.total_bytes();
        (places.index, places.sums[0]) = self.add_index(&lists.index, io)?;
        (places.degrees, places.sums[1]) = self.add_index(&lists.degrees, io)?;
        places.large_lists = lists.index.large().count() as u64;
        places.large_degrees = lists.degrees.large().count() as u64;
        let checksums = lists.weights.checksums.iter().chain(&lists.lists.checksums);
        let checksums: Vec<u8> = checksums.flat_map(|sum| sum.to_le_bytes()).collect();
        (places.checksums, places.sums[2]) = self.add(&checksums, io)?;
        self.header.places.push(lists.places);
        Ok(())
    }

    fn add_index(&mut self, index: &ListIndex, io: &Io) -> Result<(u64, u32), StoreError> {
        let mut large = vec![];
        for (vertex, length) in index.large() {
            large.extend(vertex.to_le_bytes());
            large.extend(length.to_le_bytes());
        }
        let (at, sum) = self.add(index.lengths(), io)?;
        self.add(&large, io)?;
        Ok((at, crc32c_append(sum, &large)))
    }

    /// Writes bytes behind all others; where they are, and their checksum.
    fn add(&mut self, bytes: &[u8], io: &Io) -> Result<(u64, u32), StoreError> {
        let at = self.written;
        for part in bytes.chunks(WRITE_BYTES) {
            io.write(&self.file, part, self.written)?;
            self.written += part.len() as u64;
        }
        Ok((at, crc32c(bytes)))
    }

    /// Completes the file, makes it durable and gives it its name. `labels` is the file of what its vertices were called, if
    /// they were given other numbers: a copy of it becomes `<name>.labels.npy`. Those of a graph that is replaced go with it:
    /// whenever the process dies, a graph that is there has its own labels, once what was left is cleaned up.
    ///
    /// # Errors
    /// ListsUnderWay are missing; it cannot be written, or a name cannot be given. Everything is as it was then.
    pub fn finish(mut self, labels: Option<&Path>, io: &Io) -> Result<GraphShape, StoreError> {
        let shape = self.header.shape.clone();
        if shape.vertices == 0 {
            for _ in 0..1 + usize::from(shape.directed) {
                self.begin(&shape);
                self.end(io)?;
            }
        }
        if self.current.is_some() || self.header.places.len() != 1 + usize::from(shape.directed) {
            return Err(StoreError::Invalid("graph: lists are missing".into()));
        }
        io.write(&self.file, &self.header.bytes(), 0)?;
        // Direct reads of the last page are whole ones.
        self.file.set_len(self.written.next_multiple_of(PAGE as u64))?;
        io.sync(&self.file)?;
        let mut beside = OsString::from(self.path.as_os_str());
        beside.push(".labels.npy");
        if let Some(labels) = labels {
            copy_to(labels, &self.partial.companion(), io)?;
        }
        if !self.partial.publish_with(Path::new(&beside), labels.is_some(), io)? {
            place_all(&[&self.partial], io)?;
        }
        Ok(shape)
    }
}
