//! Operators that move no data: they sink into the reads of whoever uses them.

use std::sync::Arc;

use super::elementwise::with_operands;
use super::{check_size, show};
use crate::expr::annotations::as_result_of;
use crate::expr::{grid, AxisSlice, Expr, Node, Op};
use crate::EngineError;

/// Checks that `axes` are distinct and below `ndim`.
fn check_axes(operator: &str, axes: &[usize], ndim: usize) -> Result<(), EngineError> {
    for (position, &axis) in axes.iter().enumerate() {
        if axis >= ndim {
            return Err(EngineError::Index(format!(
                "{operator}: axis {axis} is outside an array of {ndim} axes"
            )));
        }
        if axes[..position].contains(&axis) {
            return Err(EngineError::Index(format!("{operator}: axis {axis} is named twice")));
        }
    }
    Ok(())
}

/// Output axis `a` is input axis `axes[a]`. Two permutations in a row are one.
///
/// # Errors
/// `axes` that are no permutation of the axes of `x`.
pub fn permute(x: &Expr, axes: &[usize]) -> Result<Expr, EngineError> {
    if axes.len() != x.ndim() {
        return Err(EngineError::Shape(format!(
            "permute_dims: {} axes given for shape {}",
            axes.len(),
            show(&x.shape)
        )));
    }
    check_axes("permute_dims", axes, x.ndim())?;
    if axes.iter().enumerate().all(|(position, &axis)| position == axis) {
        return Ok(x.clone());
    }
    if let Op::Permute(inner) = &x.op {
        let joined: Vec<usize> = axes.iter().map(|&axis| inner[axis]).collect();
        let turned = permute(&x.inputs[0], &joined)?;
        return Ok(as_result_of(&Op::Permute(axes.to_vec()), x, turned));
    }
    let shape = axes.iter().map(|&axis| x.shape[axis]).collect();
    let tile = axes.iter().map(|&axis| x.tile[axis]).collect();
    Ok(Node::intern(
        Op::Permute(axes.to_vec()),
        vec![x.clone()],
        shape,
        x.dtype,
        tile,
    ))
}

/// Per axis `counts[a]` elements from `starts[a]` in steps of `steps[a]` (negative steps walk back).
///
/// # Errors
/// A slice that leaves the array.
pub fn slice(x: &Expr, slices: &[AxisSlice], counts: &[u64]) -> Result<Expr, EngineError> {
    if slices.len() != x.ndim() || counts.len() != x.ndim() {
        return Err(EngineError::Index(format!(
            "getitem: {} slices given for shape {}",
            slices.len(),
            show(&x.shape)
        )));
    }
    let mut unchanged = true;
    for (axis, (slice, &count)) in slices.iter().zip(counts).enumerate() {
        let length = x.shape[axis] as i128;
        let last = i128::from(slice.start) + i128::from(slice.step) * (i128::from(count) - 1);
        let inside = |index: i128| (0..length).contains(&index);
        if slice.step == 0 || (count > 0 && !(inside(i128::from(slice.start)) && inside(last))) {
            return Err(EngineError::Index(format!(
                "getitem: {count} elements from {} in steps of {} leave axis {axis} of shape {}",
                slice.start,
                slice.step,
                show(&x.shape)
            )));
        }
        unchanged &= slice.start == 0 && slice.step == 1 && count == x.shape[axis];
    }
    if unchanged {
        return Ok(x.clone());
    }
    if let Some(sunk) = sink(x, slices, counts)? {
        return Ok(as_result_of(&Op::Slice(vec![]), x, sunk));
    }
    Ok(of_whole(x, slices, counts))
}

/// A slice, within the array, of what is read or computed as a whole.
fn of_whole(x: &Expr, slices: &[AxisSlice], counts: &[u64]) -> Expr {
    let mut tile: Vec<u64> = (0..x.ndim())
        .map(|axis| (x.tile[axis] / slices[axis].step.unsigned_abs()).clamp(1, counts[axis].max(1)))
        .collect();
    join_spread(x, slices, counts, &mut tile);
    let tile = grid::sensible_tile(counts, x.dtype, tile);
    // A single element or an empty axis has no direction; one form for each keeps equal nodes equal.
    let slices = slices
        .iter()
        .zip(counts)
        .map(|(slice, &count)| {
            if count == 0 {
                AxisSlice { start: 0, step: 1 }
            } else {
                *slice
            }
        })
        .collect();
    Node::intern(Op::Slice(slices), vec![x.clone()], counts.to_vec(), x.dtype, tile)
}

/// Slices along an axis, by their starts, steps and lengths, one behind the other. Where they have half of the elements, `x` is
/// computed once for all of them.
///
/// # Errors
/// A slice that leaves the array.
pub fn take_runs(x: &Expr, axis: usize, runs: &[(AxisSlice, u64)]) -> Result<Expr, EngineError> {
    check_axes("take", &[axis], x.ndim())?;
    let taken: u64 = runs.iter().map(|(_, count)| count).sum();
    let parts = runs.iter().map(|&(run, count)| {
        let (mut slices, mut counts) = (vec![AxisSlice { start: 0, step: 1 }; x.ndim()], x.shape.clone());
        (slices[axis], counts[axis]) = (run, count);
        let part = slice(x, &slices, &counts)?;
        let is_joined = matches!(x.op, Op::Concat(_));
        let is_whole = taken >= x.shape[axis] / 2 && !is_joined && !Arc::ptr_eq(&part, x);
        Ok(if is_whole { of_whole(x, &slices, &counts) } else { part })
    });
    super::concat(&parts.collect::<Result<Vec<_>, EngineError>>()?, axis)
}

/// A slice below the operator that it is of, where that leaves something out which is then neither read nor computed: a
/// slice in steps of an element-wise value as that of its operands, one of joined arrays as that of those it meets.
fn sink(x: &Expr, slices: &[AxisSlice], counts: &[u64]) -> Result<Option<Expr>, EngineError> {
    if let Op::Concat(axis) = x.op {
        return of_joined(x, axis, slices, counts);
    }
    let spread = slices
        .iter()
        .zip(counts)
        .any(|(slice, &count)| slice.step.unsigned_abs() > 1 && count > 1);
    if !spread || !super::is_made_of_stored(x) {
        return Ok(None);
    }
    of_operands(x, slices, counts, slice)
}

/// How an operand is sliced.
type Slicing = fn(&Expr, &[AxisSlice], &[u64]) -> Result<Expr, EngineError>;

/// So many elements of a slice of a slice as those of one.
fn composed(outer: AxisSlice, inner: AxisSlice, count: u64) -> AxisSlice {
    match count {
        0 => AxisSlice { start: 0, step: 1 },
        1 => AxisSlice {
            start: outer.start + outer.step * inner.start,
            step: 1,
        },
        _ => AxisSlice {
            start: outer.start + outer.step * inner.start,
            step: outer.step * inner.step,
        },
    }
}

/// A slice of an element-wise, permuted or sliced value as that of its operands; nothing for other operators.
fn of_operands(x: &Expr, slices: &[AxisSlice], counts: &[u64], slicing: Slicing) -> Result<Option<Expr>, EngineError> {
    let side = |index: usize| {
        let input = &x.inputs[index];
        let skipped = x.ndim() - input.ndim();
        let kept = |axis: usize| input.shape[axis] == x.shape[skipped + axis];
        let whole = AxisSlice { start: 0, step: 1 };
        let along = |axis: usize| {
            if kept(axis) {
                (slices[skipped + axis], counts[skipped + axis])
            } else {
                (whole, 1)
            }
        };
        let (slices, counts): (Vec<_>, Vec<_>) = (0..input.ndim()).map(along).unzip();
        slicing(input, &slices, &counts)
    };
    if let Op::Slice(outer) = &x.op {
        let composed: Vec<AxisSlice> = (0..x.ndim())
            .map(|axis| composed(outer[axis], slices[axis], counts[axis]))
            .collect();
        return slicing(&x.inputs[0], &composed, counts).map(Some);
    }
    let Op::Permute(axes) = &x.op else {
        return with_operands(x, side);
    };
    let mut inner = (slices.to_vec(), counts.to_vec());
    for (position, &axis) in axes.iter().enumerate() {
        (inner.0[axis], inner.1[axis]) = (slices[position], counts[position]);
    }
    permute(&slicing(&x.inputs[0], &inner.0, &inner.1)?, axes).map(Some)
}

/// The elements `0 .. count` of a slice that lie in an interval of the axis: the first of them, and the one behind the last.
fn met(slice: AxisSlice, count: u64, begin: i64, end: i64) -> (i64, i64) {
    let step = slice.step.abs();
    // Elements from the beginning of the interval to the first of the slice, as the slice goes.
    let (low, high) = match slice.step > 0 {
        true => (begin - slice.start, end - slice.start),
        false => (slice.start - end + 1, slice.start - begin + 1),
    };
    let first_from = |distance: i64| (distance + step - 1).div_euclid(step).clamp(0, count as i64);
    (first_from(low), first_from(high))
}

/// A slice of joined arrays, where one of them or half of the elements are left out, as joined slices: else what has to be
/// computed for one of them would be computed as a whole.
fn of_joined(x: &Expr, axis: usize, slices: &[AxisSlice], counts: &[u64]) -> Result<Option<Expr>, EngineError> {
    let along = slices[axis];
    let mut parts = Vec::new();
    let mut begin = 0;
    for input in &x.inputs {
        let end = begin + input.shape[axis] as i64;
        let (first, behind) = met(along, counts[axis], begin, end);
        if first < behind {
            let start = along.start + along.step * first - begin;
            parts.push((input, start, (behind - first) as u64));
        }
        begin = end;
    }
    // Of stored arrays a read takes what it needs, whichever is left out.
    let saves = leaves_half_out(x, counts) && x.inputs.iter().any(is_computed);
    if parts.is_empty() || (parts.len() == x.inputs.len() && !saves) {
        return Ok(None);
    }
    if along.step < 0 {
        parts.reverse();
    }
    let beside = |lengths: &[u64]| {
        (0..x.ndim())
            .filter(|&at| at != axis)
            .map(|at| lengths[at])
            .product::<u64>()
    };
    let is_beside = saves && beside(counts) <= beside(&x.shape) / 2;
    if let Some(base) = common_base(x, axis).filter(|_| is_beside) {
        return of_taken(x, base, axis, (slices, counts), &parts).map(Some);
    }
    let sliced = parts.into_iter().map(|(input, start, count)| {
        let (mut slices, mut counts) = (slices.to_vec(), counts.to_vec());
        (slices[axis], counts[axis]) = (
            AxisSlice {
                start,
                step: along.step,
            },
            count,
        );
        below(input, &slices, &counts)
    });
    super::concat(&sliced.collect::<Result<Vec<_>, _>>()?, axis).map(Some)
}

/// The array that all of joined arrays are slices of, which differ along the joint alone.
fn common_base(x: &Expr, axis: usize) -> Option<&Expr> {
    let Op::Slice(first) = &x.inputs[0].op else {
        return None;
    };
    let base = &x.inputs[0].inputs[0];
    let is_alike = |input: &Expr| match &input.op {
        Op::Slice(other) => {
            let mut beside = (0..x.ndim()).filter(|&at| at != axis);
            Arc::ptr_eq(&input.inputs[0], base) && beside.all(|at| other[at] == first[at])
        }
        _ => false,
    };
    x.inputs.iter().all(is_alike).then_some(base)
}

/// A slice of what was taken from one array along an axis, as taken from a slice of that: what is computed for it is computed once.
fn of_taken(
    x: &Expr,
    base: &Expr,
    axis: usize,
    (slices, counts): (&[AxisSlice], &[u64]),
    parts: &[(&Expr, i64, u64)],
) -> Result<Expr, EngineError> {
    let taken = |part: &Expr, inner: AxisSlice, count: u64| match &part.op {
        Op::Slice(outer) => composed(outer[axis], inner, count),
        _ => inner,
    };
    let Op::Slice(first) = &x.inputs[0].op else {
        return Err(EngineError::Plan("what was taken is no slice".into()));
    };
    let (whole, along) = (AxisSlice { start: 0, step: 1 }, slices[axis]);
    let (beside, lengths): (Vec<_>, Vec<_>) = (0..x.ndim())
        .map(|at| match at == axis {
            true => (whole, base.shape[at]),
            false => (composed(first[at], slices[at], counts[at]), counts[at]),
        })
        .unzip();
    let rows = below(base, &beside, &lengths)?;
    let taken = parts.iter().map(|&(part, start, count)| {
        let (mut slices, mut counts) = (vec![whole; x.ndim()], lengths.clone());
        slices[axis] = taken(part, AxisSlice { start, ..along }, count);
        counts[axis] = count;
        slice(&rows, &slices, &counts)
    });
    super::concat(&taken.collect::<Result<Vec<_>, _>>()?, axis)
}

/// Whether a value is made element by element, below what moves no data.
fn is_computed(x: &Expr) -> bool {
    match &x.op {
        Op::Expand(_) | Op::Slice(_) | Op::Permute(_) => is_computed(&x.inputs[0]),
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_) => true,
        _ => false,
    }
}

fn leaves_half_out(x: &Expr, counts: &[u64]) -> bool {
    counts.iter().product::<u64>() <= x.elements() / 2
}

/// A slice of one of joined arrays: below axes of length one, and where half of the elements are left out below
/// element-wise operators.
fn below(x: &Expr, slices: &[AxisSlice], counts: &[u64]) -> Result<Expr, EngineError> {
    if let (Op::Expand(axes), false) = (&x.op, counts.contains(&0)) {
        let inner = (0..x.ndim()).filter(|axis| !axes.contains(axis));
        let (slices, counts): (Vec<_>, Vec<_>) = inner.map(|axis| (slices[axis], counts[axis])).unzip();
        return expand_dims(&below(&x.inputs[0], &slices, &counts)?, axes);
    }
    if leaves_half_out(x, counts) && super::is_made_of_stored(x) {
        if let Some(sunk) = of_operands(x, slices, counts, below)? {
            return Ok(sunk);
        }
    }
    slice(x, slices, counts)
}

/// Elements that lie more than a tile apart, and are small, make tiles of several: each is read alone.
fn join_spread(x: &Expr, slices: &[AxisSlice], counts: &[u64], tile: &mut [u64]) {
    const TOGETHER: u64 = 64;
    const SMALL_BYTES: u64 = 32 << 10;
    let spread = |axis: usize| slices[axis].step.unsigned_abs() > x.tile[axis] && counts[axis] > 1;
    let Some(axis) = (0..tile.len()).find(|&axis| spread(axis)) else {
        return;
    };
    let bytes = tile.iter().product::<u64>() * x.dtype.size() as u64;
    if bytes <= SMALL_BYTES && super::is_made_of_stored(x) {
        tile[axis] = TOGETHER.min(counts[axis]);
    }
}

/// `x` repeated along axes of length one and new leading axes.
///
/// # Errors
/// A target shape that `x` does not broadcast to.
pub fn broadcast_to(x: &Expr, shape: &[u64]) -> Result<Expr, EngineError> {
    let fits = shape.len() >= x.ndim()
        && x.shape
            .iter()
            .rev()
            .zip(shape.iter().rev())
            .all(|(&from, &to)| from == to || from == 1);
    if !fits {
        return Err(EngineError::Shape(format!(
            "broadcast_to: shape {} does not broadcast to {}",
            show(&x.shape),
            show(shape)
        )));
    }
    check_size("broadcast_to", shape, x.dtype)?;
    if shape == x.shape {
        return Ok(x.clone());
    }
    let skipped = shape.len() - x.ndim();
    let tile = (0..shape.len())
        .map(|axis| match axis.checked_sub(skipped) {
            Some(inner) if x.shape[inner] == shape[axis] => x.tile[inner],
            _ => shape[axis].max(1),
        })
        .collect();
    let mut tile = grid::sensible_tile(shape, x.dtype, tile);
    if tile.iter().map(|&length| length as u128).product::<u128>() * x.dtype.size() as u128
        > u128::from(grid::SQUARE_BYTES)
    {
        for (tile, fallback) in tile.iter_mut().zip(grid::default_tile(shape, x.dtype)) {
            *tile = (*tile).min(fallback);
        }
    }
    Ok(Node::intern(
        Op::Broadcast,
        vec![x.clone()],
        shape.to_vec(),
        x.dtype,
        tile,
    ))
}

/// Axes of length one at the positions `axes` of the result.
///
/// # Errors
/// Positions outside the result or named twice.
pub fn expand_dims(x: &Expr, axes: &[usize]) -> Result<Expr, EngineError> {
    let ndim = x.ndim() + axes.len();
    check_axes("expand_dims", axes, ndim)?;
    if axes.is_empty() {
        return Ok(x.clone());
    }
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    let (mut shape, mut tile) = (Vec::with_capacity(ndim), Vec::with_capacity(ndim));
    let mut inner = 0;
    for axis in 0..ndim {
        if axes.binary_search(&axis).is_ok() {
            shape.push(1);
            tile.push(1);
        } else {
            shape.push(x.shape[inner]);
            tile.push(x.tile[inner]);
            inner += 1;
        }
    }
    Ok(Node::intern(Op::Expand(axes), vec![x.clone()], shape, x.dtype, tile))
}

/// Removes the axes `axes`, each of length one.
///
/// # Errors
/// Axes outside the array, named twice, or longer than one.
pub fn squeeze(x: &Expr, axes: &[usize]) -> Result<Expr, EngineError> {
    check_axes("squeeze", axes, x.ndim())?;
    if let Some(&axis) = axes.iter().find(|&&axis| x.shape[axis] != 1) {
        return Err(EngineError::Shape(format!(
            "squeeze: axis {axis} of shape {} has length {}, not 1",
            show(&x.shape),
            x.shape[axis]
        )));
    }
    if axes.is_empty() {
        return Ok(x.clone());
    }
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    let kept: Vec<usize> = (0..x.ndim()).filter(|axis| axes.binary_search(axis).is_err()).collect();
    let shape = kept.iter().map(|&axis| x.shape[axis]).collect();
    let tile = kept.iter().map(|&axis| x.tile[axis]).collect();
    Ok(Node::intern(Op::Squeeze(axes), vec![x.clone()], shape, x.dtype, tile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_a_slice_are_met_in_the_intervals_that_hold_them() {
        for (start, step, count) in [(0i64, 1i64, 20u64), (3, 4, 5), (19, -1, 20), (18, -5, 4), (7, 1, 1)] {
            for (begin, end) in [(0, 20), (0, 3), (3, 4), (4, 11), (11, 20), (8, 8)] {
                let inside = |at: &i64| (begin..end).contains(&(start + step * at));
                let all: Vec<i64> = (0..count as i64).filter(inside).collect();
                let (first, behind) = met(AxisSlice { start, step }, count, begin, end);
                assert_eq!((first..behind).collect::<Vec<_>>(), all, "{start} {step} {begin} {end}");
            }
        }
    }
}
