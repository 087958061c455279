//! Zarr v3 arrays as sources and sinks.
//!
//! Chunks without compression take a path of our own past the page cache; the others are read whole and decoded.

mod array;
mod codec;
mod fill;
mod inventory;
mod json;
mod keys;
mod listing;
mod made;
mod metadata;
mod shard;
mod sink;

pub(crate) use array::open_zarr;
pub use metadata::parse_zarr_json;
pub(crate) use sink::ZarrPlan;
