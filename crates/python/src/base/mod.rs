//! Errors, signals and results that are still held: what every binding needs. Uses no other room. Start with `errors.rs`.

pub mod errors;
pub mod held;
pub mod raised;
pub mod signals;
