//! Reads of stored or materialized arrays, with every view between the array and its user folded in.

use outcore_kernels::Generator;
use outcore_store::Interval;

pub use super::boxes::{flat_boxes, AxisBox, BaseAxis};
use super::pieces::each_piece;
use crate::expr::{Node, Op};

/// Index of an array in `Plan::arrays`.
pub type ArrayId = u32;

/// Told every array that is read, and the box of it.
pub type Touch<'a> = &'a mut dyn FnMut(ArrayId, &[Interval]);

#[derive(Clone, Debug)]
pub enum Base {
    Array(ArrayId),
    Generate {
        generator: Generator,
        shape: Vec<u64>,
    },
    /// Parts one after another along `axis`; `ends[i]` is where part `i` ends.
    Concat {
        axis: usize,
        parts: Vec<Gather>,
        ends: Vec<u64>,
    },
    /// The flat C order of `inner`, of shape `from`, seen in shape `to`.
    Reshape {
        inner: Box<Gather>,
        from: Vec<u64>,
        to: Vec<u64>,
    },
}

#[derive(Clone, Debug)]
pub struct Gather {
    pub base: Base,
    /// One entry per axis of the base.
    pub axes: Vec<BaseAxis>,
}

impl Gather {
    pub fn of(base: Base, ndim: usize) -> Gather {
        let axes = (0..ndim)
            .map(|axis| BaseAxis {
                output: Some(axis),
                start: 0,
                step: 1,
            })
            .collect();
        Gather { base, axes }
    }

    /// What the gather takes in memory.
    pub fn bytes(&self) -> usize {
        let inner = match &self.base {
            Base::Concat { parts, .. } => parts.iter().map(|part| size_of::<Gather>() + part.bytes()).sum(),
            Base::Reshape { inner, .. } => size_of::<Gather>() + inner.bytes(),
            Base::Array(_) | Base::Generate { .. } => 0,
        };
        inner + size_of_val(&self.axes[..])
    }

    /// The gather of `view`, a view node whose input this gathers.
    pub fn through(mut self, view: &Node) -> Gather {
        let input = &view.inputs[0];
        for axis in &mut self.axes {
            let Some(inner) = axis.output else { continue };
            match &view.op {
                Op::Permute(axes) => axis.output = axes.iter().position(|&from| from == inner),
                Op::Slice(slices) => {
                    axis.start += axis.step * slices[inner].start;
                    axis.step *= slices[inner].step;
                }
                Op::Expand(axes) => {
                    axis.output = (0..view.ndim()).filter(|outer| !axes.contains(outer)).nth(inner);
                }
                Op::Squeeze(axes) => {
                    axis.output = (0..input.ndim())
                        .filter(|kept| !axes.contains(kept))
                        .position(|kept| kept == inner);
                }
                Op::Broadcast => {
                    let outer = view.ndim() - input.ndim() + inner;
                    axis.output = (input.shape[inner] == view.shape[outer]).then_some(outer);
                }
                _ => unreachable!("only views are folded into reads"),
            }
        }
        self
    }

    /// The box of the base that a box of the gathered value touches.
    pub fn base_box(&self, region: &[Interval]) -> AxisBox {
        base_box(&self.axes, region)
    }

    /// Calls `touch` with every array and the box of it that a box of the gathered value needs.
    pub fn visit(&self, region: &[Interval], touch: Touch<'_>) {
        visit(&self.base, &self.axes, region, touch);
    }

    /// The arrays at the bottom.
    pub fn arrays(&self, arrays: &mut Vec<ArrayId>) {
        match &self.base {
            Base::Array(array) => arrays.push(*array),
            Base::Generate { .. } => {}
            Base::Concat { parts, .. } => parts.iter().for_each(|part| part.arrays(arrays)),
            Base::Reshape { inner, .. } => inner.arrays(arrays),
        }
    }
}

/// The box of the base that a box of a value over it, by `axes`, touches.
pub fn base_box(axes: &[BaseAxis], region: &[Interval]) -> AxisBox {
    axes.iter()
        .map(|axis| match axis.output {
            None => Interval::new(axis.start as u64, 1),
            Some(outer) => {
                let Interval { start, length } = region[outer];
                if length == 0 {
                    return Interval::default();
                }
                let first = axis.start + axis.step * start as i64;
                let last = first + axis.step * (length as i64 - 1);
                Interval::new(first.min(last) as u64, first.abs_diff(last) + 1)
            }
        })
        .collect()
}

fn visit(base: &Base, axes: &[BaseAxis], region: &[Interval], touch: Touch<'_>) {
    let touched = base_box(axes, region);
    if touched.iter().any(|along| along.length == 0) {
        return;
    }
    match base {
        Base::Array(array) => touch(*array, &touched),
        Base::Generate { .. } => {}
        Base::Concat { axis, parts, ends } => {
            for (part, piece) in concat_pieces(*axis, ends, &touched) {
                parts[part].visit(&piece.local, touch);
            }
        }
        Base::Reshape { inner, from, to } => {
            let strides = vec![0; region.len()];
            each_piece(from, to, axes, region, &strides, &mut |piece| {
                let axes: Vec<BaseAxis> = inner.axes.iter().map(|axis| piece.compose(axis)).collect();
                visit(&inner.base, &axes, &piece.region, touch);
            });
        }
    }
}

/// Part of a box that falls into one of the joined arrays.
pub struct JoinedBox {
    /// In the part's own coordinates.
    pub local: AxisBox,
    /// Where it begins in the box, along the joined axis.
    pub offset: u64,
}

/// The parts that `region` touches.
pub fn concat_pieces(axis: usize, ends: &[u64], region: &[Interval]) -> Vec<(usize, JoinedBox)> {
    let Interval { start, length } = region[axis];
    let mut begin = 0;
    let mut pieces = Vec::new();
    for (part, &end) in ends.iter().enumerate() {
        let (low, high) = (start.max(begin), (start + length).min(end));
        if low < high {
            let mut local = region.to_vec();
            local[axis] = Interval {
                start: low - begin,
                length: high - low,
            };
            pieces.push((
                part,
                JoinedBox {
                    local,
                    offset: low - start,
                },
            ));
        }
        begin = end;
    }
    pieces
}

/// The flat C index of a box's first or last element.
pub fn flat_index(shape: &[u64], region: &[Interval], last: bool) -> u64 {
    region
        .iter()
        .zip(shape)
        .fold(0, |flat, (&Interval { start, length }, &size)| {
            flat * size + start + if last { length - 1 } else { 0 }
        })
}

/// The smallest box that holds the flat indices `first..=last`.
pub fn hull(shape: &[u64], first: u64, last: u64) -> AxisBox {
    let mut stride: u64 = shape.iter().product();
    let (mut first, mut last) = (first, last);
    let mut together = true;
    shape
        .iter()
        .map(|&length| {
            stride /= length;
            if !together {
                return Interval::new(0, length);
            }
            let (low, high) = (first / stride, last / stride);
            first %= stride;
            last %= stride;
            together = low == high;
            Interval::new(low, high - low + 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_runs_become_boxes_that_cover_them_in_order() {
        let shape = [3, 4, 5];
        for first in 0..60 {
            for count in 1..=60 - first {
                let boxes = flat_boxes(&shape, first, count);
                let mut next = first;
                for (region, elements) in boxes {
                    assert_eq!(flat_index(&shape, &region, false), next);
                    assert_eq!(region.iter().map(|along| along.length).product::<u64>(), elements);
                    assert_eq!(flat_index(&shape, &region, true), next + elements - 1);
                    next += elements;
                }
                assert_eq!(next, first + count);
                let hull = hull(&shape, first, first + count - 1);
                assert!(
                    flat_index(&shape, &hull, false) <= first && flat_index(&shape, &hull, true) >= first + count - 1
                );
            }
        }
    }
}
