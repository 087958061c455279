//! Block shapes for products of two large matrices.
//!
//! With `p × q` result tiles in memory, one sweep of the inner dimension reads `p` tiles of the left and `q` tiles of
//! the right operand per step; the left operand is read `⌈J/q⌉` times and the right one `⌈I/p⌉` times. For square
//! blocks that approaches `2·m·n·k/√M` elements (docs/placement.md, rule 3; Irony, Toledo, Tiskin 2004).

use crate::plan::{Pass, RootKind};

/// The dimensions of a blocked product's domain: result rows and columns, and the inner one. A dimension that is one
/// tile long is absent.
#[derive(Clone, Copy, Debug)]
pub struct ProductDims {
    pub rows: Option<usize>,
    pub columns: Option<usize>,
    pub inner: usize,
}

pub fn is_blocked(pass: &Pass) -> bool {
    pass.roots.iter().any(|root| root.kind == RootKind::Blocked)
}

pub fn product_dims(pass: &Pass) -> ProductDims {
    let root = &pass.roots[0];
    let ndim = root.spans.len();
    let dim = |axis: usize| root.spans[axis].dim.map(usize::from);
    ProductDims {
        rows: dim(ndim - 2),
        columns: dim(ndim - 1),
        inner: pass.domain.shape.len() - 1,
    }
}

/// The tiles of one product, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    pub item: u64,
    /// Rows, columns and depth of one task.
    pub task: [u64; 3],
    /// How the left operand is held: tile length along rows and depth.
    pub left: [u64; 2],
    /// How the right operand is held: tile length along depth and columns.
    pub right: [u64; 2],
}

impl Footprint {
    /// Bytes that `p × q` result tiles and the operands of one step and the next take. Operands held in other tiles
    /// than tasks read them bring whole tiles in.
    fn bytes(&self, p: u64, q: u64) -> u64 {
        let [rows, columns, depth] = self.task;
        let covered = |length: u64, tile: u64| length.next_multiple_of(tile);
        let left = covered(p * rows, self.left[0]) * covered(depth, self.left[1]);
        let right = covered(depth, self.right[0]) * covered(q * columns, self.right[1]);
        let streamed = 2 * depth * (p * rows + q * columns);
        let held = left + right;
        self.item * (p * rows * q * columns + streamed.max(held + held / 8))
    }
}

/// Result tiles per block along rows and columns for a product with so much memory.
pub fn blocks_of(pass: &Pass, memory: u64) -> [u64; 2] {
    let (dims, counts) = (product_dims(pass), pass.domain.counts());
    let count = |dim: Option<usize>| dim.map_or(1, |dim| counts[dim]);
    block_shape(
        count(dims.rows),
        count(dims.columns),
        footprint(pass, dims.inner),
        memory,
    )
}

fn footprint(pass: &Pass, inner: usize) -> Footprint {
    let node = &pass.roots[0].node;
    let (left, right) = (&node.inputs[0].tile, &node.inputs[1].tile);
    let ndim = node.ndim();
    Footprint {
        item: node.dtype.size() as u64,
        task: [node.tile[ndim - 2], node.tile[ndim - 1], pass.domain.tile[inner]],
        left: [left[ndim - 2], left[ndim - 1]],
        right: [right[ndim - 2], right[ndim - 1]],
    }
}

/// Result tiles per block along rows and columns, for the least traffic within `memory` bytes.
fn block_shape(rows: u64, columns: u64, tiles: Footprint, memory: u64) -> [u64; 2] {
    let fits = |p: u64, q: u64| tiles.bytes(p, q) <= memory;
    let mut best = [1, 1];
    let mut least = f64::INFINITY;
    for p in 1..=rows {
        if !fits(p, 1) {
            break;
        }
        let (mut low, mut high) = (1, columns);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(p, middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let (row_blocks, column_blocks) = (rows.div_ceil(p), columns.div_ceil(low));
        let traffic = (rows * tiles.task[0] * column_blocks + columns * tiles.task[1] * row_blocks) as f64;
        if traffic < least {
            least = traffic;
            // Blocks of equal size: the last one is not left a sliver.
            best = [rows.div_ceil(row_blocks), columns.div_ceil(column_blocks)];
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const EQUAL: Footprint = Footprint {
        item: 8,
        task: [1, 1, 1],
        left: [1, 1],
        right: [1, 1],
    };

    #[test]
    fn everything_in_memory_is_one_block() {
        assert_eq!(block_shape(12, 12, EQUAL, 1 << 20), [12, 12]);
    }

    #[test]
    fn blocks_are_near_square_when_memory_is_short() {
        let [p, q] = block_shape(100, 100, EQUAL, 8 * (400 + 80));
        assert!(p.abs_diff(q) <= 3, "{p} × {q}");
        assert!(EQUAL.bytes(p, q) <= 8 * 480);
    }

    #[test]
    fn operands_in_long_tiles_leave_less_for_results() {
        let long = Footprint { left: [1, 16], ..EQUAL };
        let [p, q] = block_shape(100, 100, long, 8 * 480);
        assert!(p < q, "{p} × {q}: each row of the block holds a long tile");
    }

    #[test]
    fn the_smallest_block_is_one_tile() {
        assert_eq!(block_shape(100, 100, EQUAL, 1), [1, 1]);
    }
}
