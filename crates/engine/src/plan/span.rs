//! Which part of a node a task works on, as a function of the task's block.
//!
//! A pass walks a domain in blocks. Every value inside the pass is needed over a box whose bounds are, axis by axis,
//! affine in the bounds of one dimension of the block, or constant. Demands travel from consumers to producers.

use crate::expr::{Node, Op};
use outcore_store::Interval;

/// A contiguous interval of one axis.
///
/// With the block `[b, b + n)` of dimension `dim` it is `[scale·b + low, scale·(b+n−1) + high)` for `scale ≥ 0`, and
/// `[scale·(b+n−1) + low, scale·b + high)` for `scale < 0`. Without a dimension it is `[low, high)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub dim: Option<u8>,
    pub scale: i64,
    pub low: i64,
    pub high: i64,
}

impl Span {
    pub fn whole(length: u64) -> Span {
        Span {
            dim: None,
            scale: 0,
            low: 0,
            high: length as i64,
        }
    }

    /// Exactly the block of `dim`.
    pub fn along(dim: usize) -> Span {
        Span {
            dim: Some(dim as u8),
            scale: 1,
            low: 0,
            high: 1,
        }
    }

    /// The interval for a block, which has one along each dimension of its domain.
    pub fn resolve(&self, block: &[Interval]) -> Interval {
        let Some(dim) = self.dim else {
            return Interval::new(self.low as u64, (self.high - self.low) as u64);
        };
        let along = block[dim as usize];
        let (first, last) = (along.start as i64, along.end() as i64 - 1);
        let (low, high) = if self.scale >= 0 { (first, last) } else { (last, first) };
        let start = self.scale * low + self.low;
        let end = self.scale * high + self.high;
        Interval::new(start as u64, (end - start) as u64)
    }

    /// The interval of the input under `input = start + step · output`, where `self` is that of the output.
    fn sliced(&self, start: i64, step: i64) -> Span {
        let (low, high) = if step >= 0 {
            (self.low, self.high - 1)
        } else {
            (self.high - 1, self.low)
        };
        Span {
            dim: self.dim,
            scale: self.scale * step,
            low: start + step * low,
            high: start + step * high + 1,
        }
    }
}

/// The box of a node as resolved spans.
pub fn resolve_all(spans: &[Span], block: &[Interval]) -> Vec<Interval> {
    spans.iter().map(|span| span.resolve(block)).collect()
}

/// The spans of input `index` that `node` needs to give its own `spans`. For products and reductions this is the
/// aligned case, the inner or reduced axes whole.
pub fn demand(node: &Node, index: usize, spans: &[Span]) -> Vec<Span> {
    let input = &node.inputs[index];
    match &node.op {
        Op::Permute(axes) => {
            let mut demanded = vec![Span::whole(0); axes.len()];
            for (axis, &inner) in axes.iter().enumerate() {
                demanded[inner] = spans[axis];
            }
            demanded
        }
        Op::Slice(slices) => slices
            .iter()
            .zip(spans)
            .map(|(slice, span)| span.sliced(slice.start, slice.step))
            .collect(),
        Op::Expand(axes) => (0..node.ndim())
            .filter(|axis| !axes.contains(axis))
            .map(|axis| spans[axis])
            .collect(),
        Op::Squeeze(axes) => {
            let mut outer = spans.iter();
            (0..input.ndim())
                .map(|axis| {
                    if axes.contains(&axis) {
                        Span::whole(1)
                    } else {
                        *outer.next().expect("one span per axis")
                    }
                })
                .collect()
        }
        Op::Matmul => {
            let ndim = node.ndim();
            let inner = node.inputs[0].shape[ndim - 1];
            let mut demanded = spans.to_vec();
            demanded[ndim - 1 - index] = Span::whole(inner);
            demanded
        }
        Op::Reduce { axes, .. } => {
            let mut outer = spans.iter();
            (0..input.ndim())
                .map(|axis| match axes.binary_search(&axis) {
                    Ok(_) => Span::whole(input.shape[axis]),
                    Err(_) => *outer.next().expect("one span per kept axis"),
                })
                .collect()
        }
        // Element by element, broadcast from the right.
        _ => {
            let skipped = node.ndim() - input.ndim();
            (0..input.ndim())
                .map(|axis| {
                    if input.shape[axis] == node.shape[skipped + axis] {
                        spans[skipped + axis]
                    } else {
                        Span::whole(1)
                    }
                })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(start: i64, step: i64, from: u64, count: u64) -> Interval {
        let all: Vec<i64> = (from..from + count).map(|index| start + step * index as i64).collect();
        let low = *all.iter().min().expect("not empty");
        Interval::new(low as u64, (all.iter().max().expect("not empty") - low + 1) as u64)
    }

    #[test]
    fn slices_of_slices_cover_exactly_what_they_touch() {
        for (start, step) in [(0, 1), (3, 2), (40, -1), (40, -3)] {
            for (begin, length) in [(0u64, 1u64), (2, 5), (7, 4)] {
                let outer = Span::along(0);
                let span = outer.sliced(start, step);
                assert_eq!(
                    span.resolve(&[Interval::new(begin, length)]),
                    indices(start, step, begin, length),
                    "{start} {step} {begin} {length}"
                );
                let twice = span.sliced(200, -2);
                let below = indices(start, step, begin, length);
                let block = [Interval::new(begin, length)];
                assert_eq!(twice.resolve(&block), indices(200, -2, below.start, below.length));
            }
        }
    }
}
