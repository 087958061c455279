//! The header, read without trust.

use crc32c::crc32c;
use outcore_dtype::DType;

use crate::base::page::PAGE;
use crate::base::words::{dtype_named, u32_at, u64_at};

const MARK: &[u8; 8] = b"OCGRAPHS";
const VERSION: u32 = 1;
const DIRECTED: u32 = 1;
const PLACES: usize = 48;
const PLACE_BYTES: usize = 80;
const END: usize = PLACES + 2 * PLACE_BYTES;
/// Bytes of the header that say something.
pub(super) const HEADER_BYTES: usize = END + 4;
/// Bytes that say of a large list which it is, and how long.
pub(super) const LARGE_BYTES: u64 = 12;

/// What a graph is, without its edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphShape {
    pub vertices: u64,
    /// Neighbours in all lists of one direction: an undirected edge is in two lists.
    pub edges: u64,
    /// Whether there are lists of those that edges come from beside those that they lead to.
    pub directed: bool,
    /// Of the weights, if there are any.
    pub weights: Option<DType>,
}

/// Where in the file the parts of a direction lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SectionPlaces {
    pub weights: u64,
    pub lists: u64,
    pub list_bytes: u64,
    pub index: u64,
    pub large_lists: u64,
    pub degrees: u64,
    pub large_degrees: u64,
    pub checksums: u64,
    /// Of index, degrees and checksums.
    pub sums: [u32; 3],
}

impl SectionPlaces {
    fn parse(bytes: &[u8]) -> SectionPlaces {
        let word = |at: usize| u64_at(bytes, 8 * at);
        SectionPlaces {
            weights: word(0),
            lists: word(1),
            list_bytes: word(2),
            index: word(3),
            large_lists: word(4),
            degrees: word(5),
            large_degrees: word(6),
            checksums: word(7),
            sums: [64, 68, 72].map(|at| u32_at(bytes, at)),
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        let words = [
            self.weights,
            self.lists,
            self.list_bytes,
            self.index,
            self.large_lists,
            self.degrees,
            self.large_degrees,
            self.checksums,
        ];
        for (at, word) in words.iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, sum) in self.sums.iter().enumerate() {
            bytes[64 + 4 * at..68 + 4 * at].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// Bytes of the index and of the degrees; nothing where that cannot be.
    pub fn index_bytes(&self, vertices: u64) -> Option<(u64, u64)> {
        let of = |large: u64| large.checked_mul(LARGE_BYTES)?.checked_add(vertices);
        Some((of(self.large_lists)?, of(self.large_degrees)?))
    }

    /// Pages of weights and of lists.
    pub fn pages(&self, shape: &GraphShape) -> Option<(u64, u64)> {
        let item = shape.weights.map_or(0, |dtype| dtype.size() as u64);
        let weights = shape.edges.checked_mul(item)?;
        Some((weights.div_ceil(PAGE as u64), self.list_bytes.div_ceil(PAGE as u64)))
    }

    /// Whether every part lies within the file.
    fn is_inside(&self, shape: &GraphShape, file_bytes: u64) -> Option<()> {
        let ((index, degrees), (weights, lists)) = (self.index_bytes(shape.vertices)?, self.pages(shape)?);
        let page = PAGE as u64;
        let parts = [
            (self.weights, weights.checked_mul(page)?),
            (self.lists, lists.checked_mul(page)?),
            (self.index, index),
            (self.degrees, degrees),
            (self.checksums, weights.checked_add(lists)?.checked_mul(4)?),
        ];
        let inside = parts
            .iter()
            .all(|(at, bytes)| *at >= page && at.checked_add(*bytes).is_some_and(|end| end <= file_bytes));
        (inside && self.weights.is_multiple_of(page) && self.lists.is_multiple_of(page)).then_some(())
    }
}

/// What a header says.
#[derive(Clone, Debug)]
pub(super) struct GraphHeader {
    pub shape: GraphShape,
    /// One for each direction.
    pub places: Vec<SectionPlaces>,
}

impl GraphHeader {
    pub fn parse(bytes: &[u8], file_bytes: u64) -> Result<GraphHeader, String> {
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(MARK) {
            return Err("not a graph of outcore: it does not begin with OCGRAPHS".into());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!(
                "version {version} of the format; this outcore reads version {VERSION}"
            ));
        }
        if crc32c(&bytes[..END]) != u32_at(bytes, END) {
            return Err("the header's checksum does not agree with it".into());
        }
        let weights =
            dtype_named(&bytes[32..PLACES], "").map_err(|name| format!("weights of the unknown type {name:?}"))?;
        let shape = GraphShape {
            vertices: u64_at(bytes, 16),
            edges: u64_at(bytes, 24),
            directed: u32_at(bytes, 12) & DIRECTED != 0,
            weights,
        };
        shape.check()?;
        let places: Vec<SectionPlaces> = (0..1 + usize::from(shape.directed))
            .map(|at| SectionPlaces::parse(&bytes[PLACES + at * PLACE_BYTES..]))
            .collect();
        if places.iter().any(|place| place.is_inside(&shape, file_bytes).is_none()) {
            return Err(format!(
                "truncated: {} vertices and {} edges do not lie in its {file_bytes} bytes",
                shape.vertices, shape.edges
            ));
        }
        Ok(GraphHeader { shape, places })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MARK.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((u32::from(self.shape.directed) * DIRECTED).to_le_bytes());
        bytes.extend(self.shape.vertices.to_le_bytes());
        bytes.extend(self.shape.edges.to_le_bytes());
        bytes.extend(
            self.shape
                .weights
                .map_or(String::new(), |dtype| dtype.to_string())
                .as_bytes(),
        );
        bytes.resize(END, 0);
        for (at, places) in self.places.iter().enumerate() {
            places.write(&mut bytes[PLACES + at * PLACE_BYTES..]);
        }
        let checksum = crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes.resize(PAGE, 0);
        bytes
    }
}

impl GraphShape {
    pub(super) fn check(&self) -> Result<(), String> {
        let GraphShape { vertices, edges, .. } = self;
        if *vertices >= u64::from(u32::MAX) || *edges >= 1 << 56 {
            return Err(format!(
                "{vertices} vertices and {edges} edges; fewer than 2^32 - 1 and 2^56 can be addressed"
            ));
        }
        Ok(())
    }
}

/// The header of a file that is all in memory: what a fuzzer looks at.
///
/// # Errors
/// Why the bytes are no graph.
pub fn parse_graph(bytes: &[u8]) -> Result<GraphShape, String> {
    GraphHeader::parse(bytes, bytes.len() as u64).map(|header| header.shape)
}
