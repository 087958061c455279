//! The kernels from outside: one binary, a module per chapter.

mod incomplete;
mod products;
#[path = "../../../coding/tests/support.rs"]
mod support;
