//! Bytes as the stack that `faer` takes its temporary matrices from.

use std::mem::MaybeUninit;

pub use faer::dyn_stack::{MemStack, StackReq};

/// The stack over `bytes`.
pub fn stack(bytes: &mut [u8]) -> &mut MemStack {
    // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and the slice is lent for as long as the stack. `faer` keeps
    // floating-point numbers and indices there, which have no padding, so no byte that was a number stops being one.
    let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<MaybeUninit<u8>>(), bytes.len()) };
    MemStack::new(bytes)
}
