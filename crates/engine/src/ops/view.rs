//! Operators that move no data: they sink into the reads of whoever uses them.

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
    Ok(Node::intern(
        Op::Slice(slices),
        vec![x.clone()],
        counts.to_vec(),
        x.dtype,
        tile,
    ))
}

/// A slice that leaves elements out, of an element-wise value, as that of its operands: what is left out is neither read
/// nor computed.
fn sink(x: &Expr, slices: &[AxisSlice], counts: &[u64]) -> Result<Option<Expr>, EngineError> {
    let spread = slices
        .iter()
        .zip(counts)
        .any(|(slice, &count)| slice.step.unsigned_abs() > 1 && count > 1);
    if !spread || !super::is_made_of_stored(x) {
        return Ok(None);
    }
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
        slice(input, &slices, &counts)
    };
    let Op::Permute(axes) = &x.op else {
        return with_operands(x, side);
    };
    let mut inner = (slices.to_vec(), counts.to_vec());
    for (position, &axis) in axes.iter().enumerate() {
        (inner.0[axis], inner.1[axis]) = (slices[position], counts[position]);
    }
    permute(&slice(&x.inputs[0], &inner.0, &inner.1)?, axes).map(Some)
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
