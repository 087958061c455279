//! The room from outside: what is written is read, what is forecast is transferred, what fails leaves nothing.

mod faults;
mod files;
mod old_files;
mod raw;
mod support;
