//! Graphs larger than memory: lists of neighbours on disk, what is known of each vertex in memory (FlashGraph, Zheng 2017,
//! chapter 3).
//!
//! This is the live half: what is read follows from what was found. It works in memory that is set aside in the session's
//! ledger, and results have the same bits at every number of threads. Rooms: `read ← program ← find`.
//!
//! Uses `sparse` and the rooms below. Start with `program/run.rs`, then `find/core_numbers.rs`; or `read/sweep.rs`, then
//! `find/bfs.rs`.

mod find;
mod program;
mod read;

pub use find::betweenness::{betweenness, BETWEENNESS_BYTES};
pub use find::bfs::{BreadthFirst, LEVELS_BYTES, UNMET};
pub use find::build::build;
pub use find::coarse::Coarse;
pub use find::components::{components, COMPONENTS_BYTES};
pub use find::core_numbers::{CoreState, Peeling};
pub use find::label_propagation::{independent, labels_bytes, spread, INDEPENDENT_BYTES};
pub use find::louvain::{louvain, Louvain, LOUVAIN_BYTES};
pub use find::pagerank::{ranks, Ranking, RANKS_BYTES};
pub use find::pagerank_deltas::{ranks_by_deltas, Deltas, DELTAS_BYTES};
pub use find::scan_statistics::{scan, Densest, SCAN_BYTES};
pub use find::shortest_paths::{Paths, PATHS_BYTES};
pub use find::strength::{Strength, STRENGTH_BYTES};
pub use find::strong_components::{strong_components, STRONG_BYTES};
pub use find::topological::{GenerationState, Generations};
pub use find::triangles::{clustering, triangles, triangles_bytes};
pub use program::combine::{Combine, MessageNumber};
pub use program::mail::Mail;
pub use program::requests::Requests;
pub use program::run::{run, Delivery, Graph, Outbox, VertexProgram};
pub use read::activity::{Activity, Iterations};
pub use read::batch::{VertexSet, WeightIndex};
pub use read::bits::Bits;
pub use read::frontier::Frontier;
pub use read::heading::Heading;
pub use read::lists::Lists;
pub use read::lookup::{loops, mean_weight, weights, ListRequest, NeighbourLists};
pub use read::memory::{for_parts, least_memory, least_memory_of_parts, most_memory, portion_bytes};
pub use read::resources::{Frames, Resources, Watch, PORTION_PAGES};
pub use read::selection::{List, ListScratch, ListSelection, PartOfList};
pub use read::sweep::{Round, Sweep};
