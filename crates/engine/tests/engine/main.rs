//! The engine without Python: one binary, a module per room.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod graph;
mod growth;
mod placement;
mod plans;
mod replay;
mod runs;
mod seeing;
mod support;
mod works;
mod workspace;
