//! QR factors of dense matrices larger than memory, by tiles: each column of tiles is eliminated from its diagonal tile down, one
//! tile below the triangle after the other (Buttari, Langou, Kurzak and Dongarra (2009), "A class of parallel tiled linear algebra
//! algorithms for multicore architectures").
//!
//! A task touches two tiles of the matrix and one of reflectors, so any shape goes in any memory, and orders by slabs, squares or
//! rows of tiles give the same bits. Start with `cut.rs`.

mod cut;
mod factorize;
mod orders;
mod sweeps;
mod triangle;

pub use cut::QrCut;
pub use factorize::dense_qr;
pub use sweeps::{qr_basis, qr_least_squares, qr_product};
pub use triangle::qr_triangle;
