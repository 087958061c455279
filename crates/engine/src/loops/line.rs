//! Lines of iterations, and where the elements of their iterations lie.

use outcore_kernels::{copy_strided, StridedBytes, StridedBytesMut};

use super::affine::{Affine, CounterRange, LoopCounters};
use super::program::{ArrayElement, LoopProgram};
use crate::EngineError;

/// An element of the first iteration of a piece, and where those of the next iterations are.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedElement {
    pub is_written: bool,
    pub tile: usize,
    pub offset: usize,
    pub stride: isize,
    /// From one line to the next, where lines go on together.
    pub line_stride: isize,
}

/// Iterations of a line, and lines one after the other along another loop, whose elements lie in one tile of each array.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSpan {
    pub count: i64,
    pub lines: i64,
    /// The depth of the loop along which lines follow each other.
    pub outer: usize,
}

impl LineSpan {
    /// So many iterations of one line.
    pub fn of(count: i64) -> LineSpan {
        LineSpan {
            count,
            lines: 1,
            outer: 0,
        }
    }

    /// Makes the span smaller where the places of an element along an axis leave a tile, of which `before` and `behind` are left.
    pub fn stay(&mut self, subscript: &Affine, along: i64, before: i64, behind: i64) {
        let most = |by: i64| match by.signum() {
            1 => behind / by + 1,
            -1 => before / -by + 1,
            _ => i64::MAX,
        };
        let by = subscript.coefficients[self.outer];
        self.count = self.count.min(most(along));
        self.lines = self.lines.min(if along == 0 || by == 0 { most(by) } else { 1 });
    }
}

/// Iterations of a line: `base + at * direction`.
#[derive(Clone, Copy, Debug)]
pub(super) struct IterationLine {
    pub base: LoopCounters,
    pub direction: LoopCounters,
}

impl IterationLine {
    /// The steps along it where a number is at least 0, of those in a range.
    pub fn clip(&self, range: &mut CounterRange, constant: i64, along: i64) {
        if along > 0 {
            range.low = range.low.max(-constant.div_euclid(along));
        } else if along < 0 {
            range.high = range.high.min(constant.div_euclid(-along));
        } else if constant < 0 {
            range.high = range.low - 1;
        }
    }

    pub fn at(&self, at: i64) -> LoopCounters {
        std::array::from_fn(|depth| self.base[depth] + at * self.direction[depth])
    }
}

/// Where the tiles of a task are among its operands: array and tile, in order, whether it writes them, and their number.
pub(super) struct TilePlaces(pub Vec<((usize, u64), (bool, usize))>);

impl TilePlaces {
    /// Finds an element, and makes a span smaller where elements of fewer iterations lie in its tile.
    pub fn place(
        &self,
        program: &LoopProgram,
        element: &ArrayElement,
        at: &LoopCounters,
        direction: &LoopCounters,
        span: &mut LineSpan,
    ) -> Result<PlacedElement, EngineError> {
        let array = &program.arrays[element.array];
        let (mut number, mut offset, mut stride, mut line_stride) = (0, 0, 0, 0);
        for (axis, subscript) in element.subscripts.iter().enumerate() {
            let (length, tile) = (array.shape[axis] as i64, array.tile[axis] as i64);
            let (index, along) = (subscript.at(at), subscript.along(direction));
            let first = index / tile * tile;
            let extent = tile.min(length - first);
            span.stay(subscript, along, index - first, extent - 1 - (index - first));
            number = number * (array.shape[axis].div_ceil(array.tile[axis])) + (index / tile) as u64;
            offset = offset * extent + index - first;
            stride = stride * extent + along;
            line_stride = line_stride * extent + subscript.coefficients[span.outer];
        }
        let missing = || EngineError::Internal("loops: an element is in no tile of its task".into());
        let key = (element.array, number);
        let found = self.0.binary_search_by_key(&key, |&(place, _)| place);
        let (_, (is_written, tile)) = self.0[found.map_err(|_| missing())?];
        Ok(PlacedElement {
            is_written,
            tile,
            offset: offset as usize,
            stride: stride as isize,
            line_stride: line_stride as isize,
        })
    }
}

/// Puts a strip where elements are.
pub(super) fn put(item: usize, count: usize, strip: &[u8], tile: &mut [u8], target: PlacedElement) {
    copy_strided(
        item,
        &[count],
        StridedBytes::new(strip, 0, &[1]),
        StridedBytesMut::new(tile, target.offset, &[target.stride]),
    );
}
