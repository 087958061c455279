//! The room from outside: what is written is read, what is forecast is transferred, what fails leaves nothing.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod chunks;
mod faults;
mod files;
mod formats;
mod gate_model;
mod listing;
mod old_files;
mod outputs;
mod raw;
mod selection;
mod sources;
mod support;
