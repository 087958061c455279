//! The engine of outcore: typed expressions, planned into passes, ordered, placed in memory ahead of time, and played.
//!
//! Rooms stand in a row and use only what is to their left:
//! `task ← expr ← strips ← ops ← sort ← linalg ← sparse ← solve ← loops ← recipes ← plan ← schedule ← place ← run ← live ← ingest ← spgemm ← graph`.
#![forbid(unsafe_code)]

pub mod analyze;
pub mod cancel;
pub mod error;
pub mod expr;
pub mod graph;
pub mod ingest;
pub mod linalg;
pub mod live;
pub mod loops;
pub mod ops;
pub mod place;
pub mod plan;
pub mod recipes;
pub mod run;
pub mod schedule;
pub mod solve;
pub mod sort;
pub mod sparse;
pub mod spgemm;
pub mod strips;
pub mod task;

pub use error::{EngineError, FunctionError};
pub use expr::{Expr, Node, Op};
