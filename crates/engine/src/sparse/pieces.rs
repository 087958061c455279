//! Moving rows between the regular tiles of a dense matrix, the pieces that belong to the tiles of a sparse one, and the
//! block of a band that stays in memory.

use super::bands::{bytes_of, copy_rows, meeting, Bands};
use crate::task::{Access, Bound, Grid, Work};
use crate::EngineError;
use outcore_store::Interval;

/// Puts the row tiles of a band, one after the other, into one block. Tiles are as wide as the band.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    pub band: u64,
    pub bands: Bands,
    pub dense: Grid,
    /// The set of the dense matrix, and that of the blocks.
    pub sets: (usize, usize),
}

impl Fill {
    fn tile(&self, task: u64) -> u64 {
        task * self.bands.count() + self.band
    }
}

impl Work for Fill {
    fn label(&self) -> String {
        "hold columns".into()
    }
    fn tasks(&self) -> u64 {
        self.dense.counts()[0]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(self.sets.0, self.tile(task), Access::Read);
        let access = if task == 0 { Access::Create } else { Access::Update };
        each(self.sets.1, self.band, access);
    }
    fn operations(&self) -> f64 {
        self.dense.shape[0] as f64 * self.bands.width_of(self.band) as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let start = task * self.dense.tile[0];
        let at = bytes_of(start * self.bands.width_of(self.band), self.dense.dtype);
        tiles.writes[0][at..][..tiles.reads[0].len()].copy_from_slice(tiles.reads[0]);
        Ok(())
    }
}

/// Cuts a dense matrix into pieces of other rows, band by band. Its tiles are as wide as a band.
#[derive(Clone, Debug)]
pub(super) struct CutRows {
    pub bands: Bands,
    pub dense: Grid,
    pub pieces: std::sync::Arc<[Interval]>,
    /// The set of the dense matrix, and that of the pieces, numbered band by band.
    pub sets: (usize, usize),
}

impl CutRows {
    fn place(&self, task: u64) -> (u64, Interval) {
        let pieces = self.pieces.len() as u64;
        (task / pieces, self.pieces[(task % pieces) as usize])
    }
}

impl Work for CutRows {
    fn label(&self) -> String {
        "cut rows".into()
    }
    fn tasks(&self) -> u64 {
        self.pieces.len() as u64 * self.bands.count()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, rows) = self.place(task);
        for row in rows.tiles(self.dense.tile[0]) {
            each(self.sets.0, row * self.bands.count() + band, Access::Read);
        }
        each(self.sets.1, task, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.dense.shape.iter().product::<u64>() as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, rows) = self.place(task);
        let height = self.dense.tile[0];
        let pitch = bytes_of(self.bands.width_of(band), self.dense.dtype);
        for (row, tile) in (rows.start / height..).zip(&tiles.reads) {
            let first = row * height;
            let shared = Interval::between(first, (first + height).min(self.dense.shape[0])).intersection(rows);
            copy_rows(
                (tile, first, pitch, 0),
                (tiles.writes[0], rows.start, pitch, 0),
                shared,
                pitch,
            );
        }
        Ok(())
    }
}

/// Makes the regular tiles of a result of its pieces, band by band; rows that belong to none are the sum of nothing. Tiles are as
/// wide as a band.
#[derive(Clone, Debug)]
pub(super) struct Join {
    pub bands: Bands,
    pub result: Grid,
    pub pieces: std::sync::Arc<[Interval]>,
    pub zero: Vec<u8>,
    /// The set of the pieces, numbered band by band, and that of the result.
    pub sets: (usize, usize),
}

impl Join {
    /// The band of a task and the tile of the result, with its rows.
    fn place(&self, task: u64) -> (u64, u64, Interval) {
        let rows = self.result.counts()[0];
        let (band, row) = (task / rows, task % rows);
        let tile = row * self.bands.count() + band;
        (band, tile, self.result.region(tile)[0])
    }
}

impl Work for Join {
    fn label(&self) -> String {
        "join rows".into()
    }
    fn tasks(&self) -> u64 {
        self.result.tiles()
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let (band, tile, rows) = self.place(task);
        for piece in meeting(&self.pieces, rows) {
            let number = band * self.pieces.len() as u64 + piece as u64;
            each(self.sets.0, number, Access::Read);
        }
        each(self.sets.1, tile, Access::Create);
    }
    fn operations(&self) -> f64 {
        self.result.shape.iter().product::<u64>() as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (band, _, rows) = self.place(task);
        let pitch = bytes_of(self.bands.width_of(band), self.result.dtype);
        let out = &mut *tiles.writes[0];
        fill(out, &self.zero);
        for (piece, tile) in meeting(&self.pieces, rows).zip(&tiles.reads) {
            let piece = self.pieces[piece];
            let shared = piece.intersection(rows);
            copy_rows(
                (tile, piece.start, pitch, 0),
                (out, rows.start, pitch, 0),
                shared,
                pitch,
            );
        }
        Ok(())
    }
}

/// Every element the sum of nothing.
pub(super) fn fill(out: &mut [u8], zero: &[u8]) {
    if zero.iter().all(|byte| *byte == 0) {
        out.fill(0);
    } else {
        out.chunks_exact_mut(zero.len())
            .for_each(|element| element.copy_from_slice(zero));
    }
}
