//! Arrays as the engine sees them: sources to read, sinks to write, regions, selections; contracts and what needs no
//! format. Uses `io`, `durable` and the rooms below. Start with the traits in `source.rs` and `sink.rs`.

pub mod annotations;
pub mod format;
pub mod in_memory;
pub mod picked;
pub mod publish;
pub mod raw;
pub mod record;
pub mod region;
pub mod rowmajor;
pub mod selection;
pub mod sink;
pub mod source;
pub mod stored;
