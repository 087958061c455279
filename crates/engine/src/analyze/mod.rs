//! The analysis of a stored matrix: its pattern is read, an order of elimination found, and the fronts cut.
//!
//! Uses `live`, `solve` and the rooms below. Start with `operator.rs`.

mod operator;
mod pairing;

pub use operator::{AnalyzedMatrix, EliminationOrder, OrderedAnalysis, OrderingMethod};
pub use pairing::Pairing;
