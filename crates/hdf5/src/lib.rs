//! Metadata of HDF5 files, which NetCDF-4, `.h5ad` and MATLAB 7.3 files are as well: objects, and places of data.
//!
//! After the HDF5 File Format Specification, version 4.0 (The HDF Group), superblocks 0 to 3. Pure functions over a
//! [`FileBytes`]: no file is opened, no thread is started, and no data are read. Start with [`Hdf5File`], which gives
//! [`DatasetFacts`], and [`chunks`]. `base` has bytes and fields; `trees` and `heaps` are how the format stores lists;
//! `messages` are the parts of objects; `objects` puts them together, and `chunks` goes through the indices of chunks.
//! Each uses only those before it.
//!
//! **Invariants.**
//! 1. Any bytes give an answer or an error, never a panic. All arithmetic on numbers of a file is checked.
//! 2. Ranges are held against the length of the file before they are read, and no block in memory is longer than the file.
//! 3. Lists grow after [`FileBytes::keep`] has agreed, which is also asked before each block, so that a caller can end the work.
//! 4. A walk is at a block once (`base/view.rs`), and no deeper than constants say.
//!
//! Refused by name: external and virtual data, external links, files of several parts, filtered heaps, links and
//! references of unknown kinds, versions after those of the specification.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod base;
mod chunks;
mod heaps;
mod messages;
mod objects;
mod trees;

pub use base::{FileBytes, Hdf5Error};
pub use chunks::{chunks, ChunkPlace};
pub use messages::{
    BitRange, ByteOrder, Charset, CompoundField, Datatype, EnumerationMember, Filter, FloatFormat, ReferenceKind,
    TextPadding, TypeClass,
};
pub use objects::{
    Attribute, AttributeValues, DataLayout, DatasetFacts, GroupListing, GroupMember, Hdf5File, Hdf5Object, MemberKind,
    StoredChunks,
};
