//! A set-associative page cache for small reads at random (SAFS: Zheng, chapter 2.4).
//!
//! `policy` and `set` are about one set, `address` says which; `core` holds them and knows what may happen to a page;
//! `visit` serves reads, `fill` those of many whole pages, `write` changes pages, `flush` brings them to their files, `flusher`
//! ahead of need, `resize` grows and shrinks.
//!
//! Uses `io` and the rooms below. Start with `core.rs`.

mod address;
mod ahead;
mod core;
mod file;
mod fill;
mod flush;
mod flusher;
mod join;
mod open_file;
mod policy;
mod request;
mod resize;
mod set;
mod visit;
mod write;

pub use self::core::{CacheCounters, CacheOptions, PageCache};
pub use file::CachedFile;
pub use fill::PageRun;
pub use open_file::PageCheck;
pub use policy::{CachePolicy, GCLOCK_MOST};
pub use request::{ByteSpan, Pages};

#[cfg(test)]
mod tests;
