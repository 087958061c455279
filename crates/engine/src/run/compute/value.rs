//! Where the bytes of values are while a task runs.

use std::sync::Arc;

use outcore_store::{ClaimedSlice, Frame};

use crate::plan::ArrayId;
use crate::schedule::TileId;

/// The memory of one tile: a frame of the pool, or a part of the result buffer.
pub enum TileMemory {
    Frame { frame: Frame, offset: usize },
    Claimed(ClaimedSlice),
}

impl TileMemory {
    /// The tile's bytes, C-contiguous.
    pub fn bytes(&self) -> &[u8] {
        match self {
            TileMemory::Frame { frame, offset } => &frame[*offset..],
            TileMemory::Claimed(slice) => slice,
        }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            TileMemory::Frame { frame, offset } => &mut frame[*offset..],
            TileMemory::Claimed(slice) => slice,
        }
    }

    /// The bytes with the frame's slack, as direct writes want them.
    pub fn padded(&self) -> &[u8] {
        match self {
            TileMemory::Frame { frame, .. } => frame.padded(),
            TileMemory::Claimed(slice) => slice,
        }
    }
}

/// The place of a value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Position among the task's input tiles.
    Input(usize),
    /// An array in the caller's memory.
    Memory(ArrayId),
    /// A slot of the worker's workspace.
    Slot(usize),
    /// Position among the task's outputs.
    Output(usize),
}

/// A value over the current block: strides and offset in elements; the shape is the block's.
#[derive(Clone, Debug)]
pub struct Strided {
    pub place: Place,
    pub offset: usize,
    pub strides: Vec<isize>,
}

/// Strides of a C-contiguous array, in elements.
pub fn contiguous(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * shape[axis + 1] as isize;
    }
    strides
}

/// Whether strides over a shape are those of a C-contiguous array (axes of length one may have any).
pub fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1;
    for axis in (0..shape.len()).rev() {
        if shape[axis] != 1 && strides[axis] != expected {
            return false;
        }
        expected *= shape[axis] as isize;
    }
    true
}

/// The input tiles of a task, by tile number.
pub struct Inputs(pub Vec<(TileId, Arc<TileMemory>)>);

impl Inputs {
    pub fn position(&self, tile: TileId) -> usize {
        self.0
            .binary_search_by_key(&tile, |(id, _)| *id)
            .expect("the plan lists every tile a task reads")
    }
}
