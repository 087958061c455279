//! A program played: one thread issues its instructions, workers compute, I/O threads read and write.
//!
//! Uses `compute` and `session`. Start with `player.rs`.

pub mod player;
pub mod stage;
pub mod state;
pub mod trace;
pub mod transfers;
pub mod worker;
