//! The formats: opening an array by what it is, planning an output by its suffix. Uses `formats` and the rooms below. Start with
//! `formats.rs`, the list; `open.rs` and `create.rs` ask it.

pub mod create;
pub mod formats;
pub mod listing;
pub mod open;
mod remote;
