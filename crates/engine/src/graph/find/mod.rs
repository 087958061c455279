//! Algorithms, one file each, named for the algorithm.
//!
//! Uses `read` and `program`; an algorithm may use another. Start with `components.rs`, a sweep over all lists.
//! `build.rs`, `coarse.rs` and `strength.rs` serve several algorithms.

pub mod betweenness;
pub mod bfs;
pub mod bfs_kept;
pub mod bfs_levels;
pub mod build;
pub mod coarse;
pub mod components;
pub mod core_numbers;
pub mod label_propagation;
pub mod louvain;
pub mod pagerank;
pub mod pagerank_deltas;
pub mod scan_statistics;
pub mod shortest_paths;
pub mod strength;
pub mod strong_components;
pub mod topological;
pub mod triangles;
