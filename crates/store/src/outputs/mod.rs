//! Outputs that a later run goes on with: resumable sinks and the checksums that a stored array is believed by. Uses all
//! other rooms. Start with `resume.rs`.

pub mod durable_tiles;
pub mod held;
pub mod resume;
pub mod sums;
