//! Programs are played here: worker threads and asynchronous I/O, under one ledger.

mod fused;
mod gather;
mod nesting;
mod player;
pub mod report;
pub mod session;
mod state;
mod task;
mod transfers;
mod tree;
mod value;
mod worker;

pub use player::ProgressReport;
pub use session::{Outcome, Program, Session, SessionOptions, Target};
