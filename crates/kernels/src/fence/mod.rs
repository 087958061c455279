//! The one module that may say `unsafe`: shells that switch on target features, sorting by whole
//! vectors, prefetches, the call into the `gemm` crate, and the stack that `faer` works on.

pub mod hint;
pub mod operands;
pub mod product;
pub mod shells;
pub mod stack;
pub mod vectors;
