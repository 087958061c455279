//! Memory that is counted: the ledger of a process, frames cut from one arena, mappings, pages lent to readers. Uses
//! `base`. Start with `ledger.rs`.

mod account;
#[allow(unsafe_code)] // buffers cut from chunks
mod arena;
pub mod frames;
pub mod ledger;
#[allow(unsafe_code)] // anonymous mappings
pub mod mapping;
#[allow(unsafe_code)] // pages lent to readers or an owner
pub mod pages;
pub mod process;
#[allow(unsafe_code)] // disjoint mutable ranges of one buffer
pub mod shared;
pub mod turn;
pub(crate) mod workspace;

#[cfg(test)]
mod tests;
