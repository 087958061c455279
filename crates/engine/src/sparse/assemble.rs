//! A stored sparse matrix made of entries that come in the order of its tiles.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outcore_coding::tiles::{TileRowEncoder, ENTRIES_MAX};
use outcore_dtype::DType;
use outcore_kernels::{binary_kernel, Binary, BinaryKernel};
use outcore_store::{Io, SparseShape, SparseWriter};

use super::adding::{is_widened, Sum};
use crate::EngineError;

/// How the place of an entry is one number, by which entries are sorted: the bits of the tile row, of the column of tiles, of
/// the row in the tile and of the column in the tile, from the highest. Where 64 bits are too few, the tile row is a number
/// of its own.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Bits of a row or a column within its tile.
    side: u32,
    /// Bits of a column of tiles.
    block: u32,
    is_wide: bool,
}

impl Places {
    /// Nothing where a column and a row of a tile take more than 64 bits.
    pub fn new(shape: &SparseShape) -> Option<Places> {
        let side = shape.side.checked_ilog2()?;
        let bits = |count: u64| u64::BITS - count.saturating_sub(1).leading_zeros();
        let tiles = |length: u64| bits(length.div_ceil(u64::from(shape.side)));
        let block = tiles(shape.columns);
        let bits = block + 2 * side;
        (bits <= u64::BITS).then_some(Places {
            side,
            block,
            is_wide: tiles(shape.rows) + bits > u64::BITS,
        })
    }

    /// What the places of a tile begin with.
    fn tile(self, place: u64) -> u64 {
        place.checked_shr(2 * self.side).unwrap_or(0)
    }

    fn row_and_block(self, tile: u64) -> (u64, u32) {
        let block = tile & ((1 << self.block) - 1);
        (tile.checked_shr(self.block).unwrap_or(0), block as u32)
    }

    /// Row · 2¹⁶ + column within the tile.
    fn inside(self, place: u64) -> u32 {
        let mask = (1 << self.side) - 1;
        ((place >> self.side & mask) << 16 | place & mask) as u32
    }

    /// Row and column in the matrix, of a place in a tile.
    fn of_matrix(self, tile: TileNumber, place: u64, side: u32) -> [u64; 2] {
        let (inside, side) = (self.inside(place), u64::from(side));
        [
            tile.0.saturating_mul(side).saturating_add(u64::from(inside >> 16)),
            u64::from(tile.1) * side + u64::from(inside & 0xffff),
        ]
    }
}

/// What becomes of entries at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Sum,
    /// The one that came last.
    Last,
    Refuse,
}

/// What entries become.
struct Rules {
    shape: SparseShape,
    places: Places,
    duplicates: Duplicates,
    add: Option<BinaryKernel>,
}

/// Its tile row and column of tiles.
type TileNumber = (u64, u32);

/// The entries of a tile, in their order.
#[derive(Default)]
struct Gathered {
    entries: Vec<u32>,
    values: Vec<u8>,
    /// The last place.
    last: Option<u64>,
    /// The sum at that place, where several entries are there and their type is narrow.
    sum: Option<Sum>,
    /// It has no room in the type.
    is_over: bool,
}

/// Takes entries in the order of their places and writes tile row after tile row.
pub struct Assembler {
    writer: SparseWriter,
    encoding: Arc<Encoding>,
    /// Threads that encode tiles.
    workers: usize,
    encoder: TileRowEncoder,
    /// The tile at work.
    tile: Option<TileNumber>,
    gathered: Gathered,
    /// Bytes of what workers have used that somebody else counts.
    paid_spare: usize,
}

/// What makes tiles of entries, by any thread.
pub struct Encoding {
    rules: Rules,
    spare: Spare,
}

/// Entries in order, whose tiles are encoded but for the first and the last one: those may have begun before, or go on.
#[derive(Default)]
pub struct Encoded {
    first: Option<Given>,
    whole: Vec<Whole>,
    last: Option<Given>,
}

/// Entries of a tile.
struct Given {
    tile: TileNumber,
    places: Vec<u64>,
    values: Vec<u8>,
}

/// Tiles of one tile row: the first and the last of them, and what they are.
struct Whole {
    tiles: [TileNumber; 2],
    encoder: TileRowEncoder,
}

/// What workers have used, for the next time: memory that is given back and taken again would be cleared each time.
#[derive(Default)]
struct Spare {
    encoders: Mutex<Vec<TileRowEncoder>>,
    gathered: Mutex<Vec<Gathered>>,
}

fn take<T: Default>(spare: &Mutex<Vec<T>>) -> T {
    spare
        .lock()
        .map(|mut spare| spare.pop())
        .unwrap_or_default()
        .unwrap_or_default()
}

fn of_all(encoders: &[TileRowEncoder]) -> usize {
    encoders.iter().map(TileRowEncoder::held_bytes).sum()
}

fn give<T>(spare: &Mutex<Vec<T>>, used: T) {
    if let Ok(mut spare) = spare.lock() {
        spare.push(used);
    }
}

/// Entries in a row that are encoded by one thread; fewer are not worth another.
const TOGETHER: usize = 1 << 14;

impl Assembler {
    /// Begins a file at `path`.
    ///
    /// # Errors
    /// A shape whose places need more than 64 bits, a side that is no tile's, or a file that cannot be made.
    pub fn new(
        path: &Path,
        shape: SparseShape,
        duplicates: Duplicates,
        overwrite: bool,
        workers: usize,
        io: &Io,
    ) -> Result<Assembler, EngineError> {
        if !shape.side.is_power_of_two() || shape.side as usize > outcore_coding::tiles::SIDE_MAX {
            return Err(EngineError::Argument(format!(
                "sparse: tiles of {} rows; a power of two up to {} is right",
                shape.side,
                outcore_coding::tiles::SIDE_MAX
            )));
        }
        let places = Places::new(&shape).ok_or_else(|| {
            EngineError::Argument(format!(
                "sparse: places in ({}, {}) need more than 64 bits",
                shape.rows, shape.columns
            ))
        })?;
        let add = match (shape.dtype, duplicates) {
            (Some(DType::Bool), Duplicates::Sum) => binary_kernel(Binary::LogicalOr, DType::Bool),
            (Some(dtype), Duplicates::Sum) => binary_kernel(Binary::Add, dtype),
            _ => None,
        };
        Ok(Assembler {
            writer: SparseWriter::create(path, shape.clone(), overwrite, io)?,
            encoding: Arc::new(Encoding {
                rules: Rules {
                    shape,
                    places,
                    duplicates,
                    add,
                },
                spare: Spare::default(),
            }),
            workers,
            encoder: TileRowEncoder::default(),
            tile: None,
            gathered: Gathered::default(),
            paid_spare: 0,
        })
    }

    /// Takes more entries: places in ascending order, also from one call to the next, and their values.
    ///
    /// # Errors
    /// Places out of order or outside the matrix, an entry that is there already where that is refused, or a file that
    /// cannot be written.
    pub fn add(&mut self, places: &[u64], values: &[u8], io: &Io) -> Result<(), EngineError> {
        match self.encoding.rules.places.is_wide && !places.is_empty() {
            true => Err(EngineError::Argument(format!(
                "sparse: places in ({}, {}) need more than 64 bits: tile rows go beside them",
                self.encoding.rules.shape.rows, self.encoding.rules.shape.columns
            ))),
            false => self.add_runs(None, places, values, io),
        }
    }

    /// As [`Self::add`], of places within tile rows, whose numbers come beside them.
    ///
    /// # Errors
    /// Likewise.
    pub fn add_wide(&mut self, tile_rows: &[u64], places: &[u64], values: &[u8], io: &Io) -> Result<(), EngineError> {
        match tile_rows.len() == places.len() {
            true => self.add_runs(Some(tile_rows), places, values, io),
            false => Err(EngineError::Shape(format!(
                "sparse: {} tile rows and {} places",
                tile_rows.len(),
                places.len()
            ))),
        }
    }

    fn add_runs(
        &mut self,
        tile_rows: Option<&[u64]>,
        places: &[u64],
        values: &[u8],
        io: &Io,
    ) -> Result<(), EngineError> {
        let item = self.encoding.rules.item();
        let runs = self.encoding.rules.runs(tile_rows, places, values)?;
        let given = |run: &Run| of_run(run, places, values, item);
        // The first tile may have begun before, and the last may go on; those between are whole.
        let whole = match runs.as_slice() {
            [_, whole @ .., _] if whole.iter().map(|run| run.place.len()).sum::<usize>() >= TOGETHER => whole,
            _ => &[],
        };
        for (position, run) in runs.iter().enumerate() {
            if position == 1 && !whole.is_empty() {
                self.add_whole(whole, given, io)?;
            }
            if position == 0 || position > whole.len() {
                self.begin_tile(run.tile, io)?;
                let (places, values) = given(run);
                self.encoding
                    .rules
                    .gather(run.tile, places, values, &mut self.gathered)?;
            }
        }
        Ok(())
    }

    /// Encodes whole tiles, some at a time, by all workers.
    fn add_whole<'a>(
        &mut self,
        runs: &[Run],
        given: impl Fn(&Run) -> (&'a [u64], &'a [u8]) + Sync,
        io: &Io,
    ) -> Result<(), EngineError> {
        let mut chunks: Vec<&[Run]> = vec![];
        let (mut begin, mut entries) = (0, 0);
        for (position, run) in runs.iter().enumerate() {
            entries += run.place.len();
            let ends = runs.get(position + 1).is_none_or(|next| next.tile.0 != run.tile.0);
            if ends || entries >= TOGETHER {
                chunks.push(&runs[begin..=position]);
                (begin, entries) = (position + 1, 0);
            }
        }
        let (encoding, next) = (&*self.encoding, AtomicUsize::new(0));
        let work = || -> Result<Vec<(usize, Whole)>, EngineError> {
            let mut found = vec![];
            while let (at, Some(chunk)) = next_of(&next, &chunks) {
                found.push((at, encoding.tiles(chunk, &given)?));
            }
            Ok(found)
        };
        let mut found = std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.workers).map(|_| scope.spawn(work)).collect();
            let mut found = work()?;
            for other in others {
                found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, EngineError>(found)
        })?;
        found.sort_unstable_by_key(|(at, _)| *at);
        found.into_iter().try_for_each(|(_, whole)| self.add_encoded(whole, io))
    }

    fn add_encoded(&mut self, mut whole: Whole, io: &Io) -> Result<(), EngineError> {
        let [first, last] = whole.tiles;
        self.begin_tile(first, io)?;
        self.encoder.append(&mut whole.encoder);
        give(&self.encoding.spare.encoders, whole.encoder);
        self.tile = Some(last);
        Ok(())
    }

    /// What makes tiles of entries, for other threads; [`Self::take`] takes what they have made.
    pub fn encoding(&self) -> Arc<Encoding> {
        self.encoding.clone()
    }

    /// As [`Self::add`], of what was encoded elsewhere.
    ///
    /// # Errors
    /// Likewise.
    pub fn take(&mut self, encoded: Encoded, io: &Io) -> Result<(), EngineError> {
        if let Some(first) = encoded.first {
            self.add_given(&first, io)?;
        }
        for whole in encoded.whole {
            self.add_encoded(whole, io)?;
        }
        encoded.last.map_or(Ok(()), |last| self.add_given(&last, io))
    }

    fn add_given(&mut self, given: &Given, io: &Io) -> Result<(), EngineError> {
        self.begin_tile(given.tile, io)?;
        let (places, values) = (&given.places, &given.values);
        self.encoding
            .rules
            .gather(given.tile, places, values, &mut self.gathered)
    }

    /// Ends the tile at work if the next entry belongs to another.
    fn begin_tile(&mut self, tile: TileNumber, io: &Io) -> Result<(), EngineError> {
        match self.tile {
            Some(at) if at == tile => return Ok(()),
            Some(at) if at > tile => return Err(out_of_order()),
            _ => {}
        }
        self.end_tile()?;
        if self.tile.is_some_and(|(row, _)| row != tile.0) {
            self.end_tile_row(io)?;
        }
        self.tile = Some(tile);
        Ok(())
    }

    fn end_tile(&mut self) -> Result<(), EngineError> {
        let Some(tile) = self.tile else { return Ok(()) };
        self.encoding.rules.end(tile, &mut self.gathered, &mut self.encoder)
    }

    fn end_tile_row(&mut self, io: &Io) -> Result<(), EngineError> {
        if let (Some((number, _)), false) = (self.tile, self.encoder.is_empty()) {
            let writer = &mut self.writer;
            self.encoder
                .take(|parts, entries| writer.add_parts(number, parts, entries, io))?;
        }
        Ok(())
    }

    /// Keeps so much of what workers have used at most, which is not counted in [`Self::held_bytes`] any more.
    pub fn keep_spare(&mut self, bytes: u64) {
        self.paid_spare = bytes as usize;
        if let Ok(mut encoders) = self.encoding.spare.encoders.lock() {
            while of_all(&encoders) > self.paid_spare {
                encoders.pop();
            }
        }
    }

    /// Bytes of memory that are held: most of all of the tile row at work.
    pub fn held_bytes(&self) -> usize {
        let encoders = self.encoding.spare.encoders.lock();
        let spare = encoders.map_or(0, |encoders| of_all(&encoders));
        let gathered = self.gathered.entries.capacity() * size_of::<u32>() + self.gathered.values.capacity();
        self.encoder.held_bytes() + self.writer.held_bytes() + gathered + spare.saturating_sub(self.paid_spare)
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// It cannot be written; nothing is left behind then.
    pub fn finish(mut self, io: &Io) -> Result<SparseShape, EngineError> {
        self.end_tile()?;
        self.end_tile_row(io)?;
        Ok(self.writer.finish(io)?)
    }
}

/// The next of some pieces of work, and its number.
fn next_of<'a, T>(next: &AtomicUsize, pieces: &'a [T]) -> (usize, Option<&'a T>) {
    let at = next.fetch_add(1, Ordering::Relaxed);
    (at, pieces.get(at))
}

/// Entries of one tile, of those that are given.
struct Run {
    tile: TileNumber,
    place: Range<usize>,
}

/// The places and values of a run.
fn of_run<'a>(run: &Run, places: &'a [u64], values: &'a [u8], item: usize) -> (&'a [u64], &'a [u8]) {
    let bytes = run.place.start * item..run.place.end * item;
    (&places[run.place.clone()], &values[bytes])
}

impl Encoding {
    /// Encodes entries in order, with tile rows beside their places where these are wide.
    ///
    /// # Errors
    /// As [`Assembler::add`].
    pub fn encode(&self, tile_rows: Option<&[u64]>, places: &[u64], values: &[u8]) -> Result<Encoded, EngineError> {
        let item = self.rules.item();
        let runs = self.rules.runs(tile_rows, places, values)?;
        let given = |run: &Run| of_run(run, places, values, item);
        let copied = |run: &Run| {
            let (places, values) = given(run);
            let (places, values) = (places.to_vec(), values.to_vec());
            Given {
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
            encoded.whole = rows.map(|row| self.tiles(row, &given)).collect::<Result<_, _>>()?;
            encoded.last = Some(copied(last));
        }
        Ok(encoded)
    }

    /// Encodes whole tiles of one tile row.
    fn tiles<'a>(&self, runs: &[Run], given: &impl Fn(&Run) -> (&'a [u64], &'a [u8])) -> Result<Whole, EngineError> {
        let (mut gathered, mut encoder) = (take(&self.spare.gathered), take(&self.spare.encoders));
        for run in runs {
            let (places, values) = given(run);
            self.rules.gather(run.tile, places, values, &mut gathered)?;
            self.rules.end(run.tile, &mut gathered, &mut encoder)?;
        }
        give(&self.spare.gathered, gathered);
        let tiles = [runs[0].tile, runs[runs.len() - 1].tile];
        Ok(Whole { tiles, encoder })
    }
}

impl Rules {
    fn item(&self) -> usize {
        self.shape.dtype.map_or(0, |dtype| dtype.size())
    }

    /// Where the entries of each tile are.
    fn runs(&self, tile_rows: Option<&[u64]>, places: &[u64], values: &[u8]) -> Result<Vec<Run>, EngineError> {
        let item = self.item();
        if values.len() != places.len() * item {
            return Err(EngineError::Shape(format!(
                "sparse: {} places and {} bytes of values of {item} bytes each",
                places.len(),
                values.len()
            )));
        }
        let (mut runs, mut done): (Vec<Run>, usize) = (vec![], 0);
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
            runs.push(Run {
                tile,
                place: done..done + same,
            });
            done += same;
        }
        Ok(runs)
    }

    /// Adds entries of a tile to those it has.
    fn gather(&self, tile: TileNumber, places: &[u64], values: &[u8], to: &mut Gathered) -> Result<(), EngineError> {
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
    fn check_inside(&self, tile: TileNumber, places: &[u64]) -> Result<(), EngineError> {
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
    fn of_matrix(&self, tile: TileNumber, place: u64) -> [u64; 2] {
        self.places.of_matrix(tile, place, self.shape.side)
    }

    /// An entry at the place of the one before.
    fn again(&self, tile: TileNumber, place: u64, value: &[u8], to: &mut Gathered) -> Result<(), EngineError> {
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
    fn end_sum(&self, tile: TileNumber, to: &mut Gathered) -> Result<(), EngineError> {
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
    fn end(&self, tile: TileNumber, gathered: &mut Gathered, to: &mut TileRowEncoder) -> Result<(), EngineError> {
        self.end_sum(tile, gathered)?;
        gathered.end(tile.1, self.item(), to);
        Ok(())
    }
}

impl Gathered {
    fn check_number(&self) -> Result<(), EngineError> {
        match self.entries.len() > ENTRIES_MAX {
            true => Err(EngineError::Argument("sparse: too many entries in one tile".into())),
            false => Ok(()),
        }
    }

    /// Encodes the entries, if there are any, and forgets them.
    fn end(&mut self, block: u32, item: usize, encoder: &mut TileRowEncoder) {
        if !self.entries.is_empty() {
            encoder.tile(block, &self.entries, &self.values, item);
        }
        self.entries.clear();
        self.values.clear();
        self.last = None;
    }
}

fn out_of_order() -> EngineError {
    EngineError::Argument("sparse: places are out of order".into())
}
