//! A set-associative page cache for small reads at random (SAFS: Zheng, chapter 2.4).
//!
//! `policy` and `set` are about one set, `address` says which; `core` holds them and knows what may happen to a page;
//! `visit` serves reads, `write` writes, `resize` grows and shrinks.

mod address;
mod core;
mod file;
mod join;
mod policy;
mod resize;
mod set;
mod visit;
mod write;

pub use self::core::{CacheCounters, CacheOptions, PageCache};
pub use file::CachedFile;
pub use policy::{Policy, GCLOCK_MOST};
pub use visit::{Pages, Span};

#[cfg(test)]
mod tests;
