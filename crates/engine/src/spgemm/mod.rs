//! Products of two sparse matrices, a sparse matrix on disk: row by row (Gustavson 1978), some tile rows of the first matrix at
//! a time, tiles of the second read ahead of the threads that multiply.
//!
//! Uses `live` and `sparse` and the rooms below. Start with `operands.rs`, then `gustavson.rs`.

mod ahead;
mod coding;
mod forecast;
mod gustavson;
mod meeting;
mod operands;
mod terms;

pub use forecast::{forecast, ProductForecast};
pub use gustavson::StoredProduct;
pub use operands::SparseProduct;
