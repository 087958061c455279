//! A stored sparse matrix made of entries that come in the order of its tiles.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use outcore_coding::tiles::TileRowEncoder;
use outcore_dtype::DType;
use outcore_kernels::{binary_kernel, Binary};
use outcore_store::{Io, SparseShape, SparseWriter};

use super::encoding::{
    give, of_all, of_run, out_of_order, Duplicates, Encoded, EntryEncoder, Gathered, Rules, SpareBuffers, TileEntries,
    TileRun, WholeTiles,
};
use super::places::{Places, TileNumber};
use crate::EngineError;

/// Takes entries in the order of their places and writes tile row after tile row.
pub struct Assembler {
    writer: SparseWriter,
    encoding: Arc<EntryEncoder>,
    /// Threads that encode tiles.
    workers: usize,
    encoder: TileRowEncoder,
    /// The tile at work.
    tile: Option<TileNumber>,
    gathered: Gathered,
    /// Bytes of what workers have used that somebody else counts.
    paid_spare: usize,
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
            encoding: Arc::new(EntryEncoder {
                rules: Rules {
                    shape,
                    places,
                    duplicates,
                    add,
                },
                spare: SpareBuffers::default(),
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
        let entries_of = |run: &TileRun| of_run(run, places, values, item);
        // The first tile may have begun before, and the last may go on; those between are whole.
        let whole = match runs.as_slice() {
            [_, whole @ .., _] if whole.iter().map(|run| run.place.len()).sum::<usize>() >= TOGETHER => whole,
            _ => &[],
        };
        for (position, run) in runs.iter().enumerate() {
            if position == 1 && !whole.is_empty() {
                self.add_whole(whole, entries_of, io)?;
            }
            if position == 0 || position > whole.len() {
                self.begin_tile(run.tile, io)?;
                let (places, values) = entries_of(run);
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
        runs: &[TileRun],
        entries_of: impl Fn(&TileRun) -> (&'a [u64], &'a [u8]) + Sync,
        io: &Io,
    ) -> Result<(), EngineError> {
        let mut chunks: Vec<&[TileRun]> = vec![];
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
        let work = || -> Result<Vec<(usize, WholeTiles)>, EngineError> {
            let mut tiles = vec![];
            while let (at, Some(chunk)) = next_of(&next, &chunks) {
                tiles.push((at, encoding.tiles(chunk, &entries_of)?));
            }
            Ok(tiles)
        };
        let mut tiles = std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.workers).map(|_| scope.spawn(work)).collect();
            let mut tiles = work()?;
            for other in others {
                tiles.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, EngineError>(tiles)
        })?;
        tiles.sort_unstable_by_key(|(at, _)| *at);
        tiles.into_iter().try_for_each(|(_, whole)| self.add_encoded(whole, io))
    }

    fn add_encoded(&mut self, mut whole: WholeTiles, io: &Io) -> Result<(), EngineError> {
        let [first, last] = whole.tiles;
        self.begin_tile(first, io)?;
        self.encoder.append(&mut whole.encoder);
        give(&self.encoding.spare.encoders, whole.encoder);
        self.tile = Some(last);
        Ok(())
    }

    /// What makes tiles of entries, for other threads; [`Self::take`] takes what they have made.
    pub fn encoding(&self) -> Arc<EntryEncoder> {
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

    fn add_given(&mut self, entries: &TileEntries, io: &Io) -> Result<(), EngineError> {
        self.begin_tile(entries.tile, io)?;
        let (places, values) = (&entries.places, &entries.values);
        self.encoding
            .rules
            .gather(entries.tile, places, values, &mut self.gathered)
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
