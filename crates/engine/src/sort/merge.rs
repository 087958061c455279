//! Partitions of sorted runs become parts of the sorted sequence, one task each.

use outcore_store::Interval;
use std::sync::Arc;

use outcore_kernels::sort::{merge_index, merge_index_workspace_bytes, merge_segments, merge_workspace_bytes};

use super::form::gather_tiles;
use super::segments::Segments;
use super::Records;
use crate::task::costs::PER_KEY;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::EngineError;

#[derive(Clone, Debug)]
pub(super) struct Merge {
    pub records: Records,
    /// Elements of a partition: several tiles of the results.
    pub partition: u64,
    /// Where they lie, once it is known.
    pub segments: Option<Arc<Segments>>,
}

/// Workspace of a task that merges `count` elements.
pub(super) fn workspace_bytes(records: &Records, count: u64) -> u64 {
    MergeLayout::new(records, count as usize).bytes as u64
}

struct MergeLayout {
    index: usize,
    merge: usize,
    bytes: usize,
}

const ALIGNED: usize = 64;

impl MergeLayout {
    /// The merged keys come first, where they become several tiles.
    fn new(records: &Records, count: usize) -> MergeLayout {
        let has_values = records.columns.len() > 1;
        // What becomes one tile is merged where it is to be.
        let in_one_tile = count as u64 <= records.columns[0].tile[0];
        let keys = if in_one_tile {
            0
        } else {
            count * records.order.dtype().size()
        };
        let index = keys.next_multiple_of(ALIGNED);
        let positions = if has_values { count * size_of::<u32>() } else { 0 };
        let merge = index + positions.next_multiple_of(ALIGNED);
        let space = match has_values {
            true => merge_index_workspace_bytes(records.order, count),
            false => merge_workspace_bytes(records.order, count),
        };
        MergeLayout {
            index,
            merge,
            bytes: merge + space,
        }
    }
}

impl Alone for Merge {
    fn key(&self) -> Vec<u8> {
        // Where partitions lie is said by the inputs' identities.
        let direction = u64::from(self.records.order.descending());
        [self.partition, direction, u64::from(self.segments.is_some())]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    fn results(&self) -> &[Grid] {
        &self.records.columns
    }
}

impl Merge {
    fn range(&self, task: u64) -> Interval {
        let start = task * self.partition;
        Interval::between(start, (start + self.partition).min(self.records.length))
    }
}

impl Work for Merge {
    fn label(&self) -> String {
        "merge".into()
    }

    fn tasks(&self) -> u64 {
        self.records.length.div_ceil(self.partition)
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let columns = self.records.columns.len();
        (0..columns).for_each(|column| each(column, task, Access::Read));
        for (column, grid) in self.records.columns.iter().enumerate() {
            let tiles = self.range(task).tiles(grid.tile[0]);
            tiles.for_each(|tile| each(columns + column, tile, Access::Create));
        }
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        workspace_bytes(&self.records, self.range(task).length)
    }

    fn operations(&self) -> f64 {
        PER_KEY * self.records.length as f64
    }

    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let records = &self.records;
        let count = self.range(task).length as usize;
        let Some(segments) = &self.segments else {
            return Err(EngineError::Internal("a merge whose partitions are not known".into()));
        };
        let ends = segments.ends(task);
        let layout = MergeLayout::new(records, count);
        let (space_for_keys, rest) = workspace.split_at_mut(layout.index);
        let (index, space) = rest.split_at_mut(layout.merge - layout.index);
        let per_column = tiles.writes.len() / records.columns.len();
        let (key_tiles, value_tiles) = tiles.writes.split_at_mut(per_column);
        let in_one_tile = layout.index == 0;
        let keys: &mut [u8] = match in_one_tile {
            true => key_tiles[0],
            false => &mut space_for_keys[..count * records.order.dtype().size()],
        };
        if records.columns.len() == 1 {
            merge_segments(records.order, tiles.reads[0], &ends, keys, space);
        } else {
            let index = &mut index[..count * size_of::<u32>()];
            merge_index(records.order, tiles.reads[0], &ends, keys, index, space);
            let values = value_tiles.chunks_mut(per_column).zip(&tiles.reads[1..]);
            for ((tiles, source), item) in values.zip(records.items().skip(1)) {
                gather_tiles(item, index, source, tiles.iter_mut());
            }
        }
        if !in_one_tile {
            let mut at = 0;
            for tile in key_tiles {
                tile.copy_from_slice(&space_for_keys[at..at + tile.len()]);
                at += tile.len();
            }
        }
        Ok(())
    }
}
