//! A box of a reshaped array as boxes of the array below it.
//!
//! Two shapes of as many elements split into groups of axes with equal products. In a group of one axis on either side
//! nothing changes. In the others a box is runs of the group's flat index, and each run a few boxes of the axes below.

use super::boxes::{flat_boxes, BaseAxis};
use crate::cancel;
use outcore_store::Interval;

/// A box of the array below, in coordinates of its own: where they lie in the array, and where the box goes.
#[derive(Clone, Debug, Default)]
pub struct ReshapePiece {
    /// Start and length per axis of the array below.
    pub region: Vec<Interval>,
    /// Index in the array below is `start + step · coordinate`, per axis.
    pub within: Vec<(i64, i64)>,
    /// Where the box begins in the target, and how far apart its elements go per axis.
    pub offset: isize,
    pub strides: Vec<isize>,
}

impl ReshapePiece {
    /// An axis of something over the array below, as an axis over the piece.
    pub fn compose(&self, axis: &BaseAxis) -> BaseAxis {
        let Some(through) = axis.output else { return *axis };
        let (start, step) = self.within[through];
        BaseAxis {
            output: axis.output,
            start: axis.start + axis.step * start,
            step: axis.step * step,
        }
    }
}

/// The positions that are read along one axis of the reshaped array.
#[derive(Clone, Copy)]
struct Along {
    length: u64,
    start: i64,
    step: i64,
    /// Positions that are read: first, count, and how far apart they go in the target.
    first: u64,
    count: u64,
    stride: isize,
}

impl Along {
    fn new(length: u64, axis: &BaseAxis, region: &[Interval], strides: &[isize]) -> Along {
        let (first, count, stride) = match axis.output {
            Some(output) => (region[output].start, region[output].length, strides[output]),
            None => (0, 1, 0),
        };
        let BaseAxis { start, step, .. } = *axis;
        Along {
            length,
            start,
            step,
            first,
            count,
            stride,
        }
    }

    fn index(&self, at: u64) -> i64 {
        self.start + self.step * (self.first + at) as i64
    }

    /// This axis and the one behind it as one, where that is read whole and goes behind each of this one's elements.
    fn joined(&self, inner: &Along) -> Option<Along> {
        let whole = inner.index(0) == 0 && inner.step == 1 && inner.count == inner.length;
        let follows = self.count == 1 || self.step == 1 && self.stride == inner.stride * inner.length as isize;
        (whole && follows).then(|| Along {
            length: self.length * inner.length,
            start: self.index(0) * inner.length as i64,
            step: 1,
            first: 0,
            count: self.count * inner.count,
            stride: inner.stride,
        })
    }
}

/// Calls `visit` with the pieces of shape `from` that make the box `region` of a view, `axes`, of shape `to`. `strides`
/// are those of the target.
pub fn each_piece(
    from: &[u64],
    to: &[u64],
    axes: &[BaseAxis],
    region: &[Interval],
    strides: &[isize],
    visit: &mut dyn FnMut(&ReshapePiece),
) {
    let along: Vec<Along> = to
        .iter()
        .zip(axes)
        .map(|(&length, axis)| Along::new(length, axis, region, strides))
        .collect();
    let groups: Vec<Vec<ReshapePiece>> = groups(from, to)
        .into_iter()
        .map(|(below, above)| match (&from[below.clone()], &along[above]) {
            (&[_], &[one]) => vec![unchanged(&one)],
            (below, above) => runs(below, above),
        })
        .collect();
    // Along axes that the view only repeats, everything goes to each place.
    let is_read = |output: usize| axes.iter().any(|axis| axis.output == Some(output));
    let repeated = (0..region.len()).filter(|&output| strides[output] != 0 && !is_read(output));
    let repeated: Vec<(u64, isize)> = repeated
        .map(|output| (region[output].length, strides[output]))
        .collect();
    for place in 0..repeated.iter().map(|&(count, _)| count).product::<u64>() {
        let mut piece = ReshapePiece::default();
        let mut rest = place;
        for &(count, stride) in repeated.iter().rev() {
            piece.offset += (rest % count) as isize * stride;
            rest /= count;
        }
        combine(&groups, &mut piece, visit);
    }
}

/// Every choice of one piece per group, put together.
fn combine(groups: &[Vec<ReshapePiece>], piece: &mut ReshapePiece, visit: &mut dyn FnMut(&ReshapePiece)) {
    let Some((first, rest)) = groups.split_first() else {
        cancel::check();
        return visit(piece);
    };
    let axes = piece.region.len();
    for part in first {
        piece.region.extend(&part.region);
        piece.within.extend(&part.within);
        piece.strides.extend(&part.strides);
        piece.offset += part.offset;
        combine(rest, piece, visit);
        piece.region.truncate(axes);
        piece.within.truncate(axes);
        piece.strides.truncate(axes);
        piece.offset -= part.offset;
    }
}

/// The axes of either shape that belong together.
fn groups(from: &[u64], to: &[u64]) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut groups = Vec::new();
    let (mut below, mut above) = (0, 0);
    while below < from.len() || above < to.len() {
        let (first_below, first_above) = (below, above);
        let (mut left, mut right) = (1u64, 1u64);
        loop {
            // Axes of length one go with whatever comes next; at the end, with the last group.
            if left == right && below > first_below && above > first_above {
                break;
            }
            if below < from.len() && (left <= right || above == to.len()) {
                left *= from[below];
                below += 1;
            } else if above < to.len() {
                right *= to[above];
                above += 1;
            } else {
                break;
            }
        }
        groups.push((first_below..below, first_above..above));
    }
    groups
}

fn unchanged(one: &Along) -> ReshapePiece {
    ReshapePiece {
        region: vec![Interval::new(0, one.count)],
        within: vec![(one.index(0), one.step)],
        offset: 0,
        strides: vec![one.stride],
    }
}

/// The pieces of a group: runs of its flat index, cut into boxes of the axes below.
fn runs(below: &[u64], above: &[Along]) -> Vec<ReshapePiece> {
    let mut axes: Vec<Along> = above.to_vec();
    while let [.., outer, inner] = axes[..] {
        let Some(joined) = outer.joined(&inner) else { break };
        axes.truncate(axes.len() - 2);
        axes.push(joined);
    }
    let mut pieces = Vec::new();
    let Some((last, leading)) = axes.split_last() else {
        // No axes above: one element, whatever axes of length one are below.
        push_boxes(below, Interval::new(0, 1), 0, 0, &mut pieces);
        return pieces;
    };
    let mut at = vec![0u64; leading.len()];
    loop {
        cancel::check();
        let flat = leading
            .iter()
            .zip(&at)
            .fold(0, |flat, (axis, &at)| flat * axis.length as i64 + axis.index(at));
        let flat = flat * last.length as i64;
        let offset = leading
            .iter()
            .zip(&at)
            .map(|(axis, &at)| at as isize * axis.stride)
            .sum();
        match last.step {
            1 => push_boxes(
                below,
                Interval::new((flat + last.index(0)) as u64, last.count),
                offset,
                last.stride,
                &mut pieces,
            ),
            -1 => {
                let far = last.count - 1;
                let run = Interval::new((flat + last.index(far)) as u64, last.count);
                push_boxes(
                    below,
                    run,
                    offset + far as isize * last.stride,
                    -last.stride,
                    &mut pieces,
                );
            }
            _ => (0..last.count).for_each(|at| {
                let run = Interval::new((flat + last.index(at)) as u64, 1);
                push_boxes(below, run, offset + at as isize * last.stride, 0, &mut pieces);
            }),
        }
        let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] + 1 < leading[axis].count) else {
            return pieces;
        };
        at[axis] += 1;
        at[axis + 1..].fill(0);
    }
}

fn push_boxes(below: &[u64], run: Interval, offset: isize, stride: isize, pieces: &mut Vec<ReshapePiece>) {
    let apart = |axis: usize| below[axis + 1..].iter().product::<u64>() as isize * stride;
    let mut done = 0;
    for (region, elements) in flat_boxes(below, run.start, run.length) {
        pieces.push(ReshapePiece {
            within: vec![(0, 1); below.len()],
            offset: offset + done as isize * stride,
            strides: (0..below.len()).map(apart).collect(),
            region,
        });
        done += elements;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(shape: &[u64], at: &[u64]) -> u64 {
        at.iter().zip(shape).fold(0, |flat, (&at, &length)| flat * length + at)
    }

    fn each(region: &[Interval], visit: &mut dyn FnMut(&[u64])) {
        let total: u64 = region.iter().map(|along| along.length).product();
        for index in 0..total {
            let mut rest = index;
            let mut at = vec![0; region.len()];
            for axis in (0..region.len()).rev() {
                at[axis] = rest % region[axis].length;
                rest /= region[axis].length;
            }
            visit(&at);
        }
    }

    /// What goes where, found from the pieces, is what the definition says.
    fn check(from: &[u64], to: &[u64], axes: &[BaseAxis], region: &[Interval]) {
        let lengths: Vec<u64> = region.iter().map(|along| along.length).collect();
        let strides: Vec<isize> = (0..lengths.len())
            .map(|axis| lengths[axis + 1..].iter().product::<u64>() as isize)
            .collect();
        let mut filled = vec![None; lengths.iter().product::<u64>() as usize];
        each_piece(from, to, axes, region, &strides, &mut |piece| {
            each(&piece.region, &mut |at| {
                let position = |axis: usize| {
                    let (start, step) = piece.within[axis];
                    (start + step * (piece.region[axis].start + at[axis]) as i64) as u64
                };
                let index: Vec<u64> = (0..from.len()).map(position).collect();
                let target: isize = at
                    .iter()
                    .zip(&piece.strides)
                    .map(|(&at, &stride)| at as isize * stride)
                    .sum();
                let old = filled[(piece.offset + target) as usize].replace(indices(from, &index));
                assert_eq!(old, None, "each element goes somewhere once");
            });
        });
        each(region, &mut |at| {
            let index: Vec<u64> = axes
                .iter()
                .map(|axis| match axis.output {
                    None => axis.start as u64,
                    Some(output) => (axis.start + axis.step * (region[output].start + at[output]) as i64) as u64,
                })
                .collect();
            assert_eq!(
                filled[indices(&lengths, at) as usize],
                Some(indices(to, &index)),
                "{from:?} {to:?} {at:?}"
            );
        });
    }

    fn view(outputs: &[(usize, i64, i64)]) -> Vec<BaseAxis> {
        let axis = |&(output, start, step): &(usize, i64, i64)| BaseAxis {
            output: Some(output),
            start,
            step,
        };
        outputs.iter().map(axis).collect()
    }

    #[test]
    fn splits_joins_and_both_under_views_go_where_they_belong() {
        let plain = view(&[(0, 0, 1), (1, 0, 1), (2, 0, 1)]);
        check(
            &[24, 5],
            &[4, 6, 5],
            &plain,
            &[Interval::new(1, 2), Interval::new(2, 3), Interval::new(0, 5)],
        );
        check(
            &[24, 5],
            &[4, 6, 5],
            &plain,
            &[Interval::new(0, 4), Interval::new(0, 6), Interval::new(1, 3)],
        );
        check(
            &[4, 6, 5],
            &[24, 5],
            &plain[..2],
            &[Interval::new(3, 11), Interval::new(2, 3)],
        );
        check(
            &[4, 1, 6, 5],
            &[2, 12, 5],
            &plain,
            &[Interval::new(0, 2), Interval::new(5, 7), Interval::new(0, 5)],
        );
        check(
            &[6, 10],
            &[4, 15],
            &plain[..2],
            &[Interval::new(1, 3), Interval::new(2, 11)],
        );
        let turned = view(&[(1, 0, 1), (0, 0, 1)]);
        check(&[60], &[6, 10], &turned, &[Interval::new(2, 7), Interval::new(1, 4)]);
        check(
            &[3, 20],
            &[6, 10],
            &view(&[(0, 5, -1), (1, 9, -1)]),
            &[Interval::new(0, 6), Interval::new(2, 8)],
        );
        check(
            &[3, 20],
            &[6, 10],
            &view(&[(0, 0, 2), (1, 1, 3)]),
            &[Interval::new(0, 3), Interval::new(0, 3)],
        );
        check(
            &[24, 5],
            &[4, 6, 5],
            &view(&[(2, 0, 1), (0, 0, 2), (1, 4, -2)]),
            &[Interval::new(0, 3), Interval::new(0, 3), Interval::new(1, 3)],
        );
        check(&[1, 7, 1], &[7], &plain[..1], &[Interval::new(2, 4)]);
        check(&[1], &[], &[], &[]);
        check(&[], &[1, 1], &plain[..2], &[Interval::new(0, 1), Interval::new(0, 1)]);
    }

    #[test]
    fn an_axis_that_is_fixed_or_repeated_is_read_once() {
        let fixed = [
            BaseAxis {
                output: None,
                start: 3,
                step: 1,
            },
            BaseAxis {
                output: Some(0),
                start: 0,
                step: 1,
            },
        ];
        check(&[24], &[4, 6], &fixed, &[Interval::new(1, 4)]);
        check(&[24], &[4, 6], &fixed, &[Interval::new(1, 4), Interval::new(0, 3)]);
        let repeated = [
            BaseAxis {
                output: None,
                start: 0,
                step: 1,
            },
            BaseAxis {
                output: Some(1),
                start: 0,
                step: 1,
            },
        ];
        check(&[12], &[1, 12], &repeated, &[Interval::new(0, 3), Interval::new(2, 5)]);
        let mut pieces = 0;
        each_piece(
            &[8, 365, 9],
            &[2920, 9],
            &view(&[(0, 0, 1), (1, 0, 1)]),
            &[Interval::new(360, 16), Interval::new(0, 9)],
            &[9, 1],
            &mut |_| {
                pieces += 1;
            },
        );
        assert_eq!(pieces, 2, "a run over the end of a row below is two boxes");
    }
}
