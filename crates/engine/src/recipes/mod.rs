//! The registry of builders: operators by algorithms, built of a recipe and inputs as another process had them.
//!
//! Uses `ops`, `sort`, `linalg`, `sparse` and `solve`. Start with the table in `builders.rs`: an operator that is to be known to other
//! processes has a line there and a `recipe` beside its key.

mod builders;

pub use builders::{rebuild, recipe};
