//! Runs: so many elements as fit the memory several times, sorted, one task each.

use std::sync::Arc;

use outcore_kernels::sort::{
    gather_items, sort_index, sort_index_workspace_bytes, sort_keys_from, sort_workspace_bytes, KeyOrder,
};

use super::Records;
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;

/// How runs are cut and what is noted of them.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub records: Records,
    /// Elements of a run.
    pub run: u64,
    /// Every so many elements of a run a key is noted, and its last one; nothing where one run is all.
    pub stride: Option<u64>,
    /// The columns of sorted runs, then the noted keys.
    results: Vec<Grid>,
}

impl Form {
    pub fn new(records: Records, run: u64, stride: Option<u64>) -> Form {
        let mut results = records.columns.clone();
        if let Some(stride) = stride {
            results.iter_mut().for_each(|column| column.tile = vec![run]);
            let noted = run.div_ceil(stride) + 1;
            results.push(Grid {
                shape: vec![records.length.div_ceil(run), noted],
                tile: vec![1, noted],
                dtype: records.order.dtype(),
            });
        }
        Form {
            records,
            run,
            stride,
            results,
        }
    }
}

/// Workspace of a task that sorts `count` elements in `Form` with results in one tile each.
pub(super) fn workspace_bytes(records: &Records, count: u64, in_one_tile: bool) -> u64 {
    Layout::new(records, count as usize, in_one_tile).bytes as u64
}

/// Where things are in the workspace.
struct Layout {
    /// The sorted keys, where the result is in several tiles.
    keys: usize,
    index: usize,
    /// A column in one piece.
    column: usize,
    sort: usize,
    bytes: usize,
}

const ALIGNED: usize = 64;

impl Layout {
    fn new(records: &Records, count: usize, in_one_tile: bool) -> Layout {
        let mut bytes = 0;
        let mut place = |wanted: usize| {
            let start = bytes;
            bytes += wanted.next_multiple_of(ALIGNED);
            start
        };
        let widest = records.items().skip(1).max();
        let keys = place(if in_one_tile {
            0
        } else {
            count * records.order.dtype().size()
        });
        let index = place(widest.map_or(0, |_| count * size_of::<u32>()));
        let column = place(widest.map_or(0, |item| count * item));
        let sort = place(match widest {
            Some(_) => sort_index_workspace_bytes(records.order, count),
            None => sort_workspace_bytes(records.order, count),
        });
        Layout {
            keys,
            index,
            column,
            sort,
            bytes,
        }
    }
}

impl Algorithm for Form {
    fn name(&self) -> String {
        "sort runs".into()
    }

    fn key(&self) -> Vec<u8> {
        let direction = u64::from(self.records.order.descending());
        let tiles = self.results.iter().flat_map(|grid| grid.tile.clone());
        [self.run, self.stride.unwrap_or(0), direction]
            .into_iter()
            .chain(tiles)
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    fn results(&self) -> &[Grid] {
        &self.results
    }

    fn works(&self, inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        vec![Arc::new(FormRuns {
            form: self.clone(),
            inputs: inputs.to_vec(),
        })]
    }
}

#[derive(Debug)]
struct FormRuns {
    form: Form,
    inputs: Vec<Grid>,
}

impl FormRuns {
    /// First element of a task's run and the one after its last.
    fn range(&self, task: u64) -> (u64, u64) {
        let start = task * self.form.run;
        (start, (start + self.form.run).min(self.form.records.length))
    }

    fn in_one_tile(&self) -> bool {
        self.form.stride.is_some() || self.form.results[0].tiles() == 1
    }
}

/// Tiles of a one-dimensional grid that overlap a range.
pub(super) fn tiles_of(grid: &Grid, (start, end): (u64, u64)) -> std::ops::Range<u64> {
    if start == end {
        return 0..0;
    }
    start / grid.tile[0]..end.div_ceil(grid.tile[0])
}

/// Cuts a column's tiles down to a range.
fn parts<'a>(grid: &Grid, range: (u64, u64), tiles: &mut impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let item = grid.dtype.size();
    tiles_of(grid, range)
        .map(|tile| {
            let begin = tile * grid.tile[0];
            let from = range.0.saturating_sub(begin) as usize;
            let to = (range.1 - begin).min(grid.elements(tile)) as usize;
            &tiles.next().expect("one for each operand")[from * item..to * item]
        })
        .collect()
}

fn join(parts: &[&[u8]], into: &mut [u8]) {
    let mut at = 0;
    for part in parts {
        into[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}

/// Writes the elements that `index` names to the tiles of a column, one after the other.
pub(super) fn gather_tiles<'a, 'b: 'a>(
    item: usize,
    index: &[u8],
    source: &[u8],
    tiles: impl Iterator<Item = &'a mut &'b mut [u8]>,
) {
    let mut at = 0;
    for tile in tiles {
        let count = tile.len() / item;
        gather_items(
            item,
            &index[at * size_of::<u32>()..(at + count) * size_of::<u32>()],
            source,
            tile,
        );
        at += count;
    }
}

impl Work for FormRuns {
    fn label(&self) -> String {
        self.form.name()
    }

    fn tasks(&self) -> u64 {
        self.form.records.length.div_ceil(self.form.run)
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let range = self.range(task);
        for (set, grid) in self.inputs.iter().enumerate() {
            tiles_of(grid, range).for_each(|tile| each(set, tile, Access::Read));
        }
        let columns = self.form.records.columns.len();
        for (column, grid) in self.form.results[..columns].iter().enumerate() {
            tiles_of(grid, range).for_each(|tile| each(columns + column, tile, Access::Create));
        }
        if self.form.stride.is_some() {
            each(2 * columns, task, Access::Create);
        }
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        let (start, end) = self.range(task);
        workspace_bytes(&self.form.records, end - start, self.in_one_tile())
    }

    fn operations(&self) -> f64 {
        // Sorting by radix takes some ten nanoseconds for an element, products a tenth for an operation.
        100.0 * self.form.records.length as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let records = &self.form.records;
        let range = self.range(task);
        let count = (range.1 - range.0) as usize;
        let layout = Layout::new(records, count, self.in_one_tile());
        let mut reads = tiles.reads.iter().copied();
        let (noted, columns) = match self.form.stride {
            Some(_) => tiles.writes.split_last_mut().map(|(last, rest)| (Some(last), rest)),
            None => Some((None, &mut tiles.writes[..])),
        }
        .expect("every task writes");
        let per_column = columns.len() / records.columns.len();
        let key_item = records.order.dtype().size();
        let (key_space, rest) = workspace.split_at_mut(layout.index);
        let (index, rest) = rest.split_at_mut(layout.column - layout.index);
        let (column, sort) = rest.split_at_mut(layout.sort - layout.column);
        let (key_tiles, value_tiles) = columns.split_at_mut(per_column);
        let keys: &mut [u8] = match self.in_one_tile() {
            true => key_tiles[0],
            false => &mut key_space[layout.keys..][..count * key_item],
        };
        let key_parts = parts(&self.inputs[0], range, &mut reads);
        if records.columns.len() == 1 {
            sort_keys_from(records.order, &key_parts, keys, sort);
        } else {
            join(&key_parts, keys);
            let index = &mut index[..count * size_of::<u32>()];
            sort_index(records.order, keys, index, sort);
            for (value, tiles) in value_tiles.chunks_mut(per_column).enumerate() {
                let grid = &self.inputs[value + 1];
                let item = grid.dtype.size();
                let column = &mut column[..count * item];
                join(&parts(grid, range, &mut reads), column);
                gather_tiles(item, index, column, tiles.iter_mut());
            }
        }
        if let (Some(noted), Some(stride)) = (noted, self.form.stride) {
            note(keys, key_item, stride as usize, noted);
        }
        if !self.in_one_tile() {
            let (mut at, keys) = (0, &key_space[layout.keys..][..count * key_item]);
            for tile in key_tiles {
                tile.copy_from_slice(&keys[at..at + tile.len()]);
                at += tile.len();
            }
        }
        Ok(())
    }
}

/// Every `stride`-th key, and the last one for what is left of the place.
fn note(keys: &[u8], item: usize, stride: usize, noted: &mut [u8]) {
    let last = &keys[keys.len() - item..];
    let mut at = 0;
    for place in noted.chunks_exact_mut(item) {
        let key = keys.get(at..at + item).unwrap_or(last);
        place.copy_from_slice(key);
        at = at.saturating_add(stride * item);
    }
}

/// Keys of one order that were noted of runs.
#[derive(Clone, Debug)]
pub(super) struct Noted {
    pub order: KeyOrder,
    pub length: u64,
    pub run: u64,
    pub stride: u64,
    pub keys: Arc<Vec<u8>>,
}

impl Noted {
    pub fn runs(&self) -> usize {
        self.length.div_ceil(self.run) as usize
    }

    /// Elements of a run.
    pub fn run_length(&self, run: usize) -> u64 {
        (self.length - run as u64 * self.run).min(self.run)
    }

    fn item(&self) -> usize {
        self.order.dtype().size()
    }

    /// The keys noted of a run: every `stride`-th.
    pub fn of_run(&self, run: usize) -> &[u8] {
        let per_run = (self.run.div_ceil(self.stride) + 1) as usize;
        let count = self.run_length(run).div_ceil(self.stride) as usize;
        &self.keys[run * per_run * self.item()..][..count * self.item()]
    }

    /// The greatest key of a run.
    pub fn last(&self, run: usize) -> &[u8] {
        let per_run = (self.run.div_ceil(self.stride) + 1) as usize;
        &self.keys[((run + 1) * per_run - 1) * self.item()..][..self.item()]
    }
}
