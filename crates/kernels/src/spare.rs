//! Memory of a kernel, given out from the front of what the engine reserved for it.

use bytemuck::Pod;

use crate::fence::stack::{stack, MemStack};

const ALIGN: usize = 64;

/// What is left of a workspace.
pub struct Spare<'a>(&'a mut [u8]);

impl<'a> Spare<'a> {
    /// A workspace that begins anywhere.
    pub fn new(workspace: &'a mut [u8]) -> Spare<'a> {
        let start = workspace.as_ptr().align_offset(ALIGN).min(workspace.len());
        Spare(&mut workspace[start..])
    }

    /// So many elements, of any value.
    pub fn take<T: Pod>(&mut self, length: usize) -> &'a mut [T] {
        let bytes = length * size_of::<T>();
        let (front, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.next_multiple_of(ALIGN));
        self.0 = rest;
        bytemuck::cast_slice_mut(&mut front[..bytes])
    }

    /// All that is left, for `faer`.
    pub fn stack(&mut self) -> &mut MemStack {
        stack(self.0)
    }
}

/// Bytes that are lost where a workspace does not begin at a multiple of what slices begin at.
pub const SKIPPED: usize = ALIGN;

/// Bytes that [`Spare::take`] takes for slices of such lengths.
pub fn taken<T>(lengths: &[usize]) -> usize {
    let bytes = lengths.iter().map(|length| length * size_of::<T>());
    bytes.map(|bytes| bytes.next_multiple_of(ALIGN)).sum()
}
