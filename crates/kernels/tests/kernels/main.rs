//! The kernels from outside: one binary, a module per chapter.
//!
//! The crate takes minutes to compile, so it is compiled once: tests call its lookups, and there are none inside of it.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod bounds;
mod complex;
mod compress;
mod describe;
mod elementwise;
mod factor;
mod fourier;
mod gather;
mod gemm;
mod generate;
mod half;
mod layout;
mod panel;
mod pivoting;
mod reduce;
mod reflectors;
mod scan;
mod sort;
mod sort_words;
mod tally;
