/// The number of a vertex. A graph has fewer than 2^32 - 1 of them: what is known of each is in memory.
pub type Vertex = u32;

/// The place of a section in a file or a list: its first byte, and its length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub offset: u64,
    pub bytes: u64,
}

impl Extent {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}
