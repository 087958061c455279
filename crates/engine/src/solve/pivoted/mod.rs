//! Factorizations with pivoting: A = L D Lᴴ and A = L U by fronts that hand candidates without a pivot on to their parents.

mod blocks;
mod columns;
mod facts;
mod fronts;
mod scaling;
mod subtrees;
mod sweep_steps;
mod sweeps;
mod tasks;
mod tiles;

pub use facts::pivot_facts;
pub use scaling::{PivotScaling, PivotedRecord};
pub use sweeps::{pivoted_solved, PivotedFactor};
pub use tasks::{dense_ldl, pivoted, PivotedMatrix};
