//! Strided copies against a loop over all indices.

use outcore_kernels::{copy_strided, StridedBytes, StridedBytesMut};
use proptest::prelude::*;

fn naive(
    item: usize,
    shape: &[usize],
    source: &[u8],
    from: (usize, &[isize]),
    target: &mut [u8],
    to: (usize, &[isize]),
) {
    let count: usize = shape.iter().product();
    for flat in 0..count {
        let (mut rest, mut a, mut b) = (flat, from.0 as isize, to.0 as isize);
        for axis in (0..shape.len()).rev() {
            let index = (rest % shape[axis]) as isize;
            rest /= shape[axis];
            a += index * from.1[axis];
            b += index * to.1[axis];
        }
        let (a, b) = (a as usize * item, b as usize * item);
        target[b..b + item].copy_from_slice(&source[a..a + item]);
    }
}

/// Strides of a layout whose axes lie in memory in the given order, some of them walked backwards.
fn layout(shape: &[usize], order: &[usize], reversed: &[bool], gap: usize) -> (usize, Vec<isize>, usize) {
    let mut strides = vec![0; shape.len()];
    let (mut step, mut offset) = (1 + gap, 0);
    for &axis in order {
        strides[axis] = if reversed[axis] {
            -(step as isize)
        } else {
            step as isize
        };
        if reversed[axis] {
            offset += (shape[axis] - 1) * step;
        }
        step *= shape[axis];
    }
    (offset, strides, step)
}

proptest! {
    #[test]
    fn copies_are_those_of_the_naive_loop(
        (shape, first, second) in (0usize..5).prop_flat_map(|rank| (
            proptest::collection::vec(1usize..if rank < 3 { 40 } else { 9 }, rank),
            Just((0..rank).collect::<Vec<_>>()).prop_shuffle(),
            Just((0..rank).collect::<Vec<_>>()).prop_shuffle(),
        )),
        backwards in proptest::collection::vec(proptest::bool::weighted(0.2), 8),
        broadcast in proptest::option::weighted(0.3, 0usize..4),
        gaps in (0usize..2, 0usize..2),
        item in prop_oneof![Just(1usize), Just(2), Just(4), Just(8), Just(16)],
    ) {
        let (from, mut source_strides, extent) = layout(&shape, &first, &backwards[..4], gaps.0);
        let (to, target_strides, target_extent) = layout(&shape, &second, &backwards[4..], gaps.1);
        if let Some(axis) = broadcast.filter(|axis| *axis < shape.len() && !backwards[*axis]) {
            source_strides[axis] = 0;
        }
        let source: Vec<u8> = (0..extent * item).map(|i| (i * 131 % 251) as u8).collect();
        let mut target = vec![0xee; target_extent * item];
        let mut expected = target.clone();
        naive(item, &shape, &source, (from, &source_strides), &mut expected, (to, &target_strides));
        copy_strided(item, &shape, StridedBytes::new(&source, from, &source_strides), StridedBytesMut::new(&mut target, to, &target_strides));
        prop_assert_eq!(target, expected);
    }
}

#[test]
fn large_transposes_have_whole_and_ragged_tiles() {
    for (rows, columns) in [(8, 8), (64, 128), (129, 67), (200, 1)] {
        let source: Vec<u8> = (0..rows * columns * 8).map(|i| (i % 253) as u8).collect();
        let mut target = vec![0; source.len()];
        let mut expected = target.clone();
        let strides = ([1, columns as isize], [rows as isize, 1]);
        naive(
            8,
            &[columns, rows],
            &source,
            (0, &strides.0),
            &mut expected,
            (0, &strides.1),
        );
        copy_strided(
            8,
            &[columns, rows],
            StridedBytes::new(&source, 0, &strides.0),
            StridedBytesMut::new(&mut target, 0, &strides.1),
        );
        assert_eq!(target, expected);
    }
}

#[test]
fn an_empty_shape_copies_nothing() {
    copy_strided(
        8,
        &[3, 0],
        StridedBytes::new(&[], 5, &[1, 1]),
        StridedBytesMut::new(&mut [], 7, &[1, 1]),
    );
}

#[test]
#[should_panic(expected = "copy_strided: source of shape [2, 3]")]
fn a_source_that_ends_early_is_refused() {
    copy_strided(
        4,
        &[2, 3],
        StridedBytes::new(&[0; 20], 0, &[3, 1]),
        StridedBytesMut::new(&mut [0; 24], 0, &[3, 1]),
    );
}
