//! What is asked of a matrix, and the runs of tiles whose columns are brought into rows.

use outcore_kernels::{copy_strided, StridedBytes, StridedBytesMut};
use std::ops::RangeInclusive;

use outcore_dtype::DType;
use outcore_kernels::sort::KeyOrder;

use crate::expr::staged::Room;
use crate::task::Grid;

/// Columns that are brought into a row each at once.
pub(super) const TOGETHER: u64 = 8;
/// Bytes of noted keys, at least and at most.
pub(super) const NOTED_BYTES: RangeInclusive<u64> = 1 << 20..=64 << 20;

/// A request for order statistics of a matrix's columns.
#[derive(Clone, Debug)]
pub(super) struct QuantileRequest {
    pub(super) order: KeyOrder,
    pub(super) x: Grid,
    /// Where in the sorted column, from 0 to 1.
    pub(super) fractions: Vec<f64>,
}

impl QuantileRequest {
    pub(super) fn rows(&self) -> u64 {
        self.x.shape[0]
    }

    pub(super) fn columns(&self) -> u64 {
        self.x.shape[1]
    }

    /// Tiles side by side.
    pub(super) fn across(&self) -> u64 {
        self.x.counts()[1]
    }

    pub(super) fn results(&self) -> Vec<Grid> {
        let (asked, columns) = (self.fractions.len() as u64, self.columns());
        let grid = |shape: Vec<u64>, dtype| Grid {
            tile: shape.iter().map(|&length| length.max(1)).collect(),
            shape,
            dtype,
        };
        vec![
            grid(vec![asked, columns], self.x.dtype),
            grid(vec![asked, columns], self.x.dtype),
            grid(vec![asked, columns], DType::F64),
            grid(vec![columns], DType::I64),
        ]
    }
}

/// Tiles of a matrix that a task sorts column by column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    /// Row tiles of a run.
    pub(super) tiles: u64,
    /// Elements of a column between noted ones, and how many are noted.
    pub(super) stride: u64,
    pub(super) noted: u64,
}

impl Runs {
    /// The part of a key that differs between runs.
    pub(super) fn key(&self) -> Vec<u8> {
        let numbers = [self.tiles, self.stride, self.noted];
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    pub(super) fn new(asked: &QuantileRequest, room: Room) -> Runs {
        let x = &asked.x;
        let item = x.dtype.size() as u64;
        let tile: u64 = x.tile.iter().product::<u64>() * item;
        let threads = room.threads as u64;
        let at_once = (threads + 1) * tile + threads * (TOGETHER.min(x.tile[1]) + 1) * x.tile[0] * item;
        let tiles = (room.memory / 4 * 3 / at_once.max(1)).clamp(1, x.counts()[0].max(1));
        let runs = x.counts()[0].div_ceil(tiles).max(1);
        let budget = (room.memory / 32).clamp(*NOTED_BYTES.start(), *NOTED_BYTES.end());
        let rows = (tiles * x.tile[0]).min(asked.rows().max(1));
        let noted = (budget / (runs * asked.columns().max(1) * item))
            .clamp(4, 1 << 16)
            .min(rows);
        let stride = rows.div_ceil(noted);
        Runs {
            tiles,
            stride,
            noted: rows.div_ceil(stride),
        }
    }

    pub(super) fn count(&self, asked: &QuantileRequest) -> u64 {
        asked.x.counts()[0].div_ceil(self.tiles)
    }

    /// First row tile of a run and the one after its last.
    pub(super) fn range(&self, asked: &QuantileRequest, run: u64) -> std::ops::Range<u64> {
        run * self.tiles..((run + 1) * self.tiles).min(asked.x.counts()[0])
    }

    /// Rows of a run.
    pub(super) fn rows(&self, asked: &QuantileRequest, run: u64) -> u64 {
        let start = run * self.tiles * asked.x.tile[0];
        (asked.rows() - start).min(self.tiles * asked.x.tile[0])
    }
}

/// Brings up to `TOGETHER` columns of tiles one above the other into rows of `rows` elements, and calls `each` with them:
/// the column within the tiles and its elements.
pub(super) fn each_column(
    x: &Grid,
    tiles: &[&[u8]],
    width: usize,
    rows: usize,
    space: &mut [u8],
    mut each: impl FnMut(usize, &mut [u8]),
) {
    let item = x.dtype.size();
    for first in (0..width).step_by(TOGETHER as usize) {
        let columns = (width - first).min(TOGETHER as usize);
        let mut at = 0;
        for tile in tiles {
            let count = tile.len() / (width * item);
            let shape = [columns, count];
            copy_strided(
                item,
                &shape,
                StridedBytes::new(tile, first, &[1, width as isize]),
                StridedBytesMut::new(space, at, &[rows as isize, 1]),
            );
            at += count;
        }
        for (column, values) in space.chunks_exact_mut(rows * item).take(columns).enumerate() {
            each(first + column, values);
        }
    }
}
