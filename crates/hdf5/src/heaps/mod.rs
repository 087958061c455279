//! The heaps of the format: names of old groups (local), values of variable length (global), links and attributes
//! (fractal).
//!
//! Uses `base` and `trees`. Start with `fractal.rs`, the one with a structure.

mod fractal;
mod global;
mod local;

pub(crate) use fractal::FractalHeap;
pub(crate) use global::GlobalHeaps;
pub(crate) use local::LocalHeap;
