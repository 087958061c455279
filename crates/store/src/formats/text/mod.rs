//! Numbers in lines of text, compressed or not. Start with `lines.rs`.

mod lines;
mod unzstd;

pub use lines::{Columns, LineFormat, Lines, Number};
pub use unzstd::Unzstd;
