//! Reading lists of neighbours: which are asked for, in what batches, with what memory and threads.
//!
//! Uses `live` and the rooms below, no other room of graphs. Start with `sweep.rs`, of what algorithms say of themselves with
//! `algorithm.rs`.

pub mod algorithm;
pub mod asked;
pub mod batch;
pub mod bits;
pub mod frontier;
pub mod gaps;
pub mod heading;
pub mod lists;
pub mod long;
pub mod lookup;
pub mod memory;
pub mod queue;
pub mod selection;
pub mod stored;
pub mod sums;
pub mod sweep;
