//! The engine without Python: one binary, a module per room.

mod graph;
mod growth;
mod placement;
mod plans;
mod replay;
mod runs;
mod support;
mod works;
mod workspace;
