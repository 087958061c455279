//! Programs are played here: worker threads and asynchronous I/O, under one ledger.
//!
//! Rooms stand in a row: `compute ← session ← play ← prepare ← drive`.
//!
//! Uses all other rooms. Start with `drive/chain.rs` for stages, with `play/player.rs` for one program.

mod compute;
mod drive;
mod play;
mod prepare;
mod session;

pub use drive::{is_begun_for, timeline, Chain, Outcome, ProgramTrace, SweepPoint};
pub use play::player::{PlayableRun, Played, Player, ThreadPlayer};
pub use play::trace::TraceLevel;
pub use prepare::program::PreparedProgram;
pub use prepare::report;
pub use session::estimate::TimeBand;
pub use session::progress::{Doing, ProgressReport, StageReport};
pub use session::residency::KeptArray;
pub use session::{Session, SessionOptions, Target};
