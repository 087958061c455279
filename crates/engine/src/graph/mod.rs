//! Graphs larger than memory: lists of neighbours on disk, what is known of each vertex in memory (FlashGraph, Zheng 2017,
//! chapter 3).
//!
//! Live work: what is read follows from what was found. An algorithm says its memory for each vertex and what it reads
//! (`read/algorithm.rs`); results have the same bits at every number of threads. Rooms: `read ← program ← find`.
//!
//! Uses `live`, `sparse` and the rooms below. Start with `program/run.rs`, then `find/core_numbers.rs`; or `read/sweep.rs`, then
//! `find/bfs.rs`.

mod find;
mod program;
mod read;

pub use find::betweenness::{betweenness, betweenness_of, BETWEENNESS_BYTES};
pub use find::bfs::{levels, BreadthFirst, UNMET};
pub use find::build::BuildGraph;
pub use find::coarse::Coarse;
pub use find::components::{components, components_of};
pub use find::core_numbers::{core_numbers, CoreState, Peeling};
pub use find::label_propagation::{independent, independent_set, label_propagation, spread};
pub use find::louvain::{louvain, louvain_communities, Louvain};
pub use find::pagerank::{ranks, Ranking};
pub use find::pagerank_deltas::{page_rank, ranks_by_deltas, Deltas};
pub use find::scan_statistics::{scan, scan_statistics, Densest};
pub use find::shortest_paths::{distances, Paths};
pub use find::strength::Strength;
pub use find::strong_components::{strong_components, strong_components_of};
pub use find::topological::{topological_order, GenerationState, Generations};
pub use find::triangles::{clustering, clustering_of, triangles, triangles_of};
pub use program::combine::{Combine, MessageNumber};
pub use program::mail::Mail;
pub use program::requests::Requests;
pub use program::run::{program_bytes, run, Delivery, Graph, Outbox, VertexProgram};
pub use read::algorithm::GraphAlgorithm;
pub use read::asked::{Degrees, PartsOfLists, WholeLists};
pub use read::batch::{VertexSet, WeightIndex};
pub use read::bits::Bits;
pub use read::frontier::Frontier;
pub use read::heading::Heading;
pub use read::lists::Lists;
pub use read::lookup::{loops, loops_of, mean_weight, weights, weights_of, ListRequest, NeighbourLists};
pub use read::memory::{least_memory, least_memory_of_parts};
pub use read::selection::{List, ListScratch, ListSelection, PartOfList};
pub use read::stored::StoredGraph;
pub use read::sweep::{Round, Sweep};
