//! The matrices from outside: one binary, a module per chapter.

mod incomplete;
mod tiles;
