//! Files that outlast a process, or do not: locked folders, partial outputs and their publication, journals, scratch.
//! Uses `io` and the rooms below it. Start with `partial.rs`.

pub mod journal;
pub mod locked;
pub mod mark;
pub mod owner;
pub mod partial;
pub mod publish;
pub mod rename;
pub mod scratch;
pub mod stages;
pub mod target;
