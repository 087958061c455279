//! Objects: headers of messages, and groups, datasets, datatypes and attributes out of them.
//!
//! Uses `base`, `trees`, `heaps` and `messages`. Start with `header.rs`, then `file.rs`, which the others serve.

mod attribute;
mod dataset;
mod dimensions;
mod file;
mod group;
mod header;
mod metadata;
mod superblock;
mod trail;
mod values;

pub use attribute::Attribute;
pub use dataset::{DataLayout, DatasetFacts, StoredChunks};
pub use file::{Hdf5File, Hdf5Object};
pub use group::{GroupListing, GroupMember, MemberKind};
pub use values::AttributeValues;
