//! `.npy` files as sources and sinks.

mod header;
mod sink;
mod source;

pub use header::{parse_npy_header, NpyHeader};
pub(crate) use sink::NpyPlan;
pub use source::{open_npy, open_raw, NpyFile, RawArray};
