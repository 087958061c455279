//! The product of two sparse matrices, whose result is written as it is made: some tile rows of the first matrix at a time,
//! the tile rows of the second that they name passing by as often as there are such groups.
//!
//! Bytes to read are known before, unless sums may come to more than there is room for; bytes to write are bounded:
//! [`super::forecast()`]. The memory is one part of the session's, taken at the start and shared out: [`Shares`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outcore_coding::tiles::{Rows, TileRowEncoder, ENTRIES_MAX};
use outcore_dtype::DType;
use outcore_sparse::{rows_product, Batch, Mask, Operands, RowsProduct, Table};
use outcore_store::{SparseShape, SparseWriter};

use super::ahead::{OperandTile, ReadAhead};
use super::coding::TileRowCoding;
use super::meeting::{decoded_bytes, Meeting, RowRequest};
use super::operands::{ProductOperand, Shares, SparseProduct, COPIES};
use super::terms::most_entries;
use crate::live::{LiveMemory, LiveOperator, Resources, Watch};
use crate::sparse::{self, each_in_order, in_order, SparseMatrix, TileBytes};
use crate::EngineError;

/// Rows of the first matrix that are multiplied in one go, and their entries.
const CHUNK_ROWS: usize = 64;
const CHUNK_ENTRIES: usize = 4096;
/// Tiles that are read at once, for which `Shares` has memory.
const READERS: usize = 2;

/// A product that is written to a file.
#[derive(Debug)]
pub struct StoredProduct<'a> {
    pub product: SparseProduct<'a>,
    pub path: &'a Path,
    pub overwrite: bool,
}

impl LiveOperator for StoredProduct<'_> {
    /// The result, opened; nothing of it is read.
    type Output = SparseMatrix;

    fn name(&self) -> &'static str {
        "spgemm"
    }

    fn memory(&self, _threads: usize) -> LiveMemory {
        LiveMemory::working(0, u64::MAX)
    }

    /// Multiplies. Shapes or types that do not go together are errors, and tile rows of the result that do not fit into memory; no
    /// file is left behind then.
    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<SparseMatrix, EngineError> {
        let what = &self.product;
        let shape = what.check()?;
        let workers = Shares::workers(resources.memory, resources.threads);
        let shares = Shares::of(what, resources.memory, workers as u64);
        let ahead = ReadAhead::new(what, resources.io, shares.ahead);
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
                ahead: &ahead,
            },
            ahead: &ahead,
            tables: (0..workers).map(|_| Table::default()).collect(),
            shape: shape.clone(),
        };
        let mut writer = SparseWriter::create(self.path, shape, self.overwrite, resources.io)?;
        std::thread::scope(|scope| {
            let _end = ahead.until_dropped();
            scope.spawn(|| ahead.work());
            run.write_all(&mut writer, watch)
        })?;
        sparse::of_file(writer.finish_opened(resources.io)?)
    }
}

/// A tile row that was read: its entries by rows, and what tiles they are in.
#[derive(Clone, Debug)]
struct Decoded {
    number: u64,
    rows: Arc<Rows>,
    blocks: Arc<[(u32, u32)]>,
}

/// The tile rows of a tile that are wanted, with values of a type, or without any.
fn decoded(
    matrix: &SparseMatrix,
    tile: usize,
    bytes: &TileBytes,
    dtype: Option<DType>,
    is_wanted: &dyn Fn(u64) -> bool,
) -> Result<Vec<Decoded>, EngineError> {
    let rows = matrix.decode(tile, bytes, dtype, is_wanted)?.into_iter();
    Ok(rows
        .map(|(number, rows, blocks)| Decoded {
            number,
            rows: Arc::new(rows),
            blocks: blocks.into(),
        })
        .collect())
}

/// A tile row of the first matrix, and what the mask has there.
struct FirstRow {
    own: Decoded,
    mask: Option<Decoded>,
}

impl FirstRow {
    /// The request for tiles of the second matrix. `is_masked` says whether there is a mask at all.
    fn wanted(&self, is_masked: bool) -> RowRequest<'_> {
        RowRequest {
            number: self.own.number,
            first: Some(&self.own.blocks),
            mask: is_masked.then(|| self.mask.as_ref().map_or(&[][..], |mask| &mask.blocks)),
        }
    }
}

struct ProductRun<'a> {
    resources: &'a Resources<'a>,
    what: &'a SparseProduct<'a>,
    multiply: RowsProduct,
    shares: Shares,
    meeting: Meeting<'a>,
    second: Second<'a>,
    ahead: &'a ReadAhead<'a>,
    tables: Vec<Table>,
    shape: SparseShape,
}

impl ProductRun<'_> {
    /// Multiplies group after group, and writes them.
    fn write_all(&mut self, writer: &mut SparseWriter, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        let mut next = self.what.tiles.start;
        let mut size = usize::MAX;
        while next < self.what.tiles.end {
            // A group that comes to more than there is room for is begun again with half as many tile rows.
            let (group, after) = self.group(next, watch)?;
            let mut from = 0;
            while from < group.len() {
                let to = group.len().min(from.saturating_add(size));
                let behind = (to == group.len()).then_some(after);
                match self.sums(&group[from..to], behind, watch)? {
                    Some(sums) => {
                        let numbers = group[from..to].iter().map(|tile_row| tile_row.own.number);
                        self.write(writer, numbers.zip(sums).collect(), watch)?;
                        from = to;
                    }
                    None if to - from == 1 => return Err(self.no_room(group[from].own.number, next, watch)?),
                    None => size = (to - from) / 2,
                }
            }
            next = after;
        }
        Ok(())
    }

    fn item(&self) -> u64 {
        self.what.dtype.size() as u64
    }

    /// The tile rows of the first matrix from a tile on, as many as their share holds, and the tile behind them.
    fn group(&mut self, from: usize, watch: &mut Watch<'_>) -> Result<(Vec<FirstRow>, usize), EngineError> {
        let (tiles, after) = self.meeting.group(from, self.shares.first);
        self.ahead.ask(self.operands_of(&tiles).into_iter());
        let mut group = vec![];
        for tile in tiles {
            watch()?;
            let rows = match self.meeting.same.first_is_second {
                true => self.second.tile(tile)?.to_vec(),
                false => {
                    let is_wanted = |number| self.meeting.is_wanted(number);
                    let bytes = self.ahead.take((ProductOperand::First, tile))?;
                    decoded(self.what.first, tile, &bytes, Some(self.what.dtype), &is_wanted)?
                }
            };
            let wanted = rows.into_iter().filter(|own| self.meeting.is_wanted(own.number));
            group.extend(wanted.map(|own| FirstRow { own, mask: None }));
        }
        if let Some((mask, _)) = self.what.mask {
            self.mask(mask, &mut group, watch)?;
        }
        Ok((group, after))
    }

    /// Finds the mask's tile rows of a group.
    fn mask(&mut self, mask: &SparseMatrix, group: &mut [FirstRow], watch: &mut Watch<'_>) -> Result<(), EngineError> {
        if self.meeting.same.mask_is_first {
            group.iter_mut().for_each(|row| row.mask = Some(row.own.clone()));
            return Ok(());
        }
        let numbers: BTreeSet<u64> = group.iter().map(|row| row.own.number).collect();
        let mut found = BTreeMap::new();
        for tile in self.meeting.mask_tiles(numbers.iter().copied()) {
            watch()?;
            let rows = match self.meeting.same.mask_is_second {
                true => self.second.tile(tile)?.to_vec(),
                false => {
                    let bytes = self.ahead.take((ProductOperand::Mask, tile))?;
                    decoded(mask, tile, &bytes, None, &|number| numbers.contains(&number))?
                }
            };
            found.extend(rows.into_iter().map(|row| (row.number, row)));
        }
        for row in group {
            row.mask = found.remove(&row.own.number);
        }
        Ok(())
    }

    /// The tiles that are read for the tile rows of some tiles of the first matrix, but for those of the second they meet.
    fn operands_of(&self, tiles: &[usize]) -> Vec<OperandTile> {
        let same = self.meeting.same;
        let of_second = |own: ProductOperand, is_second: bool| if is_second { ProductOperand::Second } else { own };
        let first = of_second(ProductOperand::First, same.first_is_second);
        let mut found: Vec<OperandTile> = tiles.iter().map(|tile| (first, *tile)).collect();
        if self.what.mask.is_some() && !same.mask_is_first {
            let rows = tiles.iter().flat_map(|tile| self.what.first.file.tile_rows(*tile));
            let numbers = rows
                .map(|(record, _)| record.number)
                .filter(|number| self.meeting.is_wanted(*number));
            let mask = of_second(ProductOperand::Mask, same.mask_is_second);
            found.extend(self.meeting.mask_tiles(numbers).into_iter().map(|tile| (mask, tile)));
        }
        found.retain(|(operand, tile)| *operand != ProductOperand::Second || !self.second.loaded.contains_key(tile));
        found
    }

    /// Has the tiles be read that come next: those of the second matrix that are left for these sums, and where none is, those of
    /// the first from a tile on.
    fn read_ahead(&self, rest: &[usize], behind: Option<usize>) {
        let missing = rest.iter().filter(|tile| !self.second.loaded.contains_key(tile));
        self.ahead.ask(missing.map(|tile| (ProductOperand::Second, *tile)));
        if let Some(behind) = behind.filter(|tile| rest.is_empty() && *tile < self.what.tiles.end) {
            let (tiles, _) = self.meeting.group(behind, self.shares.first);
            self.ahead.ask(self.operands_of(&tiles).into_iter());
        }
    }

    /// The products of some tile rows, or nothing where they come to more than there is room for. Behind the last of a group is
    /// the tile of the next.
    fn sums(
        &mut self,
        group: &[FirstRow],
        behind: Option<usize>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Vec<Rows>>, EngineError> {
        let mut sums: Vec<Option<Rows>> = group.iter().map(|_| None).collect();
        let is_masked = self.what.mask.is_some();
        let needed = self.meeting.needed(group.iter().map(|row| row.wanted(is_masked)));
        if !self.meeting.stays {
            self.second.loaded.clear();
        }
        let mut rest: &[usize] = &needed;
        self.read_ahead(rest, None);
        while !rest.is_empty() {
            let taken = self.second.load(rest, self.meeting.stays, watch)?;
            rest = &rest[taken..];
            self.read_ahead(rest, behind);
            let batch = self.second.batch();
            for at in 0..group.len() {
                let bytes_of = |rows: &Rows| self.sum_bytes(rows.entries() as u64);
                let others = sums.iter().enumerate().filter(|(row, _)| *row != at);
                let others: u64 = others.filter_map(|(_, rows)| rows.as_ref()).map(bytes_of).sum();
                // Its own sums so far are there once beside those that are made of them.
                let before = sums[at].as_ref().map_or(0, bytes_of) / COPIES;
                let room = self.shares.sums.saturating_sub(others + before);
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
                match job.run(&mut self.tables, watch)? {
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
    fn no_room(&mut self, number: u64, tile: usize, watch: &mut Watch<'_>) -> Result<EngineError, EngineError> {
        let (share, workers) = (self.shares.sums, self.tables.len() as u64);
        self.second.loaded.clear();
        let resources = (self.resources.memory / 2, self.resources.io);
        let most = most_entries(self.what, &self.meeting, tile, resources, watch)?;
        let memory = Shares::memory_for(self.what, self.sum_bytes(most + 1) / COPIES * (COPIES + 1), workers);
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
    fn write(
        &mut self,
        writer: &mut SparseWriter,
        mut tile_rows: Vec<(u64, Rows)>,
        watch: &mut Watch<'_>,
    ) -> Result<(), EngineError> {
        let (workers, io) = (self.tables.len(), self.resources.io);
        let coding = TileRowCoding {
            shape: &self.shape,
            dtype: self.what.dtype,
        };
        let mut pieces = vec![];
        for (at, (number, rows)) in tile_rows.iter().enumerate() {
            let height = self.meeting.height(*number) as usize;
            pieces.extend(
                coding
                    .pieces(rows.entries(), workers)
                    .map(|blocks| (at, height, blocks)),
            );
        }
        // Sums go with the last piece of them.
        let left: Vec<Mutex<Option<Arc<Rows>>>> = tile_rows
            .iter_mut()
            .map(|(_, rows)| Mutex::new(Some(Arc::new(std::mem::take(rows)))))
            .collect();
        let locked = |at: usize| left[at].lock().unwrap_or_else(PoisonError::into_inner);
        let encode = |piece: usize| {
            let (at, height, blocks) = &pieces[piece];
            let rows = locked(*at).clone();
            Ok(rows
                .map(|rows| coding.encoded(*height, &rows, blocks))
                .unwrap_or_default())
        };
        let (mut piece, mut tiles) = (0, vec![]);
        each_in_order(pieces.len(), workers, watch, encode, |encoder| {
            let at = pieces[piece].0;
            piece += 1;
            tiles.push(encoder);
            if pieces.get(piece).is_some_and(|next| next.0 == at) {
                return Ok(());
            }
            locked(at).take();
            let tiles = std::mem::take(&mut tiles);
            if tiles.iter().all(TileRowEncoder::is_empty) {
                return Ok(());
            }
            let number = tile_rows[at].0;
            let add = |parts: &[&[u8]], entries: u64| writer.add_parts(number, parts, entries, io);
            Ok(TileRowEncoder::joined(&tiles, add)?)
        })
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
    fn chunks(&self) -> Vec<Range<usize>> {
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
        Ok(Some(Rows::joined(products.into_iter().map(|(_, rows)| rows).collect())))
    }
}

/// The second matrix, of which as much is in memory as its share holds: all of it, or batch by batch in the order of its rows.
struct Second<'a> {
    matrix: &'a SparseMatrix,
    dtype: DType,
    share: u64,
    loaded: BTreeMap<usize, Vec<Decoded>>,
    ahead: &'a ReadAhead<'a>,
}

impl Second<'_> {
    /// The tile rows of a tile, read where they are not there.
    fn tile(&mut self, tile: usize) -> Result<&[Decoded], EngineError> {
        if !self.loaded.contains_key(&tile) {
            let decoded = self.read(tile)?;
            self.loaded.insert(tile, decoded);
        }
        Ok(&self.loaded[&tile])
    }

    fn read(&self, tile: usize) -> Result<Vec<Decoded>, EngineError> {
        let bytes = self.ahead.take((ProductOperand::Second, tile))?;
        decoded(self.matrix, tile, &bytes, Some(self.dtype), &|_| true)
    }

    /// Reads tiles, as many as their share holds, several at once; gives their number.
    fn load(&mut self, tiles: &[usize], stays: bool, watch: &mut Watch<'_>) -> Result<usize, EngineError> {
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
        let read = in_order(missing.len(), READERS, watch, |at| self.read(missing[at]))?;
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
