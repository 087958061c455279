//! External sorting (Vengroff and Vitter, TPIE, section 4.2), in two reads and two writes.
//!
//! *By distribution*, where the keys are stored so that a sample of them costs little: the first program reads it, the
//! second cuts runs into buckets by it, the third sorts buckets. That is the faster way, since elements are compared once
//! with the splitters and sorted once, never merged. A bucket that holds nothing but equal elements may be of any size; where
//! another is so much larger than the sample made it that it does not fit, the runs are sorted and merged after all.
//!
//! *By merging* else, and where it is asked for: runs of nearly the whole memory, then one merge. The first program sorts runs and notes samples of their keys. From those, and a page per run where they leave a doubt,
//! the driver cuts the sorted sequence into partitions of equal length: exactly, whatever the skew, equal keys included,
//! since the order is that of (key, position). So the reads of the second program are known before it runs, its tasks are
//! independent of each other, and no input can make one of them larger than planned.
//!
//! Uses `ops` and the rooms below. Start with `external.rs`, which says the stages.

mod buckets;
mod columns;
mod cut;
mod external;
mod form;
mod merge;
mod parted;
mod quantile;
mod records;
mod restack;
mod rows;
mod search;
mod segments;
mod take;

pub(crate) use records::Records;

use std::sync::Arc;

pub use columns::{column_statistics, group_middles, sort_columns};
pub use external::sample;
pub use parted::{group_bytes, part, parting, GroupSpace, Parting, Parts};
pub use quantile::order_statistics;
pub use records::Method;
pub use restack::restacked;
pub use rows::rows_by;
pub use search::search_sorted;
pub use segments::foreseen;
pub use take::{take, take_ascending};

use crate::expr::Expr;
use crate::{ops, EngineError};

/// One-dimensional `keys` sorted, and `values` of the same length in the order of their keys: as nodes, the keys first.
/// The sort is stable; NaN comes last, in both directions; `-0` equals `+0`.
///
/// # Errors
/// Keys without an order; lengths that differ; more than one axis.
pub fn sort_by(
    keys: &Expr,
    values: &[Expr],
    descending: bool,
    method: Option<Method>,
) -> Result<Vec<Expr>, EngineError> {
    let records = Records::of(keys, values, descending)?;
    let inputs: Vec<Expr> = std::iter::once(keys).chain(values).cloned().collect();
    ops::staged(Arc::new(external::SortBy { records, method }), &inputs)
}
