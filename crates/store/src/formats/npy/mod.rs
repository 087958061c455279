//! `.npy` files as sources and sinks.

mod format;
mod header;
mod sink;
mod source;

pub(crate) use format::Npy;
#[cfg(test)]
pub(crate) use header::header_page;
pub use header::{parse_npy_header, NpyHeader};
pub(crate) use sink::first_page;
pub use source::{open_npy, open_raw, NpyFile};
