//! The one module that may say `unsafe`: shells that switch on target features, sorting by whole
//! vectors, prefetches, and the call into the `gemm` crate.

pub mod hint;
pub mod operands;
pub mod product;
pub mod shells;
pub mod vectors;
