//! The outline of a factor that is to be written.

use std::fmt::Debug;
use std::sync::Arc;

use outcore_dtype::DType;

/// How the tiles of a factor make a factor, as sections of bytes.
pub trait FactorRecord: Send + Sync + Debug {
    fn sections(&self) -> Vec<&[u8]>;
    /// Whether tiles may take less than their room.
    fn has_room(&self) -> bool {
        false
    }
    /// Bytes that a tile takes at the front of its room; what is behind them is zeros.
    fn taken(&self, _tile: usize, room: &[u8]) -> usize {
        room.len()
    }
}

/// A factor that is to be written.
#[derive(Clone, Debug)]
pub struct FactorOutput {
    /// Rows of the matrix.
    pub rows: u64,
    /// Of the elements.
    pub dtype: DType,
    /// Bytes of each tile, or of its room.
    pub lengths: Arc<[u64]>,
    pub record: Arc<dyn FactorRecord>,
}
