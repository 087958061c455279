//! The engine without Python: one binary, a module per room.

mod architecture;
mod graph;
mod growth;
mod imports;
mod placement;
mod plans;
mod replay;
mod runs;
mod support;
mod works;
mod workspace;
