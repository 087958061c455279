//! All tiles of a program, numbered, with what each weighs.

use std::collections::HashMap;
use std::sync::Mutex;

use outcore_store::{FramePool, Io, Region, Source, StoreError};

use super::blocking::is_blocked;
use crate::cancel;
use crate::plan::gather::BaseAxis;
use crate::plan::{ArrayId, ArrayKind, Base, Gather, Pass, Plan, Step, StepKind};

/// Number of a tile within a program.
pub type TileId = u32;

/// What placement must know of a tile.
#[derive(Clone, Copy, Debug, Default)]
pub struct TileWeight {
    /// Bytes its frame is charged in the ledger.
    pub frame: u64,
    /// Bytes one read of it transfers: from the source, or from scratch.
    pub read: u64,
}

/// Tiles are numbered array by array, in C order of their grids.
#[derive(Debug, Default)]
pub struct TileTable {
    pub first: Vec<TileId>,
    pub weights: Vec<TileWeight>,
    /// Bytes that the final write of an output's tile transfers, zero for other tiles.
    pub writes: Vec<u64>,
    /// By array: the output that its tiles can be read back from once they are written, if there is one.
    pub read_back: Vec<Option<usize>>,
    /// Most memory that one read of a source takes besides its frame.
    pub read_workspace: usize,
    /// Bytes that reading neighbours together transfers, by the first and their number, as found so far: every simulation
    /// asks again.
    groups: Mutex<HashMap<(TileId, u64), Option<u64>>>,
}

impl TileTable {
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Bytes that reading `count` neighbours together transfers, from `first` on; nothing when that is not possible.
    pub fn group_bytes(&self, plan: &Plan, source: &dyn Source, first: TileId, count: u64) -> Option<u64> {
        let mut groups = self.groups.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *groups.entry((first, count)).or_insert_with(|| {
            let (array, index) = self.locate(first);
            let regions: Vec<_> = (0..count).map(|at| tile_region(plan, array, index + at)).collect();
            source.group_bytes(&regions)
        })
    }

    /// Whether a tile can be read back from an output once it is written.
    pub fn is_read_back(&self, tile: TileId) -> bool {
        self.read_back[self.locate(tile).0 as usize].is_some()
    }

    /// Bytes that reading every tile of the stored arrays once transfers.
    pub fn source_bytes(&self, plan: &Plan) -> u64 {
        let arrays = plan.arrays.iter().zip(&self.first);
        let stored = arrays.filter(|(array, _)| matches!(array.kind, ArrayKind::Source(_)));
        let tiles = stored.flat_map(|(array, &first)| &self.weights[first as usize..][..array.tiles() as usize]);
        tiles.map(|weight| weight.read).sum()
    }

    /// The number of the tile at a position of an array's grid.
    pub fn id(&self, array: ArrayId, index: u64) -> TileId {
        self.first[array as usize] + index as TileId
    }

    /// The array a tile belongs to, and its position in that array's grid.
    pub fn locate(&self, tile: TileId) -> (ArrayId, u64) {
        let array = self.first.partition_point(|&first| first <= tile) - 1;
        (array as ArrayId, u64::from(tile - self.first[array]))
    }
}

/// Tasks that one read of the largest source serves, one after another: tiles of large chunks hold several cells of
/// their passes.
pub fn tasks_per_read(plan: &Plan) -> u64 {
    let passes = plan.passes().filter(|pass| !is_blocked(pass));
    let reads = passes.flat_map(|pass| pass.steps.iter().map(move |step| (pass, step)));
    reads
        .filter_map(|(pass, step)| match &step.kind {
            StepKind::Gather(gather) => streamed(plan, pass, step, gather),
            _ => None,
        })
        .max_by_key(|source| (source.elements, source.cells))
        .map_or(1, |source| source.cells)
}

/// A source that a pass reads tile by tile.
struct Streamed {
    elements: u64,
    /// Cells of the pass that a tile of it holds.
    cells: u64,
}

fn streamed(plan: &Plan, pass: &Pass, step: &Step, gather: &Gather) -> Option<Streamed> {
    let Base::Array(array) = gather.base else { return None };
    let info = &plan.arrays[array as usize];
    // Neighbours that are read together count as one read already.
    if !matches!(info.kind, ArrayKind::Source(_)) || info.grouped_source().is_some() {
        return None;
    }
    let along = |(axis, base): (usize, &BaseAxis)| {
        let span = step.spans[base.output?];
        let cell = pass.domain.tile[usize::from(span.dim?)];
        let covered = cell.saturating_mul((span.scale * base.step).unsigned_abs());
        Some((info.node.tile[axis] / covered.max(1)).max(1))
    };
    let cells = gather.axes.iter().enumerate().filter_map(along).product();
    Some(Streamed {
        elements: info.node.shape.iter().product(),
        cells,
    })
}

/// Row-major coordinates of the `index`-th cell of a grid.
pub fn coordinates(counts: &[u64], mut index: u64, into: &mut Vec<u64>) {
    into.clear();
    into.resize(counts.len(), 0);
    for axis in (0..counts.len()).rev() {
        into[axis] = index % counts[axis];
        index /= counts[axis];
    }
}

/// The box of tile `index` of an array.
pub fn tile_region(plan: &Plan, array: ArrayId, index: u64) -> Region {
    let info = &plan.arrays[array as usize];
    let mut cell = Vec::new();
    coordinates(&info.counts, index, &mut cell);
    let start: Vec<u64> = cell.iter().zip(&info.node.tile).map(|(&at, &tile)| at * tile).collect();
    let shape = (0..cell.len())
        .map(|axis| info.node.tile[axis].min(info.node.shape[axis] - start[axis]))
        .collect();
    Region { start, shape }
}

/// What the final write of an output tile costs: its frame (none where the result buffer itself is written) and bytes.
pub trait OutputCost {
    fn frame_is_borrowed(&self, output: usize, region: &Region) -> bool;
    fn write_bytes(&self, output: usize, region: &Region) -> u64;
    /// Whether what was written can be read back while the program runs.
    fn is_read_back(&self, _output: usize) -> bool {
        false
    }
}

/// Numbers and weighs the tiles of a plan.
///
/// # Errors
/// What the sources report when asked for the cost of a region; more tiles than fit in 32 bits.
pub fn number_tiles(plan: &Plan, outputs: &dyn OutputCost, io: &Io) -> Result<TileTable, StoreError> {
    let mut table = TileTable::default();
    for (id, array) in plan.arrays.iter().enumerate() {
        table.first.push(table.weights.len() as TileId);
        let read_back = array
            .outputs
            .iter()
            .copied()
            .find(|&output| outputs.is_read_back(output));
        table.read_back.push(read_back);
        for index in 0..array.tiles() {
            cancel::check();
            let region = tile_region(plan, id as ArrayId, index);
            let bytes = array.tile_bytes(index, &region);
            let frame = FramePool::frame_bytes(bytes as usize) as u64;
            let (weight, write) = match &array.kind {
                ArrayKind::Source(source) => {
                    let cost = source.cost(&region, io)?;
                    table.read_workspace = table.read_workspace.max(cost.workspace_bytes);
                    (
                        TileWeight {
                            frame: FramePool::frame_bytes(cost.frame_bytes) as u64,
                            read: cost.read_bytes,
                        },
                        0,
                    )
                }
                ArrayKind::Memory(_) => (TileWeight::default(), 0),
                ArrayKind::Computed => {
                    let borrowed = matches!(array.outputs[..], [only] if outputs.frame_is_borrowed(only, &region));
                    let write = array
                        .outputs
                        .iter()
                        .map(|&output| outputs.write_bytes(output, &region))
                        .sum();
                    // A spilled tile is written and read as whole pages, which is what its frame is.
                    (
                        TileWeight {
                            frame: if borrowed { 0 } else { frame },
                            read: if borrowed { 0 } else { frame },
                        },
                        write,
                    )
                }
            };
            table.weights.push(weight);
            table.writes.push(write);
        }
    }
    Ok(table)
}
