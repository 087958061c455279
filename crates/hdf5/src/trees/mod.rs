//! The two B-trees of the format: keys between children (version 1), and records (version 2).
//!
//! Uses `base`. Start with `keyed.rs`, version 1; `records.rs` is version 2.

mod keyed;
mod records;

pub(crate) use keyed::{KeyedTree, TreeUse};
pub(crate) use records::RecordTree;
