//! Entries in order made tiles, by any thread.

use std::ops::Range;
use std::sync::Mutex;

use outcore_coding::tiles::{TileRowEncoder, ENTRIES_MAX};
use outcore_kernels::BinaryKernel;
use outcore_store::SparseShape;

use super::adding::{is_widened, Sum};
use super::places::{Places, TileNumber};
use crate::EngineError;

/// The rule for several entries at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Sum,
    /// The one that came last.
    Last,
    Refuse,
}

/// The rules by which entries become tiles.
pub(super) struct Rules {
    pub(super) shape: SparseShape,
    pub(super) places: Places,
    pub(super) duplicates: Duplicates,
    pub(super) add: Option<BinaryKernel>,
}

/// The entries of a tile, in their order.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) entries: Vec<u32>,
    pub(super) values: Vec<u8>,
    /// The last place.
    pub(super) last: Option<u64>,
    /// The sum at that place, where several entries are there and their type is narrow.
    pub(super) sum: Option<Sum>,
    /// It has no room in the type.
    pub(super) is_over: bool,
}

/// Makes tiles of entries, in any thread.
pub struct EntryEncoder {
    pub(super) rules: Rules,
    pub(super) spare: SpareBuffers,
}

/// Entries in order, whose tiles are encoded but for the first and the last one: those may have begun before, or go on.
#[derive(Default)]
pub struct Encoded {
    pub(super) first: Option<TileEntries>,
    pub(super) whole: Vec<WholeTiles>,
    pub(super) last: Option<TileEntries>,
}

/// Entries of a tile.
pub(super) struct TileEntries {
    pub(super) tile: TileNumber,
    pub(super) places: Vec<u64>,
    pub(super) values: Vec<u8>,
}

/// Tiles of one tile row: the first and the last of them, and what they are.
pub(super) struct WholeTiles {
    pub(super) tiles: [TileNumber; 2],
    pub(super) encoder: TileRowEncoder,
}

/// Buffers that workers have used, for the next time: memory that is given back and taken again would be cleared each time.
#[derive(Default)]
pub(super) struct SpareBuffers {
    pub(super) encoders: Mutex<Vec<TileRowEncoder>>,
    pub(super) gathered: Mutex<Vec<Gathered>>,
}

pub(super) fn take<T: Default>(spare: &Mutex<Vec<T>>) -> T {
    spare
        .lock()
        .map(|mut spare| spare.pop())
        .unwrap_or_default()
        .unwrap_or_default()
}

pub(super) fn of_all(encoders: &[TileRowEncoder]) -> usize {
    encoders.iter().map(TileRowEncoder::held_bytes).sum()
}

pub(super) fn give<T>(spare: &Mutex<Vec<T>>, used: T) {
    if let Ok(mut spare) = spare.lock() {
        spare.push(used);
    }
}

/// Entries of one tile, of those that are given.
pub(super) struct TileRun {
    pub(super) tile: TileNumber,
    pub(super) place: Range<usize>,
}

/// The places and values of a run.
pub(super) fn of_run<'a>(run: &TileRun, places: &'a [u64], values: &'a [u8], item: usize) -> (&'a [u64], &'a [u8]) {
    let bytes = run.place.start * item..run.place.end * item;
    (&places[run.place.clone()], &values[bytes])
}

impl EntryEncoder {
    /// Encodes entries in order, with tile rows beside their places where these are wide.
    ///
    /// # Errors
    /// As [`Assembler::add`].
    pub fn encode(&self, tile_rows: Option<&[u64]>, places: &[u64], values: &[u8]) -> Result<Encoded, EngineError> {
        let item = self.rules.item();
        let runs = self.rules.runs(tile_rows, places, values)?;
        let entries_of = |run: &TileRun| of_run(run, places, values, item);
        let copied = |run: &TileRun| {
            let (places, values) = entries_of(run);
            let (places, values) = (places.to_vec(), values.to_vec());
            TileEntries {
                tile: run.tile,
                places,
                values,
            }
        };
        let Some((first, rest)) = runs.split_first() else {
            return Ok(Encoded::default());
        };
        let mut encoded = Encoded {
            first: Some(copied(first)),
            ..Encoded::default()
        };
        if let Some((last, whole)) = rest.split_last() {
            let rows = whole.chunk_by(|one, next| one.tile.0 == next.tile.0);
            encoded.whole = rows.map(|row| self.tiles(row, &entries_of)).collect::<Result<_, _>>()?;
            encoded.last = Some(copied(last));
        }
        Ok(encoded)
    }

    /// Encodes whole tiles of one tile row.
    pub(super) fn tiles<'a>(
        &self,
        runs: &[TileRun],
        entries_of: &impl Fn(&TileRun) -> (&'a [u64], &'a [u8]),
    ) -> Result<WholeTiles, EngineError> {
        let (mut gathered, mut encoder) = (take(&self.spare.gathered), take(&self.spare.encoders));
        for run in runs {
            let (places, values) = entries_of(run);
            self.rules.gather(run.tile, places, values, &mut gathered)?;
            self.rules.end(run.tile, &mut gathered, &mut encoder)?;
        }
        give(&self.spare.gathered, gathered);
        let tiles = [runs[0].tile, runs[runs.len() - 1].tile];
        Ok(WholeTiles { tiles, encoder })
    }
}

impl Rules {
    pub(super) fn item(&self) -> usize {
        self.shape.dtype.map_or(0, |dtype| dtype.size())
    }

    /// Where the entries of each tile are.
    pub(super) fn runs(
        &self,
        tile_rows: Option<&[u64]>,
        places: &[u64],
        values: &[u8],
    ) -> Result<Vec<TileRun>, EngineError> {
        let item = self.item();
        if values.len() != places.len() * item {
            return Err(EngineError::Shape(format!(
                "sparse: {} places and {} bytes of values of {item} bytes each",
                places.len(),
                values.len()
            )));
        }
        let (mut runs, mut done): (Vec<TileRun>, usize) = (vec![], 0);
        while done < places.len() {
            let number = self.places.tile(places[done]);
            let mut tile = self.places.row_and_block(number);
            let mut end = places.len();
            if let Some(tile_rows) = tile_rows {
                if tile.0 != 0 {
                    return Err(EngineError::Argument("sparse: a place leaves its tile row".into()));
                }
                tile.0 = tile_rows[done];
                // One after the other: by halves, tile rows out of order would be taken for others.
                end = done + tile_rows[done..].iter().take_while(|row| **row == tile.0).count();
            }
            let same = places[done..end].partition_point(|place| self.places.tile(*place) == number);
            if runs.last().is_some_and(|run| run.tile >= tile) {
                return Err(out_of_order());
            }
            runs.push(TileRun {
                tile,
                place: done..done + same,
            });
            done += same;
        }
        Ok(runs)
    }

    /// Adds entries of a tile to those it has.
    pub(super) fn gather(
        &self,
        tile: TileNumber,
        places: &[u64],
        values: &[u8],
        to: &mut Gathered,
    ) -> Result<(), EngineError> {
        let item = self.item();
        let follows = places.windows(2).all(|pair| pair[0] < pair[1]);
        if follows && to.last.is_none_or(|last| last < places[0]) {
            self.end_sum(tile, to)?;
            self.check_inside(tile, places)?;
            to.entries.extend(places.iter().map(|place| self.places.inside(*place)));
            to.values.extend_from_slice(values);
            to.last = places.last().copied();
            return to.check_number();
        }
        for (position, place) in places.iter().enumerate() {
            let value = &values[position * item..(position + 1) * item];
            match to.last {
                Some(last) if last == *place => self.again(tile, *place, value, to)?,
                Some(last) if last > *place => return Err(out_of_order()),
                _ => {
                    self.end_sum(tile, to)?;
                    self.check_inside(tile, &[*place])?;
                    to.entries.push(self.places.inside(*place));
                    to.values.extend_from_slice(value);
                }
            }
            to.last = Some(*place);
        }
        to.check_number()
    }

    /// Refuses places of a tile that lie outside the matrix.
    pub(super) fn check_inside(&self, tile: TileNumber, places: &[u64]) -> Result<(), EngineError> {
        let (shape, side) = (&self.shape, u64::from(self.shape.side));
        let ends_inside = |number: u64, length: u64| number < length / side;
        if ends_inside(tile.0, shape.rows) && ends_inside(u64::from(tile.1), shape.columns) {
            return Ok(());
        }
        let mut outside = places.iter().map(|place| self.of_matrix(tile, *place));
        match outside.find(|[row, column]| *row >= shape.rows || *column >= shape.columns) {
            None => Ok(()),
            Some([row, column]) => Err(EngineError::Index(format!(
                "sparse: entry ({row}, {column}) lies outside ({}, {})",
                shape.rows, shape.columns
            ))),
        }
    }

    /// Row and column of a place in a tile.
    pub(super) fn of_matrix(&self, tile: TileNumber, place: u64) -> [u64; 2] {
        self.places.of_matrix(tile, place, self.shape.side)
    }

    /// An entry at the place of the one before.
    pub(super) fn again(
        &self,
        tile: TileNumber,
        place: u64,
        value: &[u8],
        to: &mut Gathered,
    ) -> Result<(), EngineError> {
        let at = to.values.len() - value.len();
        match (self.duplicates, self.add) {
            (Duplicates::Sum, _) if self.shape.dtype.is_some_and(is_widened) => {
                let dtype = self.shape.dtype.expect("it has values");
                let before = to.sum.unwrap_or_else(|| Sum::of(dtype, &to.values[at..]));
                let sum = before.and(dtype, value);
                to.is_over = !sum.put(dtype, &mut to.values[at..]);
                to.sum = Some(sum);
            }
            (Duplicates::Sum, Some(add)) => {
                let before = to.values[at..].to_vec();
                add(&before, value, &mut to.values[at..]);
            }
            (Duplicates::Refuse, _) => {
                let [row, column] = self.of_matrix(tile, place);
                return Err(EngineError::Argument(format!(
                    "sparse: entry ({row}, {column}) is there twice; say what becomes of it"
                )));
            }
            _ => to.values[at..].copy_from_slice(value),
        }
        Ok(())
    }

    /// Refuses a sum that has no room in its type, once all of it has come.
    pub(super) fn end_sum(&self, tile: TileNumber, to: &mut Gathered) -> Result<(), EngineError> {
        let (Some(sum), Some(place)) = (to.sum.take(), to.last) else {
            return Ok(());
        };
        if !std::mem::take(&mut to.is_over) {
            return Ok(());
        }
        let ([row, column], dtype) = (self.of_matrix(tile, place), self.shape.dtype.expect("it has values"));
        let sum = match sum {
            Sum::Whole(number) => number.to_string(),
            Sum::Narrow([real, _]) => real.to_string(),
        };
        Err(EngineError::Argument(format!(
            "sparse: the entries at ({row}, {column}) add up to {sum}, which {dtype} does not hold; give values of a wider type"
        )))
    }

    /// Encodes the entries of a tile, if there are any, and forgets them.
    pub(super) fn end(
        &self,
        tile: TileNumber,
        gathered: &mut Gathered,
        to: &mut TileRowEncoder,
    ) -> Result<(), EngineError> {
        self.end_sum(tile, gathered)?;
        gathered.end(tile.1, self.item(), to);
        Ok(())
    }
}

impl Gathered {
    pub(super) fn check_number(&self) -> Result<(), EngineError> {
        match self.entries.len() > ENTRIES_MAX {
            true => Err(EngineError::Argument("sparse: too many entries in one tile".into())),
            false => Ok(()),
        }
    }

    /// Encodes the entries, if there are any, and forgets them.
    pub(super) fn end(&mut self, block: u32, item: usize, encoder: &mut TileRowEncoder) {
        if !self.entries.is_empty() {
            encoder.tile(block, &self.entries, &self.values, item);
        }
        self.entries.clear();
        self.values.clear();
        self.last = None;
    }
}

pub(super) fn out_of_order() -> EngineError {
    EngineError::Argument("sparse: places are out of order".into())
}
