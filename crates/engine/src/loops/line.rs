//! Lines of iterations, and where the elements of their iterations lie.

use super::affine::{Affine, CounterRange, LoopCounters};

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
