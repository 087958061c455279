//! Reading lists of neighbours: which are asked for, in what batches, with what memory and threads.
//!
//! Uses `task` and `expr` of the rooms below, no other room of graphs. Start with `sweep.rs`.

pub mod activity;
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
pub mod resources;
pub mod selection;
pub mod sums;
pub mod sweep;
