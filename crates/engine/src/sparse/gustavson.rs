//! The product of two sparse matrices, whose result is written as it is made: some tile rows of the first matrix at a time,
//! the tile rows of the second that they name passing by as often as there are such groups.
//!
//! What is read is known before, unless sums may come to more than there is room for; of what is made there are bounds:
//! [`super::forecast`]. The memory is one part of the session's, taken at the start and shared out: [`Shares`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outcore_coding::tiles::{listed_tiles, Rows, TileRow, TileRowEncoder, Values, ENTRIES_MAX};
use outcore_coding::Malformed;
use outcore_dtype::DType;
use outcore_kernels::cast_kernel;
use outcore_sparse::{rows_product, Batch, Mask, Operands, RowsProduct, Table};
use outcore_store::{Io, SparseShape, SparseWriter};

use super::meeting::{decoded_bytes, Listed, Meeting, RowRequest};
use super::operands::{ProductResources, Shares, SparseProduct, COPIES};
use super::parallel::in_order;
use super::terms::most_entries;
use super::SparseMatrix;
use crate::cancel::Watch;
use crate::EngineError;

/// Rows of the first matrix that are multiplied in one go, and their entries.
const CHUNK_ROWS: usize = 64;
const CHUNK_ENTRIES: usize = 4096;
/// Tiles that are read at once, for which `Shares` has memory.
const READERS: usize = 2;

/// Multiplies, and writes the result to `path`; opens it, of which nothing is read.
///
/// # Errors
/// Shapes or types that do not go together, a tile row of the result that does not fit into memory, files that cannot be
/// read or written. No file is left behind then.
pub fn multiply_sparse(
    what: &SparseProduct<'_>,
    resources: &ProductResources<'_>,
    path: &Path,
    overwrite: bool,
    watch: &mut Watch<'_>,
) -> Result<SparseMatrix, EngineError> {
    let shape = what.check()?;
    let workers = resources.threads.max(1);
    let shares = Shares::of(what, resources.memory, workers as u64);
    let mut run = ProductRun {
        resources,
        what,
        multiply: rows_product(what.semiring, what.dtype).ok_or_else(|| what.no_semiring())?,
        shares,
        meeting: Meeting::new(what, shares, resources.io)?,
        second: Second {
            matrix: what.second,
            dtype: what.dtype,
            share: shares.second,
            loaded: BTreeMap::new(),
        },
        tables: (0..workers).map(|_| Table::default()).collect(),
        shape: shape.clone(),
        watch,
    };
    let mut writer = SparseWriter::create(path, shape, overwrite, resources.io)?;
    let mut next = what.tiles.start;
    let mut size = usize::MAX;
    while next < what.tiles.end {
        // A group that comes to more than there is room for is begun again with half as many tile rows.
        let (group, after) = run.group(next)?;
        let mut from = 0;
        while from < group.len() {
            let to = group.len().min(from.saturating_add(size));
            match run.sums(&group[from..to])? {
                Some(sums) => {
                    let numbers = group[from..to].iter().map(|tile_row| tile_row.own.number);
                    run.write(&mut writer, numbers.zip(sums).collect())?;
                    from = to;
                }
                None if to - from == 1 => return Err(run.no_room(group[from].own.number, next)?),
                None => size = (to - from) / 2,
            }
        }
        next = after;
    }
    super::of_file(writer.finish_opened(resources.io)?)
}

/// Writes the tile rows of several matrices of one shape, none of which has some behind those of the next, to one file.
///
/// # Errors
/// Files that cannot be read or written, or are not so. No file is left behind then.
pub fn join(parts: &[SparseMatrix], path: &Path, overwrite: bool, io: &Io) -> Result<SparseShape, EngineError> {
    let refuse = |what: &str| EngineError::Argument(format!("sparse: parts that are put together {what}"));
    let first = parts.first().ok_or_else(|| refuse("are none"))?.file.matrix();
    let mut writer = SparseWriter::create(path, first.clone(), overwrite, io)?;
    let mut last = None;
    for part in parts {
        let shape = part.file.matrix();
        if (SparseShape {
            entries: first.entries,
            ..shape.clone()
        }) != *first
        {
            return Err(refuse("differ in shape or type"));
        }
        for tile in 0..part.file.tiles() {
            let (frame, offset) = part.read_tile(tile, io)?;
            for (record, place) in part.file.tile_rows(tile) {
                if last.is_some_and(|last| last >= record.number) {
                    return Err(refuse("overlap"));
                }
                last = Some(record.number);
                let buffer = writer.buffer();
                let begin = buffer.len();
                buffer.extend_from_slice(&frame[offset..][place]);
                writer.add(record.number, begin, record.entries, io)?;
            }
        }
    }
    Ok(writer.finish(io)?)
}

/// A tile row that was read: its entries by rows, and what tiles they are in.
#[derive(Clone, Debug)]
struct Decoded {
    number: u64,
    rows: Arc<Rows>,
    blocks: Arc<[(u32, u32)]>,
}

/// A tile row of the first matrix, and what the mask has there.
struct FirstRow {
    own: Decoded,
    mask: Option<Decoded>,
}

impl FirstRow {
    /// What of the second matrix it wants. `is_masked` says whether there is a mask at all.
    fn wanted(&self, is_masked: bool) -> RowRequest<'_> {
        RowRequest {
            number: self.own.number,
            first: Some(&self.own.blocks),
            mask: is_masked.then(|| self.mask.as_ref().map_or(&[][..], |mask| &mask.blocks)),
        }
    }
}

struct ProductRun<'a> {
    resources: &'a ProductResources<'a>,
    what: &'a SparseProduct<'a>,
    multiply: RowsProduct,
    shares: Shares,
    meeting: Meeting<'a>,
    second: Second<'a>,
    tables: Vec<Table>,
    shape: SparseShape,
    watch: &'a mut Watch<'a>,
}

impl ProductRun<'_> {
    fn item(&self) -> u64 {
        self.what.dtype.size() as u64
    }

    /// The tile rows of the first matrix from a tile on, as many as their share holds, and the tile behind them.
    fn group(&mut self, from: usize) -> Result<(Vec<FirstRow>, usize), EngineError> {
        let io = self.resources.io;
        let (tiles, after) = self.meeting.group(from, self.shares.first);
        let mut group = vec![];
        for tile in tiles {
            (self.watch)()?;
            let rows = match self.meeting.same.first_is_second {
                true => self.second.tile(tile, io)?.to_vec(),
                false => {
                    let is_wanted = |number| self.meeting.is_wanted(number);
                    self.what.first.decoded(tile, Some(self.what.dtype), &is_wanted, io)?
                }
            };
            let wanted = rows.into_iter().filter(|own| self.meeting.is_wanted(own.number));
            group.extend(wanted.map(|own| FirstRow { own, mask: None }));
        }
        if let Some((mask, _)) = self.what.mask {
            self.mask(mask, &mut group)?;
        }
        Ok((group, after))
    }

    /// Finds the mask's tile rows of a group.
    fn mask(&mut self, mask: &SparseMatrix, group: &mut [FirstRow]) -> Result<(), EngineError> {
        if self.meeting.same.mask_is_first {
            group.iter_mut().for_each(|row| row.mask = Some(row.own.clone()));
            return Ok(());
        }
        let io = self.resources.io;
        let numbers: BTreeSet<u64> = group.iter().map(|row| row.own.number).collect();
        let mut found = BTreeMap::new();
        for tile in self.meeting.mask_tiles(numbers.iter().copied()) {
            (self.watch)()?;
            let rows = match self.meeting.same.mask_is_second {
                true => self.second.tile(tile, io)?.to_vec(),
                false => mask.decoded(tile, None, &|number| numbers.contains(&number), io)?,
            };
            found.extend(rows.into_iter().map(|row| (row.number, row)));
        }
        for row in group {
            row.mask = found.remove(&row.own.number);
        }
        Ok(())
    }

    /// The products of some tile rows, or nothing where they come to more than there is room for.
    fn sums(&mut self, group: &[FirstRow]) -> Result<Option<Vec<Rows>>, EngineError> {
        let io = self.resources.io;
        let mut sums: Vec<Option<Rows>> = group.iter().map(|_| None).collect();
        let is_masked = self.what.mask.is_some();
        let needed = self.meeting.needed(group.iter().map(|row| row.wanted(is_masked)));
        if !self.meeting.stays {
            self.second.loaded.clear();
        }
        let mut rest: &[usize] = &needed;
        while !rest.is_empty() {
            let taken = self.second.load(rest, self.meeting.stays, io, self.watch)?;
            rest = &rest[taken..];
            let batch = self.second.batch();
            for at in 0..group.len() {
                let held: u64 = sums
                    .iter()
                    .flatten()
                    .map(|rows| self.sum_bytes(rows.entries() as u64))
                    .sum();
                let room = self.shares.sums.saturating_sub(held);
                let job = BatchProduct {
                    multiply: self.multiply,
                    row: &group[at],
                    batch: &batch,
                    before: sums[at].as_ref(),
                    complement: self.what.mask.is_some_and(|(_, complement)| complement),
                    masked: is_masked,
                    height: self.meeting.height(group[at].own.number) as usize,
                    columns: self.shape.columns,
                    room: (room / (COPIES * (8 + self.item()))).min(ENTRIES_MAX as u64),
                };
                match job.run(&mut self.tables, self.watch)? {
                    Some(rows) => sums[at] = Some(rows),
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(sums.into_iter().map(Option::unwrap_or_default).collect()))
    }

    fn sum_bytes(&self, entries: u64) -> u64 {
        COPIES * entries * (8 + self.item())
    }

    /// The refusal of a tile row in or behind a tile, with a limit under which it and all behind it fit.
    fn no_room(&mut self, number: u64, tile: usize) -> Result<EngineError, EngineError> {
        let (share, workers) = (self.shares.sums, self.tables.len() as u64);
        self.second.loaded.clear();
        let resources = (self.resources.memory / 2, self.resources.io);
        let most = most_entries(self.what, &self.meeting, tile, resources, self.watch)?;
        let memory = Shares::memory_for(self.what, self.sum_bytes(most + 1), workers);
        let more = memory
            .saturating_sub(self.resources.memory)
            .div_ceil(3)
            .saturating_mul(4);
        Ok(EngineError::Memory {
            operator: "spgemm".into(),
            need: self.sum_bytes(most),
            available: share,
            // Other memory of the process may have grown when it is tried again.
            smallest: self.resources.memory_limit.saturating_add(more).saturating_add(more / 64 + (1 << 20)),
            exact: false,
            detail: format!(
                "tile row {number} of the product has more than {} entries, a part of the memory that a matrix in smaller tiles \
                 (side=) makes larger",
                share / self.sum_bytes(1)
            ),
            planning: false,
        })
    }

    /// Writes tile rows, which are encoded by all workers.
    fn write(&mut self, writer: &mut SparseWriter, tile_rows: Vec<(u64, Rows)>) -> Result<(), EngineError> {
        let numbers: Vec<u64> = tile_rows.iter().map(|(number, _)| *number).collect();
        let left: Vec<Mutex<Option<Rows>>> = tile_rows.into_iter().map(|(_, rows)| Mutex::new(Some(rows))).collect();
        let coding = TileRowCoding {
            shape: &self.shape,
            dtype: self.what.dtype,
        };
        let heights: Vec<u64> = numbers.iter().map(|number| self.meeting.height(*number)).collect();
        let encoded = in_order(left.len(), self.tables.len(), self.watch, |at| {
            // Sums go as soon as they are encoded.
            let rows = left[at].lock().ok().and_then(|mut rows| rows.take());
            Ok(coding.encoded(heights[at] as usize, rows.unwrap_or_default()))
        })?;
        for (number, mut encoder) in numbers.into_iter().zip(encoded) {
            if encoder.is_empty() {
                continue;
            }
            let buffer = writer.buffer();
            let begin = buffer.len();
            let entries = encoder.finish(buffer);
            writer.add(number, begin, entries, self.resources.io)?;
        }
        Ok(())
    }
}

/// How tile rows of the result are coded.
struct TileRowCoding<'a> {
    shape: &'a SparseShape,
    /// Of the sums.
    dtype: DType,
}

impl TileRowCoding<'_> {
    /// A tile row of so many rows: its entries by column of tiles.
    fn encoded(&self, height: usize, mut rows: Rows) -> TileRowEncoder {
        let mut encoder = TileRowEncoder::default();
        if rows.entries() == 0 {
            return encoder;
        }
        let item = self.shape.dtype.map_or(0, |dtype| dtype.size());
        let values = match self.shape.dtype {
            None => Values::default(),
            Some(dtype) if dtype == self.dtype => std::mem::take(&mut rows.values),
            Some(dtype) => {
                let mut values = Values::zeroed(rows.entries() * item);
                cast_kernel(self.dtype, dtype)(rows.values.bytes(), values.bytes_mut());
                values
            }
        };
        let side = u64::from(self.shape.side);
        let mut blocks: BTreeMap<u32, (Vec<u32>, Vec<u8>)> = BTreeMap::new();
        for row in 0..height {
            let mut place = rows.place(row);
            while !place.is_empty() {
                let block = rows.columns[place.start] / side;
                let own = rows.columns[place.clone()].partition_point(|column| column / side == block);
                let (entries, bytes) = blocks.entry(block as u32).or_default();
                let columns = &rows.columns[place.start..place.start + own];
                entries.extend(columns.iter().map(|column| (row as u32) << 16 | (column % side) as u32));
                bytes.extend_from_slice(&values.bytes()[place.start * item..(place.start + own) * item]);
                place.start += own;
            }
        }
        drop((rows, values));
        for (block, (entries, values)) in blocks {
            encoder.tile(block, &entries, &values, item);
        }
        encoder
    }
}

/// A tile row times a batch, by all workers.
struct BatchProduct<'a> {
    multiply: RowsProduct,
    row: &'a FirstRow,
    batch: &'a Batch<'a>,
    before: Option<&'a Rows>,
    masked: bool,
    complement: bool,
    height: usize,
    /// Of the matrix.
    columns: u64,
    /// Entries that there is room for.
    room: u64,
}

impl BatchProduct<'_> {
    fn chunks(&self) -> Vec<std::ops::Range<usize>> {
        let (mut chunks, mut begin, mut entries) = (vec![], 0, 0);
        for row in 0..self.height {
            entries += self.row.own.rows.place(row).len();
            if entries >= CHUNK_ENTRIES || row + 1 - begin == CHUNK_ROWS || row + 1 == self.height {
                chunks.push(begin..row + 1);
                (begin, entries) = (row + 1, 0);
            }
        }
        chunks
    }

    fn run(&self, tables: &mut [Table], watch: &mut Watch<'_>) -> Result<Option<Rows>, EngineError> {
        let nothing = Rows::empty(self.height);
        let mask = self.masked.then(|| Mask {
            rows: self.row.mask.as_ref().map_or(&nothing, |mask| &mask.rows),
            complement: self.complement,
            columns: self.columns,
        });
        let (chunks, next) = (self.chunks(), AtomicUsize::new(0));
        let (made, ends) = (AtomicU64::new(0), AtomicBool::new(false));
        let work = |table: &mut Table, watch: &mut Watch<'_>| -> Result<Vec<(usize, Rows)>, EngineError> {
            let mut products = vec![];
            while !ends.load(Ordering::Relaxed) {
                let chunk = next.fetch_add(1, Ordering::Relaxed);
                let Some(rows) = chunks.get(chunk) else { break };
                let operands = Operands {
                    first: &self.row.own.rows,
                    rows: rows.clone(),
                    batch: self.batch,
                    before: self.before,
                    mask,
                };
                let product = (self.multiply)(&operands, table);
                let entries = product.entries() as u64;
                if made.fetch_add(entries, Ordering::Relaxed) + entries > self.room {
                    ends.store(true, Ordering::Relaxed);
                }
                products.push((chunk, product));
                watch().inspect_err(|_| ends.store(true, Ordering::Relaxed))?;
            }
            Ok(products)
        };
        let (own, others) = tables.split_first_mut().expect("there is a worker");
        let products = std::thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                .map(|table| scope.spawn(|| work(table, &mut || Ok(()))))
                .collect();
            let mut products = work(own, watch)?;
            for other in others {
                match other.join() {
                    Ok(part) => products.extend(part?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok::<_, EngineError>(products)
        });
        let mut products = products?;
        if ends.into_inner() {
            return Ok(None);
        }
        products.sort_unstable_by_key(|(chunk, _)| *chunk);
        let mut rows = Rows::default();
        for (_, part) in products {
            rows.append(&part);
        }
        Ok(Some(rows))
    }
}

/// The second matrix, of which as much is in memory as its share holds: all of it, or batch by batch in the order of its rows.
struct Second<'a> {
    matrix: &'a SparseMatrix,
    dtype: DType,
    share: u64,
    loaded: BTreeMap<usize, Vec<Decoded>>,
}

impl Second<'_> {
    /// The tile rows of a tile, read where they are not there.
    fn tile(&mut self, tile: usize, io: &Io) -> Result<&[Decoded], EngineError> {
        Ok(match self.loaded.entry(tile) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => place.insert(self.matrix.decoded(tile, Some(self.dtype), &|_| true, io)?),
        })
    }

    /// Reads tiles, as many as their share holds, several at once; gives their number.
    fn load(&mut self, tiles: &[usize], stays: bool, io: &Io, watch: &mut Watch<'_>) -> Result<usize, EngineError> {
        if !stays {
            self.loaded.clear();
        }
        let mut bytes = 0;
        let mut is_beyond = |(position, tile): (usize, &usize)| {
            bytes += decoded_bytes(&self.matrix.file, *tile, self.dtype.size() as u64);
            position > 0 && bytes > self.share
        };
        let taken = tiles.iter().enumerate().position(&mut is_beyond).unwrap_or(tiles.len());
        let missing = tiles[..taken].iter().filter(|tile| !self.loaded.contains_key(tile));
        let missing: Vec<usize> = missing.copied().collect();
        let read = in_order(missing.len(), READERS, watch, |at| {
            self.matrix.decoded(missing[at], Some(self.dtype), &|_| true, io)
        })?;
        self.loaded.extend(missing.into_iter().zip(read));
        Ok(taken)
    }

    fn batch(&self) -> Batch<'_> {
        let rows = self.loaded.values().flatten().map(|row| (row.number, &*row.rows));
        Batch {
            side: u64::from(self.matrix.file.matrix().side),
            tile_rows: rows.collect(),
        }
    }
}

impl SparseMatrix {
    /// The entries of a tile, tile row by tile row and in each row by row, with values of a type, or without any.
    pub(crate) fn rows_of_tile(
        &self,
        tile: usize,
        dtype: Option<DType>,
        io: &Io,
    ) -> Result<Vec<(u64, Rows)>, EngineError> {
        let rows = self.decode(tile, dtype, &|_| true, io)?;
        Ok(rows.into_iter().map(|(number, rows, _)| (number, rows)).collect())
    }

    /// As `rows_of_tile`, of the tile rows that are wanted, and with the tiles they have.
    fn decoded(
        &self,
        tile: usize,
        dtype: Option<DType>,
        is_wanted: &dyn Fn(u64) -> bool,
        io: &Io,
    ) -> Result<Vec<Decoded>, EngineError> {
        let rows = self.decode(tile, dtype, is_wanted, io)?.into_iter();
        Ok(rows
            .map(|(number, rows, blocks)| Decoded {
                number,
                rows: Arc::new(rows),
                blocks: blocks.into(),
            })
            .collect())
    }

    fn decode(
        &self,
        tile: usize,
        dtype: Option<DType>,
        is_wanted: &dyn Fn(u64) -> bool,
        io: &Io,
    ) -> Result<Vec<(u64, Rows, Listed)>, EngineError> {
        let (frame, offset) = self.read_tile(tile, io)?;
        let matrix = self.file.matrix();
        let (side, item) = (u64::from(matrix.side), matrix.dtype.map_or(0, |dtype| dtype.size()));
        let malformed = |Malformed(what): Malformed| EngineError::Store(self.file.malformed(what));
        let mut tile_rows = vec![];
        for (record, place) in self.file.tile_rows(tile) {
            if !is_wanted(record.number) {
                continue;
            }
            let bytes = &frame[offset..][place];
            let row = TileRow::new(bytes, item).map_err(malformed)?;
            let height = side.min(matrix.rows - record.number * side) as usize;
            let entries = row.entries() as usize;
            let size = dtype.map_or(0, |dtype| dtype.size());
            let mut values = Values::zeroed(entries * size);
            match (matrix.dtype, dtype) {
                (_, None) => {}
                (Some(from), Some(to)) => cast_kernel(from, to)(row.values(), values.bytes_mut()),
                (None, Some(to)) => cast_kernel(DType::Bool, to)(&vec![1; entries], values.bytes_mut()),
            }
            let rows = Rows::new(&row, side, height, values.bytes(), size).map_err(malformed)?;
            tile_rows.push((record.number, rows, listed_tiles(bytes).map_err(malformed)?));
        }
        Ok(tile_rows)
    }
}
