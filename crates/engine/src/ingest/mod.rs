//! Entries in any order into a stored matrix: groups of ascending places, each sorted and encoded in memory.
//!
//! Uses `live`, `sparse` and `sort` and the rooms below. Start with `crew.rs`.

mod crew;
mod operator;

pub use crew::{Groups, Ingest};
pub use operator::{groups_in, StoredEntries};
