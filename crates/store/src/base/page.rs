/// The unit of alignment for memory and for direct I/O.
pub const PAGE: usize = 4096;
