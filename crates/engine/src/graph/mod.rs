//! Graphs larger than memory: lists of neighbours on disk, what is known of each vertex in memory (FlashGraph, Zheng 2017,
//! chapter 3).
//!
//! This is the live half: what is read follows from what was found. It works in memory that is set aside in the session's
//! ledger, and results have the same bits at every number of threads.

mod activity;
mod batch;
mod bits;
mod build;
mod centrality;
mod coarse;
mod combine;
mod components;
mod cores;
mod deltas;
mod frontier;
mod gaps;
mod heading;
mod kept;
mod labels;
mod layers;
mod levels;
mod lists;
mod long;
mod louvain;
mod mail;
mod means;
mod order;
mod paths;
mod program;
mod ranking;
mod requests;
mod scan;
mod strength;
mod strong;
mod sums;
mod sweep;
mod triangles;
mod wanted;

pub use activity::{Activity, Iterations};
pub use batch::{Chosen, WeightIndex};
pub use bits::Bits;
pub use build::build;
pub use centrality::{betweenness, BETWEENNESS_BYTES};
pub use coarse::Coarse;
pub use combine::{Combine, Number};
pub use components::{components, COMPONENTS_BYTES};
pub use cores::{Left, Peeling};
pub use deltas::{ranks_by_deltas, Deltas, DELTAS_BYTES};
pub use frontier::Frontier;
pub use heading::Heading;
pub use labels::{independent, labels_bytes, spread, INDEPENDENT_BYTES};
pub use levels::{Search, LEVELS_BYTES, UNMET};
pub use lists::{loops, mean_weight, weights, Asked, Found};
pub use louvain::{louvain, Louvain, LOUVAIN_BYTES};
pub use mail::Mail;
pub use means::{Frames, Means, Watch, PORTION_PAGES};
pub use order::{Generations, Place};
pub use paths::{Paths, PATHS_BYTES};
pub use program::{run, Delivery, Graph, Outbox, VertexProgram};
pub use ranking::{ranks, Ranking, RANKS_BYTES};
pub use requests::Requests;
pub use scan::{scan, Densest, SCAN_BYTES};
pub use strength::{Strength, STRENGTH_BYTES};
pub use strong::{strong_components, STRONG_BYTES};
pub use sweep::{for_parts, least_memory, least_memory_of_parts, most_memory, portion_bytes, Lists, Round, Sweep};
pub use triangles::{clustering, triangles, triangles_bytes};
pub use wanted::{List, PartOfList, Scratch, Wanted};
