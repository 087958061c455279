//! Memory that the orderings take at most, by what each allocates.

/// Room of one thread for small parts and leaves, and its stack of parts.
const THREAD: u64 = 2 << 20;
/// The table of hashes, and lists of at least so many entries.
const SPARE: u64 = 1 << 19;

/// Upper bound of the bytes that [`dissect`](crate::dissect) has allocated at any moment, the result included, for so
/// many vertices and neighbours in all lists.
pub fn dissect_bytes(vertices: u64, directed: u64, threads: usize) -> u64 {
    // Labels, starts, weights; neighbours.
    let reduced = 16 * vertices + 4 * directed;
    // The order, and numbers in components.
    let order = 8 * vertices;
    // Starts, weights; neighbours. Parts at a time are disjoint.
    let parts = 12 * vertices + 4 * directed;
    // Coarser graphs in their budget, at 6 bytes a neighbour and 16 a vertex with its map; with them a refinement.
    let levels = 58 * vertices + 17 * directed;
    reduced + order + parts + levels + THREAD * threads.max(1) as u64 + SPARE
}

/// Upper bound of the bytes that [`min_degree`](crate::min_degree) has allocated at any moment, the result included,
/// for so many vertices and neighbours in all lists.
pub fn min_degree_bytes(vertices: u64, directed: u64) -> u64 {
    // Labels and weights of the reduction; nodes, weights, pivots and degree lists of the quotient graph; the result.
    let vertices_each = 8 + 24 + 4 + 4 + 12 + 8;
    // Lists of the quotient graph, of a fifth more room than edges, and one word a vertex.
    vertices_each * vertices + 4 * (directed + directed / 5 + vertices) + SPARE
}

/// Upper bound of the bytes that [`match_entries`](crate::match_entries) has allocated at any moment, the result
/// included, for so many rows, columns and entries.
pub fn matching_bytes(rows: u64, columns: u64, entries: u64) -> u64 {
    // Costs.
    let entries_each = 8;
    // Duals and states of the search, and its four lists; after the search scales take the place of the lists.
    let rows_each = 32 + 16;
    // Duals, which become scales, and matched rows; where the first entry not yet looked at is.
    let columns_each = 12 + 4;
    entries_each * entries + rows_each * rows + columns_each * columns + SPARE
}

/// The same of [`symmetric_matching`](crate::symmetric_matching), for so many vertices, and entries of both triangles.
pub fn symmetric_matching_bytes(vertices: u64, entries: u64) -> u64 {
    // Vertices of the structurally nonsingular part. Scales, partners and cycles come when costs and states are gone.
    matching_bytes(vertices, vertices, entries) + vertices
}

/// Upper bound of the bytes that [`compress`](crate::compress) has allocated at any moment, the result included, for so
/// many vertices and neighbours in all lists.
pub fn compress_bytes(vertices: u64, directed: u64) -> u64 {
    // Labels; starts and members; neighbours.
    (4 + 16) * vertices + 4 * directed + 16
}
