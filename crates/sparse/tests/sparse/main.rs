//! The kernels from outside: one binary, a module per chapter.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod incomplete;
mod products;
#[path = "../../../coding/tests/support.rs"]
mod support;
