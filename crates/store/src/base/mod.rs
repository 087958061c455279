//! The ground floor: words of headers, sizes, errors, waiting. Uses no other room. Start with `error.rs`.

pub mod alarm;
pub mod directory;
pub mod error;
pub mod gate;
#[allow(unsafe_code)] // a call to the allocator
pub mod heap;
pub mod identity;
pub mod interval;
pub mod locked;
pub mod page;
pub mod pool;
pub mod size;
pub mod sync;
pub mod unwanted;
pub mod words;
