//! Strided copies: transposes, slices and broadcasts of tiles.
//!
//! The order of the copies does not matter, so the axes are merged and permuted until the innermost one is the target's
//! fastest. If it is the source's fastest too, rows are copied; else the two fastest axes form a transpose, done in
//! square tiles that stay in L1, the target's lines written whole.

/// One axis of the copy.
#[derive(Clone, Copy, Debug)]
struct Axis {
    extent: usize,
    source: isize,
    target: isize,
}

/// Elements as they lie in a slice; offset and strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct StridedBytes<'a> {
    data: &'a [u8],
    offset: usize,
    strides: &'a [isize],
}

impl<'a> StridedBytes<'a> {
    pub fn new(data: &'a [u8], offset: usize, strides: &'a [isize]) -> StridedBytes<'a> {
        StridedBytes { data, offset, strides }
    }
}

/// Places for elements in a slice; offset and strides count elements.
#[derive(Debug)]
pub struct StridedBytesMut<'a> {
    data: &'a mut [u8],
    offset: usize,
    strides: &'a [isize],
}

impl<'a> StridedBytesMut<'a> {
    pub fn new(data: &'a mut [u8], offset: usize, strides: &'a [isize]) -> StridedBytesMut<'a> {
        StridedBytesMut { data, offset, strides }
    }
}

/// Copies an array of `shape` and `item` bytes per element between two strided layouts.
///
/// Offsets and strides count elements; strides may be negative, and 0 in the source broadcasts. `O(elements)`, with no
/// allocation beyond the list of axes.
///
/// # Panics
/// When an element lies outside its slice, or the ranks differ.
pub fn copy_strided(item: usize, shape: &[usize], source: StridedBytes<'_>, target: StridedBytesMut<'_>) {
    let StridedBytes {
        data: source,
        offset: source_offset,
        strides: source_strides,
    } = source;
    let StridedBytesMut {
        data: target,
        offset: target_offset,
        strides: target_strides,
    } = target;
    assert!(
        source_strides.len() == shape.len() && target_strides.len() == shape.len(),
        "copy_strided: shape {shape:?} with source strides {source_strides:?} and target strides {target_strides:?}"
    );
    if shape.contains(&0) {
        return;
    }
    check("source", item, shape, source.len(), source_offset, source_strides);
    check("target", item, shape, target.len(), target_offset, target_strides);
    let axes = normalize(shape, source_strides, target_strides);
    let offsets = (source_offset, target_offset);
    match item {
        1 => copy::<1>(&axes, source, target, offsets),
        2 => copy::<2>(&axes, source, target, offsets),
        4 => copy::<4>(&axes, source, target, offsets),
        8 => copy::<8>(&axes, source, target, offsets),
        16 => copy::<16>(&axes, source, target, offsets),
        _ => panic!("copy_strided: elements of {item} bytes; 1, 2, 4, 8 and 16 are known"),
    }
}

fn check(name: &str, item: usize, shape: &[usize], bytes: usize, offset: usize, strides: &[isize]) {
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (extent, stride) in shape.iter().zip(strides) {
        let reach = (*extent as i128 - 1) * *stride as i128;
        low += reach.min(0);
        high += reach.max(0);
    }
    assert!(
        low >= 0 && (high + 1) * item as i128 <= bytes as i128,
        "copy_strided: {name} of shape {shape:?} at offset {offset} with strides {strides:?} reaches elements \
         {low}..={high} of {}",
        bytes / item
    );
}

/// The axes without those of one element, slowest target stride first, neighbours merged where both sides allow.
fn normalize(shape: &[usize], source: &[isize], target: &[isize]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = shape
        .iter()
        .zip(source)
        .zip(target)
        .filter(|((extent, _), _)| **extent > 1)
        .map(|((extent, source), target)| Axis {
            extent: *extent,
            source: *source,
            target: *target,
        })
        .collect();
    axes.sort_by_key(|axis| std::cmp::Reverse((axis.target.unsigned_abs(), axis.source.unsigned_abs())));
    let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
    for axis in axes {
        match merged.last_mut() {
            Some(outer)
                if outer.source == axis.source * axis.extent as isize
                    && outer.target == axis.target * axis.extent as isize =>
            {
                *outer = Axis {
                    extent: outer.extent * axis.extent,
                    ..axis
                };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

fn copy<const N: usize>(axes: &[Axis], source: &[u8], target: &mut [u8], offsets: (usize, usize)) {
    let (source, _) = source.as_chunks::<N>();
    let (target, _) = target.as_chunks_mut::<N>();
    let Some((&inner, outer)) = axes.split_last() else {
        target[offsets.1] = source[offsets.0];
        return;
    };
    // The source's fastest axis, broadcasts aside.
    let fastest = outer
        .iter()
        .enumerate()
        .filter(|(_, axis)| axis.source != 0 && axis.source.unsigned_abs() < inner.source.unsigned_abs())
        .min_by_key(|(_, axis)| axis.source.unsigned_abs());
    match fastest {
        Some((place, &across)) => {
            let mut outer = outer.to_vec();
            outer.remove(place);
            each(&outer, offsets, &mut |offsets| {
                transpose(across, inner, source, target, offsets)
            });
        }
        None => each(outer, offsets, &mut |offsets| copy_row(inner, source, target, offsets)),
    }
}

/// Calls `body` with the offsets of every position of the outer axes.
fn each(axes: &[Axis], offsets: (usize, usize), body: &mut impl FnMut((usize, usize))) {
    let Some((axis, rest)) = axes.split_first() else {
        return body(offsets);
    };
    for index in 0..axis.extent as isize {
        let moved = (
            offsets.0.wrapping_add_signed(index * axis.source),
            offsets.1.wrapping_add_signed(index * axis.target),
        );
        each(rest, moved, body);
    }
}

fn copy_row<const N: usize>(axis: Axis, source: &[[u8; N]], target: &mut [[u8; N]], (from, to): (usize, usize)) {
    let extent = axis.extent;
    match (axis.source, axis.target) {
        (1, 1) => target[to..to + extent].copy_from_slice(&source[from..from + extent]),
        (0, 1) => target[to..to + extent].fill(source[from]),
        (_, 1) if axis.source > 1 => {
            let values = source[from..].iter().step_by(axis.source as usize);
            for (place, value) in target[to..to + extent].iter_mut().zip(values) {
                *place = *value;
            }
        }
        _ => {
            for index in 0..extent as isize {
                target[to.wrapping_add_signed(index * axis.target)] =
                    source[from.wrapping_add_signed(index * axis.source)];
            }
        }
    }
}

/// Rows and columns of a register tile.
const TILE: usize = 8;
/// Columns of the target walked before its next rows: their source lines stay in L1.
const STRIP: usize = 64;

/// `across` is the source's fastest axis, `along` the target's.
fn transpose<const N: usize>(
    across: Axis,
    along: Axis,
    source: &[[u8; N]],
    target: &mut [[u8; N]],
    (from, to): (usize, usize),
) {
    let contiguous = across.source == 1 && along.target == 1;
    for first in (0..along.extent).step_by(STRIP) {
        let length = STRIP.min(along.extent - first);
        for row in (0..across.extent).step_by(TILE) {
            let rows = TILE.min(across.extent - row);
            for column in (first..first + length).step_by(TILE) {
                let columns = TILE.min(first + length - column);
                let (row, column) = (row as isize, column as isize);
                let from = from.wrapping_add_signed(row * across.source + column * along.source);
                let to = to.wrapping_add_signed(row * across.target + column * along.target);
                if contiguous && rows == TILE && columns == TILE {
                    full_tile(along.source, across.target, source, target, from, to);
                } else {
                    for i in 0..rows as isize {
                        for j in 0..columns as isize {
                            target[to.wrapping_add_signed(i * across.target + j * along.target)] =
                                source[from.wrapping_add_signed(i * across.source + j * along.source)];
                        }
                    }
                }
            }
        }
    }
}

/// One whole tile: contiguous runs are read, transposed in registers and written.
#[inline(always)]
fn full_tile<const N: usize>(
    source_stride: isize,
    target_stride: isize,
    source: &[[u8; N]],
    target: &mut [[u8; N]],
    from: usize,
    to: usize,
) {
    let mut tile = [[[0u8; N]; TILE]; TILE];
    for (line, values) in tile.iter_mut().enumerate() {
        let start = from.wrapping_add_signed(line as isize * source_stride);
        values.copy_from_slice(&source[start..start + TILE]);
    }
    for row in 0..TILE {
        let start = to.wrapping_add_signed(row as isize * target_stride);
        let places = &mut target[start..start + TILE];
        for (place, values) in places.iter_mut().zip(&tile) {
            *place = values[row];
        }
    }
}
