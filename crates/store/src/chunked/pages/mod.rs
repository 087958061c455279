//! Columns of Parquet: a chunk of a column is a dictionary, where it has one, and pages one after the other, each compressed and
//! encoded on its own (the format's specification, "Parquet encoding definitions" and "Data pages").
//!
//! Start with `column.rs`, which decodes a chunk; `header.rs` reads what comes before each page, `footer.rs` what a
//! file says of its chunks, `hybrid.rs` and `delta.rs` are encodings. Nothing of a chunk is trusted: every length is held against the bytes there are before it is computed with.

mod column;
mod delta;
mod footer;
mod header;
mod hybrid;

pub use footer::{parquet_chunks, ParquetChunks, CHUNK_FACTS};

pub(crate) use column::{ColumnPages, MissingElements, PageCodec, PageSpace, Physical};
