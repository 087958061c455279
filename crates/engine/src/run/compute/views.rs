//! Views as strides over the bytes of what they show.

use crate::expr::Op;
use crate::run::compute::value::Strided;

/// Strides of an operand over a larger shape: axes of length one repeat.
pub(super) fn broadcast_strides(strides: &[isize], from: &[usize], to: &[usize]) -> Vec<isize> {
    let skipped = to.len() - from.len();
    (0..to.len())
        .map(|axis| match axis.checked_sub(skipped) {
            Some(inner) if from[inner] == to[axis] => strides[inner],
            _ => 0,
        })
        .collect()
}

/// The value of a view, of `shape`, over a value of shape `from`: the same bytes, other strides.
pub(super) fn view_of(view: &Op, base: &Strided, from: &[usize], shape: &[usize]) -> Strided {
    let mut offset = base.offset as isize;
    let strides = match view {
        Op::Permute(axes) => axes.iter().map(|&axis| base.strides[axis]).collect(),
        Op::Slice(slices) => {
            // The input covers exactly what the slice touches; a negative step starts at its far end.
            for (axis, slice) in slices.iter().enumerate() {
                if slice.step < 0 && from[axis] > 0 {
                    offset += (from[axis] as isize - 1) * base.strides[axis];
                }
            }
            slices
                .iter()
                .zip(&base.strides)
                .map(|(slice, &stride)| slice.step as isize * stride)
                .collect()
        }
        Op::Expand(axes) => {
            let mut inner = base.strides.iter();
            (0..shape.len())
                .map(|axis| {
                    if axes.contains(&axis) {
                        0
                    } else {
                        *inner.next().expect("one per axis")
                    }
                })
                .collect()
        }
        Op::Squeeze(axes) => (0..from.len())
            .filter(|axis| !axes.contains(axis))
            .map(|axis| base.strides[axis])
            .collect(),
        Op::Broadcast => broadcast_strides(&base.strides, from, shape),
        other => unreachable!("{other:?} is not a view"),
    };
    Strided {
        place: base.place,
        offset: offset as usize,
        strides,
    }
}
