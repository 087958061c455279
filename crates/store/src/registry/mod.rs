//! The formats by name: opening an array by what it is, planning an output by its suffix. Uses `npy` and `zarr`, whose arrays are outputs too. Start with
//! `open.rs` and `create.rs`.

pub mod create;
pub mod open;
