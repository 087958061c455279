//! Direct solvers: the analysis of a pattern, and factorizations by fronts whose tiles are placed like any others.
//!
//! The analysis knows all of a factorization before it begins, so its tasks are a tile algorithm: forecast, limit, spills and
//! faults are those of every program. Uses `sparse` and the rooms below. Start with `analysis.rs`, then `fronts.rs`; `pivoted`
//! is for matrices whose pivots are chosen as numbers are known, `slabs.rs` and `lu.rs` for dense ones of this kind, `qr` for
//! dense ones of any shape.

mod analysis;
mod assembly;
mod band;
mod children;
mod dense;
mod dense_triangle;
mod durable;
mod factorize;
mod fronts;
mod hermitian;
mod inverse;
mod inverse_places;
mod inverse_steps;
mod low_rank;
mod lu;
mod lu_pivots;
mod lu_sweeps;
mod numbering;
mod orders;
mod pattern;
mod pivoted;
mod pivots;
mod places;
mod precision;
mod qr;
mod slab_orders;
mod slabs;
mod subtrees;
mod supernodes;
mod sweep_steps;
mod sweeps;
mod tree;
mod triangular;

pub use analysis::{effort_of, Analysis};
pub use dense_triangle::{cholesky_lower, cholesky_triangle};
pub use factorize::{cholesky, dense_cholesky};
pub use hermitian::hermitian;
pub use inverse::selected_inverse;
pub use inverse_places::WantedPlaces;
pub use lu::dense_lu;
pub use lu_pivots::lu_pivots;
pub use lu_sweeps::lu_solved;
pub use pattern::{pattern_bytes, Pattern};
pub use pivoted::{
    dense_ldl, pivot_facts, pivoted, pivoted_solved, PivotScaling, PivotedFactor, PivotedMatrix, PivotedRecord,
};
pub use pivots::log_pivots;
pub use qr::{dense_qr, qr_basis, qr_least_squares, qr_product, qr_triangle, QrCut};
pub use slabs::SlabCut;
pub use supernodes::SupernodeTree;
pub use sweeps::solved;
pub use tree::Stop;
pub use triangular::triangular_solved;
