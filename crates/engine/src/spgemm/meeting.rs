//! What of two sparse matrices has to be read for their product: which tiles meet, and meet where the mask lets them.
//!
//! The product asks here as it goes on, and its forecast asks the same before, so that they agree. What tiles a tile row
//! has is known of those that were read, and of others by their heads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use outcore_coding::tiles::{listed_tiles, Rows};
use outcore_coding::Malformed;
use outcore_store::{Io, Source, SparseFile};

use super::operands::{Shares, SparseProduct};
use crate::sparse::{Listed, SparseMatrix};
use crate::EngineError;

/// As listed; nothing where that is not known.
pub(super) type TileColumns = Option<Listed>;

/// Heads are read where that takes so much less than the tile.
const HEADS_SHARE: u64 = 16;

/// The matrices that are the same file as another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Same {
    /// The first, of which the second is all in memory.
    pub first_is_second: bool,
    pub mask_is_first: bool,
    /// The mask, as `first_is_second`.
    pub mask_is_second: bool,
}

/// A tile row of the second matrix.
#[derive(Debug)]
struct Row {
    number: u64,
    tile: usize,
    blocks: TileColumns,
}

#[derive(Debug)]
pub(super) struct Meeting<'a> {
    what: &'a SparseProduct<'a>,
    rows: Vec<Row>,
    /// Tile rows of the mask: the tile they are in, and their entries.
    mask: BTreeMap<u64, (usize, u64)>,
    pub same: Same,
    /// Whether all of the second matrix may stay in memory.
    pub stays: bool,
    /// What was read of heads.
    pub head_bytes: u64,
}

/// The part of a tile row of the product that is asked for.
pub(super) struct RowRequest<'b> {
    /// The tiles of the first matrix in it.
    pub first: Option<&'b [(u32, u32)]>,
    pub number: u64,
    /// The tiles of the mask in it, where there is a mask.
    pub mask: Option<&'b [(u32, u32)]>,
}

/// Bytes of a tile's entries, row by row.
pub(super) fn decoded_bytes(file: &SparseFile, tile: usize, item: u64) -> u64 {
    let side = u64::from(file.matrix().side);
    file.tile_rows(tile)
        .map(|(record, _)| Rows::bytes_of(record.entries, side, item as usize))
        .sum()
}

/// The tiles that tile rows list in their heads, where these have checksums.
pub(super) fn blocks_of_tile(matrix: &SparseMatrix, tile: usize, io: &Io) -> Result<Vec<TileColumns>, EngineError> {
    if matrix.file.heads_bytes(tile).is_none() {
        return Ok(matrix.file.tile_rows(tile).map(|_| None).collect());
    }
    let malformed = |Malformed(what): Malformed| EngineError::Store(matrix.file.malformed(what));
    let heads = matrix.file.heads(tile, io)?;
    heads
        .iter()
        .map(|head| listed_tiles(head).map(Some).map_err(malformed))
        .collect()
}

impl<'a> Meeting<'a> {
    /// Looks at the directories, and where a mask may spare tiles of the second matrix, at the heads of its tile rows.
    pub fn new(what: &'a SparseProduct<'a>, shares: Shares, io: &Io) -> Result<Meeting<'a>, EngineError> {
        let (first, second) = (&what.first.file, &what.second.file);
        let item = what.dtype.size() as u64;
        let decoded = (0..second.tiles()).map(|tile| decoded_bytes(second, tile, item));
        let stays = decoded.fold(0, u64::saturating_add) <= shares.second;
        let is = |a: &SparseFile, b: &SparseFile| a.identity() == b.identity();
        let mask_is = |other: &SparseFile| what.mask.is_some_and(|(mask, _)| is(&mask.file, other));
        let mut meeting = Meeting {
            rows: vec![],
            mask: BTreeMap::new(),
            same: Same {
                first_is_second: stays && is(first, second),
                mask_is_first: mask_is(first),
                mask_is_second: stays && mask_is(second),
            },
            stays,
            head_bytes: 0,
            what,
        };
        if let Some((mask, _)) = what.mask {
            for tile in 0..mask.file.tiles() {
                let records = mask.file.tile_rows(tile);
                meeting
                    .mask
                    .extend(records.map(|(record, _)| (record.number, (tile, record.entries))));
            }
        }
        // What is read as the first matrix is there.
        let may_spare = meeting.may_spare() && !meeting.same.first_is_second;
        for tile in 0..second.tiles() {
            let cost = second.heads_bytes(tile).filter(|bytes| {
                let pays = || bytes.saturating_mul(HEADS_SHARE) <= tile_cost(second, tile, io).unwrap_or(0);
                may_spare && meeting.head_bytes + bytes <= shares.heads && pays()
            });
            let blocks = match cost {
                Some(bytes) => {
                    meeting.head_bytes += bytes;
                    blocks_of_tile(what.second, tile, io)?
                }
                None => second.tile_rows(tile).map(|_| None).collect(),
            };
            for ((record, _), blocks) in second.tile_rows(tile).zip(blocks) {
                meeting.rows.push(Row {
                    number: record.number,
                    tile,
                    blocks,
                });
            }
        }
        Ok(meeting)
    }

    /// Whether some tile of the product may be none that the mask lets through.
    fn may_spare(&self) -> bool {
        let Some((mask, complement)) = self.what.mask else {
            return false;
        };
        let (shape, side) = (mask.file.matrix(), u64::from(mask.file.matrix().side));
        let height = side.min(shape.rows);
        let full = |entries: u64| u128::from(entries) >= u128::from(height) * u128::from(side.min(shape.columns));
        match complement {
            false => shape.columns > side,
            true => self.mask.values().any(|(_, entries)| full(*entries)),
        }
    }

    pub fn height(&self, number: u64) -> u64 {
        let shape = self.what.first.file.matrix();
        let side = u64::from(shape.side);
        side.min(shape.rows - number * side)
    }

    fn columns(&self) -> u64 {
        self.what.second.file.matrix().columns
    }

    /// Places of a tile row of the product that the mask lets through.
    pub fn places(&self, number: u64) -> u128 {
        let all = u128::from(self.height(number)) * u128::from(self.columns());
        let named = self.mask.get(&number).map_or(0, |(_, entries)| u128::from(*entries));
        match self.what.mask {
            None => all,
            Some((_, false)) => named.min(all),
            Some((_, true)) => all.saturating_sub(named),
        }
    }

    /// Whether a tile row of the product may have entries.
    pub fn is_wanted(&self, number: u64) -> bool {
        self.places(number) > 0
    }

    /// The tiles of the first matrix from one on that are multiplied together, as many as a share of the memory holds, and
    /// the tile behind them.
    pub fn group(&self, from: usize, share: u64) -> (Vec<usize>, usize) {
        let file = &self.what.first.file;
        let item = self.what.dtype.size() as u64;
        let (mut group, mut bytes, mut tile) = (vec![], 0u64, from);
        while tile < self.what.tiles.end {
            if file.tile_rows(tile).any(|(record, _)| self.is_wanted(record.number)) {
                bytes = bytes.saturating_add(decoded_bytes(file, tile, item));
                if !group.is_empty() && bytes > share {
                    break;
                }
                group.push(tile);
            }
            tile += 1;
        }
        (group, tile)
    }

    /// The tiles of the mask in which some tile rows are.
    pub fn mask_tiles(&self, numbers: impl Iterator<Item = u64>) -> BTreeSet<usize> {
        numbers.filter_map(|number| Some(self.mask.get(&number)?.0)).collect()
    }

    /// The tiles of the second matrix that some tile rows of the first meet, where the mask lets them.
    pub fn needed<'b>(&self, group: impl Iterator<Item = RowRequest<'b>>) -> Vec<usize> {
        let side = u64::from(self.what.first.file.matrix().side);
        let own = u64::from(self.what.second.file.matrix().side);
        let mut tiles = BTreeSet::new();
        for wanted in group {
            let every = [(0, 0)];
            let blocks = wanted.first.unwrap_or(&every);
            for (block, _) in blocks {
                let columns = match wanted.first {
                    Some(_) => u64::from(*block) * side..(u64::from(*block) + 1) * side,
                    None => 0..u64::MAX,
                };
                let begin = self.rows.partition_point(|row| row.number < columns.start / own);
                for row in &self.rows[begin..] {
                    if row.number * own >= columns.end {
                        break;
                    }
                    if !tiles.contains(&row.tile) && self.meets(&wanted, row) {
                        tiles.insert(row.tile);
                    }
                }
            }
        }
        tiles.into_iter().collect()
    }

    /// Whether the mask lets something of a tile row of the second matrix into one of the product.
    fn meets(&self, wanted: &RowRequest<'_>, row: &Row) -> bool {
        let (Some((_, complement)), Some(mask), Some(blocks)) = (self.what.mask, wanted.mask, &row.blocks) else {
            return true;
        };
        let side = u64::from(self.what.first.file.matrix().side);
        let own = u64::from(self.what.second.file.matrix().side);
        let height = self.height(wanted.number);
        let columns = |block: u64, side: u64| block * side..((block + 1) * side).min(self.columns());
        let lets_through = |range: Range<u64>| {
            let tiles = range.start / side..range.end.div_ceil(side);
            let begin = mask.partition_point(|(block, _)| u64::from(*block) < tiles.start);
            let named = mask[begin..]
                .iter()
                .take_while(|(block, _)| u64::from(*block) < tiles.end);
            if !complement {
                return named.count() > 0;
            }
            let full = named.filter(|(block, entries)| {
                let columns = columns(u64::from(*block), side);
                u64::from(*entries) >= height * (columns.end - columns.start)
            });
            (full.count() as u64) < tiles.end - tiles.start
        };
        blocks
            .iter()
            .any(|(block, _)| lets_through(columns(u64::from(*block), own)))
    }

    /// The most terms that an entry of the first matrix in a column of tiles can have: the entries of one row of the second.
    pub fn terms(&self, block: Option<u32>, entries: &[u64]) -> u64 {
        let side = u64::from(self.what.first.file.matrix().side);
        let own = u64::from(self.what.second.file.matrix().side);
        let columns = block.map_or(0..u64::MAX, |block| {
            u64::from(block) * side..(u64::from(block) + 1) * side
        });
        let begin = self.rows.partition_point(|row| row.number < columns.start / own);
        let rows = self.rows[begin..].iter().zip(&entries[begin..]);
        rows.take_while(|(row, _)| row.number * own < columns.end)
            .map(|(_, entries)| (*entries).min(self.columns()))
            .max()
            .unwrap_or(0)
    }
}

/// Bytes that reading a tile takes.
pub(super) fn tile_cost(file: &SparseFile, tile: usize, io: &Io) -> Result<u64, EngineError> {
    let region = outcore_store::Region::new(vec![tile as u64, 0], vec![1, file.shape()[1]]);
    Ok(file.cost(&region, io)?.read_bytes)
}
