//! Bytes of a file, and fields in them.
//!
//! Uses nothing else of this crate. Start with `view.rs`: all reading goes through a `FileView`, all parsing through
//! `ByteFields`.

mod checksum;
mod error;
mod fields;
mod view;

pub(crate) use checksum::lookup3;
pub use error::Hdf5Error;
pub(crate) use fields::{text_before_zero, ByteBlock, ByteFields, FieldSizes};
pub use view::FileBytes;
pub(crate) use view::{FileView, Visits};
