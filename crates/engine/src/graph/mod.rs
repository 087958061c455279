//! Graphs larger than memory: lists of neighbours on disk, what is known of each vertex in memory (FlashGraph, Zheng 2017,
//! chapter 3).
//!
//! This is the live half: what is read follows from what was found. It works in memory that is set aside in the session's
//! ledger, and results have the same bits at every number of threads.

mod batch;
mod bits;
mod build;
mod components;
mod levels;
mod program;
mod sweep;

pub use batch::{Chosen, WeightIndex};
pub use bits::Bits;
pub use build::build;
pub use components::{components, COMPONENTS_BYTES};
pub use levels::{Levels, UNMET};
pub use program::{run, Graph, Iteration, Outbox, VertexProgram};
pub use sweep::{least_memory, List, Lists, Means, Round, Scratch, Sweep, Wanted, Watch};
