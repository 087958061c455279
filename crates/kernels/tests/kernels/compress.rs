//! Masks against loops that ask every byte.

use outcore_kernels::{compress, count_true, nonzero_positions};

fn masks() -> Vec<Vec<u8>> {
    let mut masks = Vec::new();
    for length in [0, 1, 7, 8, 9, 63, 1000, 9001] {
        masks.push(vec![0; length]);
        masks.push(vec![1; length]);
        masks.push((0..length).map(|i| u8::from(i % 3 == 1)).collect());
        masks.push((0..length).map(|i| u8::from(i / 20 % 2 == 0)).collect());
        masks.push(
            (0..length as u32)
                .map(|i| u8::from(i.wrapping_mul(0x9e37_79b9) >> 28 < 5))
                .collect(),
        );
    }
    masks
}

#[test]
fn counts_and_positions_are_those_of_the_true_bytes() {
    for mask in masks() {
        let expected: Vec<i64> = (0..mask.len())
            .filter(|i| mask[*i] != 0)
            .map(|i| 70 + i as i64)
            .collect();
        assert_eq!(count_true(&mask), expected.len() as u64);
        let mut out = vec![0i64; expected.len()];
        assert_eq!(
            nonzero_positions(&mask, 70, bytemuck::cast_slice_mut(&mut out)),
            expected.len()
        );
        assert_eq!(out, expected);
    }
}

#[test]
fn compress_keeps_the_items_that_are_true() {
    for item in [1, 2, 3, 4, 8, 12, 16, 40] {
        for mask in masks() {
            let source: Vec<u8> = (0..mask.len() * item).map(|i| (i * 31 % 251) as u8).collect();
            let expected: Vec<u8> = (0..mask.len())
                .filter(|i| mask[*i] != 0)
                .flat_map(|i| source[i * item..(i + 1) * item].to_vec())
                .collect();
            let mut target = vec![0; expected.len() + item];
            assert_eq!(
                compress(item, &mask, &source, &mut target),
                expected.len() / item,
                "items of {item}"
            );
            assert_eq!(&target[..expected.len()], expected, "items of {item}");
            // Exactly enough room is enough.
            let mut target = vec![0; expected.len()];
            compress(item, &mask, &source, &mut target);
            assert_eq!(target, expected, "items of {item}");
        }
    }
}

#[test]
#[should_panic(expected = "too short")]
fn a_target_that_is_too_short_is_refused() {
    compress(8, &[1, 0, 1], &[0; 24], &mut [0; 8]);
}
