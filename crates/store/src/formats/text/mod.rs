//! Numbers in lines of text, compressed or not. Start with `lines.rs`.

mod lines;
mod unzstd;

pub use lines::{LineFormat, Lines, NumberType, TextColumns};
pub use unzstd::Unzstd;
