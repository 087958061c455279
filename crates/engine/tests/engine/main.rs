//! The engine without Python: one binary, a module per room.

mod architecture;
mod growth;
mod imports;
mod placement;
mod plans;
mod runs;
mod support;
mod workspace;
