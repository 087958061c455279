//! Zarr arrays as sources and sinks, and groups of them. v2 is read alone, as if its documents were of v3.
//!
//! Chunks without compression take a path of our own past the page cache; the others are read whole and decoded.

mod array;
mod attributes;
mod chunk;
mod codec;
mod document;
mod edges;
mod encoding;
mod files;
mod fill;
mod format;
mod inventory;
mod json;
mod keys;
mod listing;
mod made;
mod metadata;
mod rectilinear;
mod remote;
mod shard;
mod sink;
mod tree;
mod updatable;
mod update;
mod values;
mod version2;
mod written;

pub(crate) use array::find_zarr;
pub(crate) use document::NO_DOCUMENT;
pub(crate) use format::Zarr;
pub(crate) use metadata::parse_grid;
pub use metadata::parse_zarr_json;
