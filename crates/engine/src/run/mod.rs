//! Programs are played here: worker threads and asynchronous I/O, under one ledger.

mod budget;
mod estimate;
mod fused;
mod gather;
mod nesting;
mod opening;
mod overhead;
mod planning;
mod player;
mod prepare;
mod product;
mod program;
pub mod report;
pub mod session;
mod state;
mod task;
mod transfers;
mod tree;
mod value;
mod worker;
mod workspace;

pub use player::ProgressReport;
pub use program::{Outcome, Program};
pub use session::{Session, SessionOptions, Target};
