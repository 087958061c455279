//! Tiles that a program chooses: in products as wide as high, since each is used along a loop that its subscripts do not have;
//! of arrays without tiles of their own those of others.

use std::collections::BTreeSet;

use outcore_kernels::Generator;
use outcore_store::Layout;

use super::affine::Affine;
use super::program::{ArrayElement, LoopBlock, LoopProgram};
use crate::expr::{grid, Expr, Node, Op};

/// Bytes of a slice that is a tile of its own at most.
const SLICE_BYTES: u64 = 32 << 20;

/// An input in the tiles that the program asks for: where it is a copy in other tiles of a row-major file or of one element over
/// and over, that itself, since it may be had in any tiles.
pub(super) fn in_own_tiles(input: &Expr) -> Expr {
    let source = match (&input.op, input.inputs.first()) {
        (Op::Cast, Some(source)) if source.dtype == input.dtype => source,
        _ => return input.clone(),
    };
    match source.op {
        Op::Generate(Generator::Full(_)) => {}
        _ if is_row_major(source) => {}
        _ => return input.clone(),
    }
    Node::intern(
        source.op.clone(),
        vec![],
        input.shape.clone(),
        input.dtype,
        input.tile.clone(),
    )
}

fn is_row_major(input: &Expr) -> bool {
    matches!(&input.op, Op::Source(key) if matches!(key.0.layout(), Layout::RowMajor))
}

/// Inputs in the tiles of a program: wide ones where it multiplies arrays, whole rows where functions take whole slices. Inputs
/// are those of row-major files, whose tiles are the plan's choice.
pub(super) fn in_tiles_of_uses(
    program: &mut LoopProgram,
    inputs: &[Expr],
    has_own_tiles: &dyn Fn(usize) -> bool,
) -> Vec<Expr> {
    let products = products(program);
    let is_free = |array: usize, input: &Expr| is_row_major(input) && !has_own_tiles(array);
    let tiles: Vec<Option<Vec<u64>>> = (0..inputs.len())
        .map(|array| match products.contains(&array) {
            true => grid::wide_tile(&inputs[array].shape, inputs[array].dtype),
            false => tile_of_slices(program, array),
        })
        .collect();
    let of = |(array, input): (usize, &Expr)| match tiles[array].clone().filter(|_| is_free(array, input)) {
        Some(tile) => {
            program.arrays[array].tile.clone_from(&tile);
            Node::intern(input.op.clone(), vec![], input.shape.clone(), input.dtype, tile)
        }
        None => input.clone(),
    };
    inputs.iter().enumerate().map(of).collect()
}

/// The tile of an array of which functions take whole slices along its last axes alone: a few of these. Nothing where slices go
/// along other axes, or are too large to be one tile.
fn tile_of_slices(program: &LoopProgram, array: usize) -> Option<Vec<u64>> {
    let of = &program.arrays[array];
    if of.shape.contains(&0) {
        return None;
    }
    let mut axes = None;
    for block in &program.blocks {
        let Some(call) = &block.call else { continue };
        let elements = block.steps.iter().flat_map(|step| step.reads().chain(step.written()));
        for element in elements.filter(|element| element.array == array) {
            let is_sliced = |subscript: &Affine| !call.axes(std::slice::from_ref(subscript)).is_empty();
            let Some(first) = element.subscripts.iter().position(is_sliced) else {
                continue;
            };
            if !element.subscripts[first..].iter().all(is_sliced) {
                return None;
            }
            axes = axes.max(Some(first));
        }
    }
    let first = axes?;
    let mut tile = vec![1; of.shape.len()];
    tile[first..].copy_from_slice(&of.shape[first..]);
    let bytes = |tile: &[u64]| {
        tile.iter()
            .fold(of.dtype.size() as u64, |bytes, &length| bytes.saturating_mul(length))
    };
    if bytes(&tile) > SLICE_BYTES {
        return None;
    }
    if let Some(before) = first.checked_sub(1) {
        tile[before] = (grid::SQUARE_BYTES / bytes(&tile).max(1)).clamp(1, of.shape[before].max(1));
    }
    Some(tile)
}

/// Arrays of blocks in which several elements are each used along another loop.
fn products(program: &LoopProgram) -> BTreeSet<usize> {
    let mut arrays = BTreeSet::new();
    for block in program.blocks.iter().filter(|block| block.call.is_none()) {
        let elements: Vec<&ArrayElement> = (block.steps.iter())
            .flat_map(|step| step.reads().chain(step.written()))
            .filter(|element| element.subscripts.len() >= 2)
            .collect();
        let unused = |element: &ArrayElement| -> Vec<usize> {
            let has = |depth: usize| {
                element
                    .subscripts
                    .iter()
                    .any(|subscript| subscript.coefficients[depth] != 0)
            };
            (0..block.path.len()).filter(|&depth| !has(depth)).collect()
        };
        let along: BTreeSet<Vec<usize>> = elements.iter().map(|element| unused(element)).collect();
        if along.len() > 1 && along.iter().all(|loops| !loops.is_empty()) {
            arrays.extend(elements.iter().map(|element| element.array));
        }
    }
    arrays
}

/// Bytes of a tile that is chosen for an array: no more and no less than this.
const TILE_BYTES: std::ops::RangeInclusive<u64> = 256 << 10..=8 << 20;

impl LoopProgram {
    /// Cuts an array that has no tiles of its own yet as those are cut that share loops with it, so that a box of iterations lies
    /// in few tiles of all.
    pub fn cut_like_others(&mut self, array: usize, is_free: &dyn Fn(usize) -> bool, item: u64) {
        let mut tile = self.arrays[array].shape.clone();
        for (axis, length) in tile.iter_mut().enumerate() {
            let lengths = self
                .blocks
                .iter()
                .filter_map(|block| self.length_like_others(block, array, axis, is_free));
            *length = lengths.min().unwrap_or(*length).clamp(1, (*length).max(1));
        }
        let bytes = tile.iter().fold(item, |bytes, &length| bytes.saturating_mul(length));
        if TILE_BYTES.contains(&bytes) {
            self.arrays[array].tile = tile;
        }
    }

    /// The shortest tile of other arrays along the loop that an axis of an array follows in a block.
    fn length_like_others(
        &self,
        block: &LoopBlock,
        array: usize,
        axis: usize,
        is_free: &dyn Fn(usize) -> bool,
    ) -> Option<u64> {
        let elements = block.steps.iter().flat_map(|step| step.reads().chain(step.written()));
        let own = elements.clone().filter(|element| element.array == array);
        let mut depths = own.filter_map(|element| element.subscripts[axis].single_loop());
        let depth = depths.next()?;
        let others = elements.filter(|element| element.array != array && !is_free(element.array));
        let lengths = others.flat_map(|element| element.subscripts.iter().zip(&self.arrays[element.array].tile));
        let along = lengths.filter(|(subscript, _)| subscript.single_loop() == Some(depth));
        along.map(|(_, &length)| length).min()
    }
}
