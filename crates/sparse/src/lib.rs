//! Kernels of sparse matrices: products of tiles with dense blocks and of rows with rows, and incomplete factorizations.
//!
//! Pure functions on slices and on the decoded tiles of `coding`. Start with `multiply.rs`.

#![forbid(unsafe_code)]
// Lanes are indexed because several arrays of them advance together; the compiler vectorizes that form.
#![allow(clippy::needless_range_loop)]

mod gustavson;
mod incomplete;
mod multiply;
mod semiring;

pub use gustavson::{rows_product, Batch, Mask, Operands, RowsProduct, Table, TABLE_BYTES};
pub use incomplete::{Broken, Incomplete, Number};
pub use multiply::{multiply_tile, product_kernel, transposed_kernel, TileProduct};
pub use semiring::Semiring;
