//! Runs: as many elements as fit the memory several times, sorted or cut into buckets, one task each.

use outcore_store::Interval;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::sort::{
    gather_items, sort_index, sort_index_workspace_bytes, sort_keys_from, sort_keys_from_workspace_bytes, spread_index,
    spread_keys, spread_workspace_bytes, KeyOrder, Splitters,
};

use super::Records;
use crate::task::costs::PER_KEY;
use crate::task::{Access, Algorithm, Bound, Grid, Work};
use crate::EngineError;

/// The work on the elements of a run, and the notes of them.
#[derive(Clone, Debug)]
pub(super) enum Within {
    /// The only run: sorted, and nothing noted.
    Whole,
    /// Sorted. Every so many elements the key is noted, and the last one.
    Sorted { stride: u64 },
    /// Cut into buckets, whose lengths are noted. The splitters are not known yet where this is only planned.
    Spread {
        splitters: Option<Arc<Splitters>>,
        buckets: u64,
    },
}

/// How runs are cut.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub records: Records,
    /// Elements of a run.
    pub run: u64,
    pub within: Within,
    /// The columns of runs, then what is noted.
    results: Vec<Grid>,
}

impl Form {
    pub fn new(records: Records, run: u64, within: Within) -> Form {
        let mut results = records.columns.clone();
        let noted = match &within {
            Within::Whole => None,
            Within::Sorted { stride } => Some((run.div_ceil(*stride) + 1, records.order.dtype())),
            Within::Spread { buckets, .. } => Some((*buckets, DType::I64)),
        };
        if let Some((noted, dtype)) = noted {
            results.iter_mut().for_each(|column| column.tile = vec![run]);
            results.push(Grid {
                shape: vec![records.length.div_ceil(run), noted],
                tile: vec![1, noted],
                dtype,
            });
        }
        Form {
            records,
            run,
            within,
            results,
        }
    }

    fn is_noted(&self) -> bool {
        !matches!(self.within, Within::Whole)
    }
}

/// Workspace of a task that sorts `count` elements, with results in one tile each or in several.
pub(super) fn workspace_bytes(records: &Records, count: u64, in_one_tile: bool) -> u64 {
    if records.columns.len() == 1 {
        return sort_keys_from_workspace_bytes(records.order, count as usize, in_one_tile) as u64;
    }
    let sorts = |count| sort_index_workspace_bytes(records.order, count);
    FormLayout::new(records, count as usize, in_one_tile, sorts).bytes as u64
}

/// Workspace of a task that cuts `count` elements into buckets.
pub(super) fn spread_bytes(records: &Records, count: u64) -> u64 {
    FormLayout::new(records, count as usize, true, spread_workspace_bytes).bytes as u64
}

/// Places in the workspace.
struct FormLayout {
    /// The keys in their order come first, where they become several tiles.
    index: usize,
    /// A column in one piece.
    column: usize,
    kernel: usize,
    bytes: usize,
}

const ALIGNED: usize = 64;

impl FormLayout {
    fn new(records: &Records, count: usize, in_one_tile: bool, kernel: impl Fn(usize) -> usize) -> FormLayout {
        let mut bytes = 0;
        let mut place = |wanted: usize| {
            let start = bytes;
            bytes += wanted.next_multiple_of(ALIGNED);
            start
        };
        let widest = records.items().skip(1).max();
        place(if in_one_tile {
            0
        } else {
            count * records.order.dtype().size()
        });
        let index = place(widest.map_or(0, |_| count * size_of::<u32>()));
        let column = place(widest.map_or(0, |item| count * item));
        let kernel = place(kernel(count));
        FormLayout {
            index,
            column,
            kernel,
            bytes,
        }
    }
}

/// The elements of a task: the parts of each column that hold them, and the places they go to.
pub(super) struct Elements<'a> {
    pub records: &'a Records,
    pub count: usize,
    pub parts: Vec<Vec<&'a [u8]>>,
    pub places: Vec<Vec<&'a mut [u8]>>,
}

impl Elements<'_> {
    /// Sorts them.
    pub fn sort(&mut self, workspace: &mut [u8]) {
        let order = self.records.order;
        if let [parts] = &self.parts[..] {
            return sort_keys_from(order, parts, &mut self.places[0], workspace);
        }
        let in_one_place = self.places[0].len() <= 1;
        let sorts = |count| sort_index_workspace_bytes(order, count);
        let layout = FormLayout::new(self.records, self.count, in_one_place, sorts);
        self.arrange(&layout, workspace, |parts, keys, index, space| {
            join(parts, keys);
            sort_index(order, keys, index, space);
        });
    }

    /// Cuts them into buckets and counts those.
    fn spread(&mut self, splitters: &Splitters, counts: &mut [u8], workspace: &mut [u8]) {
        let layout = FormLayout::new(self.records, self.count, true, spread_workspace_bytes);
        let alone = self.records.columns.len() == 1;
        self.arrange(&layout, workspace, |parts, keys, index, space| match alone {
            true => spread_keys(splitters, parts, keys, counts, space),
            false => spread_index(splitters, parts, keys, index, counts, space),
        });
    }

    /// Brings the keys into the order that `kernel` gives, and the values after them.
    fn arrange(
        &mut self,
        layout: &FormLayout,
        workspace: &mut [u8],
        kernel: impl FnOnce(&[&[u8]], &mut [u8], &mut [u8], &mut [u8]),
    ) {
        let (key_space, rest) = workspace.split_at_mut(layout.index);
        let (index, rest) = rest.split_at_mut(layout.column - layout.index);
        let (column, space) = rest.split_at_mut(layout.kernel - layout.column);
        let index = match self.records.columns.len() {
            1 => index,
            _ => &mut index[..self.count * size_of::<u32>()],
        };
        if let [only] = &mut self.places[0][..] {
            kernel(&self.parts[0], only, index, space);
        } else {
            let keys = &mut key_space[..self.count * self.records.order.dtype().size()];
            kernel(&self.parts[0], keys, index, space);
            let mut at = 0;
            for place in &mut self.places[0] {
                place.copy_from_slice(&keys[at..at + place.len()]);
                at += place.len();
            }
        }
        let values = self.parts.iter().zip(&mut self.places).zip(self.records.items());
        for ((parts, places), item) in values.skip(1) {
            let column = &mut column[..self.count * item];
            join(parts, column);
            gather_tiles(item, index, column, places.iter_mut());
        }
    }
}

impl Algorithm for Form {
    fn name(&self) -> String {
        match self.within {
            Within::Spread { .. } => "cut into buckets".into(),
            _ => "sort runs".into(),
        }
    }

    fn key(&self) -> Vec<u8> {
        let direction = u64::from(self.records.order.descending());
        let tiles = self.results.iter().flat_map(|grid| grid.tile.clone());
        let (kind, number, keys): (u64, u64, &[u8]) = match &self.within {
            Within::Whole => (0, 0, &[]),
            Within::Sorted { stride } => (1, *stride, &[]),
            Within::Spread { splitters, buckets } => (
                2,
                *buckets,
                splitters.as_ref().map_or(&[], |splitters| splitters.keys()),
            ),
        };
        let numbers = [self.run, kind, number, direction].into_iter().chain(tiles);
        numbers.flat_map(u64::to_le_bytes).chain(keys.iter().copied()).collect()
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
    /// The elements of a task's run.
    fn range(&self, task: u64) -> Interval {
        let start = task * self.form.run;
        Interval::between(start, (start + self.form.run).min(self.form.records.length))
    }

    fn in_one_tile(&self) -> bool {
        self.form.is_noted() || self.form.results[0].tiles() <= 1
    }
}

/// Cuts a column's tiles down to a range.
fn parts<'a>(grid: &Grid, range: Interval, tiles: &mut impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let item = grid.dtype.size();
    range
        .tiles(grid.tile[0])
        .map(|tile| {
            let begin = tile * grid.tile[0];
            let from = range.start.saturating_sub(begin) as usize;
            let to = (range.end() - begin).min(grid.elements(tile)) as usize;
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
            range.tiles(grid.tile[0]).for_each(|tile| each(set, tile, Access::Read));
        }
        let columns = self.form.records.columns.len();
        for (column, grid) in self.form.results[..columns].iter().enumerate() {
            range
                .tiles(grid.tile[0])
                .for_each(|tile| each(columns + column, tile, Access::Create));
        }
        if self.form.is_noted() {
            each(2 * columns, task, Access::Create);
        }
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        let count = self.range(task).length;
        match self.form.within {
            Within::Spread { .. } => spread_bytes(&self.form.records, count),
            _ => workspace_bytes(&self.form.records, count, self.in_one_tile()),
        }
    }

    fn operations(&self) -> f64 {
        let each = match self.form.within {
            Within::Spread { .. } => PER_KEY / 2.0,
            _ => PER_KEY,
        };
        each * self.form.records.length as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let records = &self.form.records;
        let range = self.range(task);
        let mut reads = tiles.reads.iter().copied();
        let (noted, columns) = match self.form.is_noted() {
            true => tiles.writes.split_last_mut().map(|(last, rest)| (Some(last), rest)),
            false => Some((None, &mut tiles.writes[..])),
        }
        .expect("every task writes");
        let per_column = columns.len() / records.columns.len();
        let columns = columns.chunks_mut(per_column.max(1));
        let mut elements = Elements {
            records,
            count: range.length as usize,
            parts: self.inputs.iter().map(|grid| parts(grid, range, &mut reads)).collect(),
            places: columns
                .map(|tiles| tiles.iter_mut().map(|tile| &mut **tile).collect())
                .collect(),
        };
        match (&self.form.within, noted) {
            (Within::Spread { splitters, .. }, Some(noted)) => {
                let unknown = || EngineError::Internal("runs are cut by splitters that are not known".into());
                elements.spread(splitters.as_ref().ok_or_else(unknown)?, noted, workspace);
            }
            (Within::Sorted { stride }, Some(noted)) => {
                elements.sort(workspace);
                note(
                    elements.places[0][0],
                    records.order.dtype().size(),
                    *stride as usize,
                    noted,
                );
            }
            _ => elements.sort(workspace),
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
pub(super) struct RunNotes {
    pub order: KeyOrder,
    pub length: u64,
    pub run: u64,
    pub stride: u64,
    pub keys: Arc<Vec<u8>>,
}

impl RunNotes {
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
