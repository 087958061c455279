//! Memory that the orderings take at most.

/// Bytes that `dissect` has allocated at any moment, at most.
pub fn dissect_bytes(vertices: u64, directed: u64, threads: usize) -> u64 {
    160 * vertices + 60 * directed + (threads as u64) * (1 << 22)
}

/// Bytes that `min_degree` has allocated at any moment, at most.
pub fn min_degree_bytes(vertices: u64, directed: u64) -> u64 {
    80 * vertices + 5 * directed + (1 << 20)
}
