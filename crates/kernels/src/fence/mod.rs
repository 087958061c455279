//! The one module that may say `unsafe`: shells that switch on target features, and the call into the `gemm` crate.

pub mod product;
pub mod shells;
