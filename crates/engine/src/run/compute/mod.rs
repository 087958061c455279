//! What a task does with its tiles: blocks of fused passes, products, partial results joined in trees.
//!
//! Uses `plan`'s model. Start with `task.rs`.

pub mod gather;
pub mod product;
pub mod task;
pub mod tree;
pub mod value;
mod views;
pub mod workspace;
