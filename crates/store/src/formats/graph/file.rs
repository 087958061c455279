//! An open graph: its indexes in memory, its lists and weights on disk.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::crc32c;
use outcore_coding::lists::{IndexParts, ListIndex};
use outcore_coding::Malformed;

use super::header::{GraphHeader, GraphShape, SectionPlaces, HEADER_BYTES, LARGE_BYTES};
use crate::array::region::Region;
use crate::array::rowmajor::RowMajor;
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::cache::{CachedFile, PageCache, PageRun};
use crate::io::{File, Mode, PlacedPart};
use crate::{AlignedBuffer, Io, StoreError};

/// Bytes of the memory of degrees for each vertex, and for each that has many neighbours: as they are stored, twice at a
/// time, and as they are looked up.
const DEGREE_BYTES: u64 = 2;
const LARGE_DEGREE_BYTES: u64 = 4 * LARGE_BYTES;

/// Which lists of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Of the vertices that edges lead to.
    Out,
    /// Of the vertices that edges come from.
    In,
}

/// What is read in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Lists,
    Weights,
}

/// The lists of one direction.
#[derive(Debug)]
pub struct Section {
    pub index: ListIndex,
    places: SectionPlaces,
    /// Of pages of weights, then of pages of lists.
    checksums: Vec<u32>,
    weight_pages: u64,
    list_pages: u64,
}

impl Section {
    /// Pages of lists and of weights.
    pub fn pages(&self) -> u64 {
        self.weight_pages + self.list_pages
    }

    /// Where in the file a part begins, and how many pages it has.
    pub fn part(&self, part: Part) -> (u64, u64) {
        match part {
            Part::Lists => (self.places.lists, self.list_pages),
            Part::Weights => (self.places.weights, self.weight_pages),
        }
    }

    fn checksums(&self, part: Part, pages: Range<u64>) -> &[u32] {
        let first = match part {
            Part::Lists => self.weight_pages,
            Part::Weights => 0,
        };
        &self.checksums[(first + pages.start) as usize..(first + pages.end) as usize]
    }
}

/// Pages that are read in one go, and where they go.
#[derive(Clone, Debug)]
pub struct PlacedRun {
    pub part: Part,
    pub pages: Range<u64>,
    /// Byte of the frame.
    pub place: usize,
}

/// A graph's pages by way of a cache.
#[derive(Clone, Copy)]
pub struct Caching<'a> {
    pub file: &'a CachedFile,
    /// Whether the cache has what it had not, from then on.
    pub keeps: bool,
}

/// An open graph. What it holds in memory is said by [`GraphFile::memory_bytes`].
pub struct GraphFile {
    path: PathBuf,
    stamp: Stamp,
    file: File,
    shape: GraphShape,
    sections: Vec<Section>,
    identity: String,
}

impl GraphFile {
    /// Opens a graph and reads its indexes.
    ///
    /// # Errors
    /// One line: not such a file, one that is cut off, or one whose checksums do not agree.
    pub fn open(path: &Path, io: &Io) -> Result<Arc<GraphFile>, StoreError> {
        io.open(path, Mode::Read)?; // which says it best where there is none
        let stamp = Stamp::settled(path)?;
        let malformed = |reason: String| StoreError::format(path, reason);
        if stamp.bytes < PAGE as u64 {
            return Err(malformed("not a graph of outcore: shorter than its header".into()));
        }
        let file = stamp.open(path, io)?;
        let read = |offset: u64, bytes: u64| read_bytes(&file, stamp.bytes, offset, bytes, io);
        let header = GraphHeader::parse(&read(0, HEADER_BYTES as u64)?, stamp.bytes).map_err(malformed)?;
        let mut sections = vec![];
        for places in header.places {
            let (index_bytes, _) = places.index_bytes(header.shape.vertices).expect("it was looked at");
            let (weight_pages, list_pages) = places.pages(&header.shape).expect("it was looked at");
            let index = read(places.index, index_bytes)?;
            let checksums = read(places.checksums, 4 * (weight_pages + list_pages))?;
            if crc32c(&index) != places.sums[0] || crc32c(&checksums) != places.sums[2] {
                return Err(malformed("the checksum of its index does not agree with it".into()));
            }
            let index = parse_index(index, header.shape.vertices).map_err(|Malformed(what)| malformed(what.into()))?;
            if index.total_bytes() != places.list_bytes {
                return Err(malformed(format!(
                    "the index tells of {} bytes of lists, the header of {}",
                    index.total_bytes(),
                    places.list_bytes
                )));
            }
            let words = checksums.chunks_exact(4);
            sections.push(Section {
                index,
                checksums: words
                    .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                    .collect(),
                places,
                weight_pages,
                list_pages,
            });
        }
        Ok(Arc::new(GraphFile {
            path: path.to_path_buf(),
            file,
            identity: stamp.name(path),
            stamp,
            shape: header.shape,
            sections,
        }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn shape(&self) -> &GraphShape {
        &self.shape
    }

    /// Equal where the bytes are.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn file_bytes(&self) -> u64 {
        self.stamp.bytes
    }

    /// Bytes of memory that indexes and checksums take.
    pub fn memory_bytes(&self) -> u64 {
        let of = |section: &Section| {
            let large = section.places.large_lists;
            ListIndex::memory_bytes(self.shape.vertices, large, section.places.list_bytes)
                + 4 * section.checksums.len() as u64
        };
        self.sections.iter().map(of).sum()
    }

    /// Bytes of memory that the degrees of a direction take, while they are read the most.
    pub fn degrees_bytes(&self, direction: Direction) -> u64 {
        let large = self.section(direction).places.large_degrees;
        DEGREE_BYTES * self.shape.vertices + LARGE_DEGREE_BYTES * large
    }

    /// The lists of a direction; those of an undirected graph are the same both ways.
    pub fn section(&self, direction: Direction) -> &Section {
        match direction {
            Direction::In => self.sections.last().expect("one at least"),
            Direction::Out => &self.sections[0],
        }
    }

    /// That its bytes cannot be a graph, and why.
    pub fn malformed(&self, reason: impl Into<String>) -> StoreError {
        StoreError::format(&self.path, reason)
    }

    /// Whether the file is what it was when it was opened.
    ///
    /// # Errors
    /// It is not.
    pub fn check_unchanged(&self) -> Result<(), StoreError> {
        self.stamp.check(&self.path, |stamp| stamp)
    }

    /// The number of neighbours of each vertex, read from disk.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it says.
    pub fn degrees(&self, direction: Direction, io: &Io) -> Result<ListIndex, StoreError> {
        let places = &self.section(direction).places;
        let (_, bytes) = places.index_bytes(self.shape.vertices).expect("it was looked at");
        let bytes = read_bytes(&self.file, self.stamp.bytes, places.degrees, bytes, io)?;
        if crc32c(&bytes) != places.sums[1] {
            return Err(self.malformed("the checksum of its degrees does not agree with them"));
        }
        let degrees = parse_index(bytes, self.shape.vertices).map_err(|Malformed(what)| self.malformed(what))?;
        if degrees.total_bytes() != self.shape.edges {
            return Err(self.malformed(format!(
                "the degrees come to {} edges, the header tells of {}",
                degrees.total_bytes(),
                self.shape.edges
            )));
        }
        Ok(degrees)
    }

    /// Bytes that reading the degrees of a direction takes.
    pub fn degrees_read_bytes(&self, direction: Direction) -> u64 {
        let places = &self.section(direction).places;
        let (_, bytes) = places.index_bytes(self.shape.vertices).expect("it was looked at");
        let array = run_of(self.stamp.bytes, places.degrees, bytes);
        match bytes {
            0 => 0,
            _ => array.read_bytes(&Region::full(&array.shape)),
        }
    }

    /// The file by way of a cache: each page is held against its checksum when it comes.
    ///
    /// # Errors
    /// The file cannot be opened, or the cache's pages are not those of graphs.
    pub fn open_in(self: &Arc<Self>, cache: &Arc<PageCache>) -> Result<CachedFile, StoreError> {
        if cache.page_bytes() != PAGE {
            let reason = format!(
                "a graph's pages are of {PAGE} bytes, the cache's of {}",
                cache.page_bytes()
            );
            return Err(StoreError::unsupported(&self.path, reason));
        }
        let graph = self.clone();
        let check = move |offset: u64, page: &[u8]| graph.check_page(offset, page);
        cache.open_checked(&self.path, Box::new(check))
    }

    /// Holds a page of lists or weights against its checksum.
    fn check_page(&self, offset: u64, page: &[u8]) -> Result<(), StoreError> {
        let parts = self.sections.iter().flat_map(|section| {
            let parts = [Part::Weights, Part::Lists];
            parts.map(|part| (section, part))
        });
        for (section, part) in parts {
            let (begin, pages) = section.part(part);
            let number = offset.wrapping_sub(begin) / PAGE as u64;
            if offset >= begin && number < pages && section.checksums(part, number..number + 1) != [crc32c(page)] {
                return Err(self.other_page(offset));
            }
        }
        Ok(())
    }

    /// Why a page is not what was written.
    fn other_page(&self, offset: u64) -> StoreError {
        let other = || {
            self.malformed(format!(
                "the page at byte {offset} is not what was written: its checksum does not agree"
            ))
        };
        self.check_unchanged().err().unwrap_or_else(other)
    }

    /// Reads runs of pages, each to its place in `frame`, where they ascend: by way of the cache, if there is one, all at once. Each
    /// page is held against its checksum, here or by the cache.
    ///
    /// # Errors
    /// The file cannot be read, or has changed; a page is not what was written.
    pub fn read_pages(
        &self,
        direction: Direction,
        runs: &[PlacedRun],
        frame: AlignedBuffer,
        cache: Option<Caching<'_>>,
        io: &Io,
    ) -> Result<AlignedBuffer, StoreError> {
        let section = self.section(direction);
        let offset = |run: &PlacedRun| section.part(run.part).0 + run.pages.start * PAGE as u64;
        let Some(Caching { file: cache, keeps }) = cache else {
            let parts = runs.iter().map(|run| PlacedPart {
                place: run.place,
                bytes: (run.pages.end - run.pages.start) as usize * PAGE,
                offset: offset(run),
            });
            let parts: Vec<PlacedPart> = parts.collect();
            return io.read_parts(&self.file, frame, &parts, |number, outcome| {
                let (run, bytes) = (&runs[number], outcome?);
                let sums = section.checksums(run.part, run.pages.clone());
                let right = |(page, sum): (&[u8], &u32)| crc32c(page) == *sum;
                match bytes.chunks_exact(PAGE).zip(sums).position(|page| !right(page)) {
                    Some(wrong) => Err(self.other_page(offset(run) + (wrong * PAGE) as u64)),
                    None => Ok(()),
                }
            });
        };
        if !cache.is_checked() {
            let reason = "its pages were not looked at when they came to the page cache";
            return Err(StoreError::unsupported(&self.path, reason));
        }
        let runs = runs.iter().map(|run| PageRun {
            first: offset(run) / PAGE as u64,
            pages: run.pages.end - run.pages.start,
            place: run.place,
        });
        cache.fill(&runs.collect::<Vec<_>>(), frame, keeps)
    }
}

/// A run of bytes of the file as an array.
fn run_of(file_bytes: u64, offset: u64, bytes: u64) -> RowMajor {
    RowMajor {
        base: offset,
        shape: vec![bytes],
        item: 1,
        file_bytes,
    }
}

fn read_bytes(file: &File, file_bytes: u64, offset: u64, bytes: u64, io: &Io) -> Result<Vec<u8>, StoreError> {
    if bytes == 0 {
        return Ok(vec![]);
    }
    let array = run_of(file_bytes, offset, bytes);
    let region = Region::full(&array.shape);
    let memory = AlignedBuffer::new(array.frame_bytes(&region).max(PAGE));
    let mut frame = memory.map_err(|cause| StoreError::io(file.path(), offset, "map memory", cause))?;
    let at = array.read(file, &region, &mut frame, io)?;
    Ok(frame[at..at + bytes as usize].to_vec())
}

fn parse_index(mut bytes: Vec<u8>, vertices: u64) -> Result<ListIndex, Malformed> {
    let large = bytes[vertices as usize..].chunks_exact(LARGE_BYTES as usize);
    let large = large.map(|large| {
        let (vertex, length) = large.split_at(4);
        let vertex = u32::from_le_bytes([vertex[0], vertex[1], vertex[2], vertex[3]]);
        (vertex, u64::from_le_bytes(*length.first_chunk().expect("twelve bytes")))
    });
    let large = large.collect();
    bytes.truncate(vertices as usize);
    ListIndex::new(IndexParts { lengths: bytes, large })
}
