//! Generators: values by formula, and the same values however the array is cut.

use outcore_dtype::{DType, Scalar};
use outcore_kernels::{cast_kernel, generate, Generator};
use std::collections::HashSet;

fn make(generator: &Generator, dtype: DType, array: &[u64], start: &[u64], shape: &[usize]) -> Vec<u8> {
    let mut output = vec![0; shape.iter().product::<usize>() * dtype.size()];
    let mut aligned = vec![0u128; output.len().div_ceil(16)];
    let place = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut aligned)[..output.len()];
    generate(generator, dtype, array, start, shape, place);
    output.copy_from_slice(place);
    output
}

fn doubles(generator: &Generator, count: usize) -> Vec<f64> {
    let bytes = make(generator, DType::F64, &[count as u64], &[0], &[count]);
    bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect()
}

fn every_generator() -> Vec<Generator> {
    vec![
        Generator::Arange {
            start: Scalar::Int(3),
            step: Scalar::Int(1),
        },
        Generator::Linspace {
            start: 0.0,
            stop: 10.0,
            count: 7 * 45,
            endpoint: true,
        },
        Generator::Eye { k: 2 },
        Generator::Uniform {
            seed: 5,
            low: 0.0,
            high: 9.0,
        },
        Generator::Normal {
            seed: 5,
            mean: 10.0,
            deviation: 2.0,
        },
        Generator::Integers {
            seed: 5,
            low: 0,
            high: 100,
        },
        Generator::Full(Scalar::Int(1)),
    ]
}

#[test]
fn values_do_not_depend_on_the_tiling() {
    for generator in every_generator() {
        for dtype in DType::ALL {
            let whole = make(&generator, dtype, &[7, 45], &[0, 0], &[7, 45]);
            for (row, column, rows, columns) in [(0, 0, 7, 20), (2, 3, 4, 33), (6, 44, 1, 1), (1, 7, 5, 38)] {
                let tile = make(&generator, dtype, &[7, 45], &[row, column], &[rows, columns]);
                for i in 0..rows {
                    let size = dtype.size();
                    let at = ((row as usize + i) * 45 + column as usize) * size;
                    assert_eq!(
                        tile[i * columns * size..][..columns * size],
                        whole[at..at + columns * size],
                        "{generator:?} {dtype}"
                    );
                }
            }
        }
    }
}

#[test]
fn ranges_are_those_of_numpy() {
    let arange = Generator::Arange {
        start: Scalar::Float(0.1),
        step: Scalar::Float(0.2),
    };
    let step = (0.1 + 0.2) - 0.1;
    assert_eq!(
        doubles(&arange, 4),
        [0.1, 0.1 + step, 0.1 + 2.0 * step, 0.1 + 3.0 * step]
    );
    let down = Generator::Arange {
        start: Scalar::Int(i64::MAX),
        step: Scalar::Int(-2),
    };
    let bytes = make(&down, DType::I64, &[3], &[1], &[2]);
    assert_eq!(
        bytes,
        [(i64::MAX - 2).to_ne_bytes(), (i64::MAX - 4).to_ne_bytes()].concat()
    );
    let linspace = |endpoint| Generator::Linspace {
        start: 1.0,
        stop: 2.0,
        count: 4,
        endpoint,
    };
    assert_eq!(
        doubles(&linspace(true), 4),
        [1.0, 1.0 / 3.0 + 1.0, 2.0 * (1.0 / 3.0) + 1.0, 2.0]
    );
    assert_eq!(doubles(&linspace(false), 4), [1.0, 1.25, 1.5, 1.75]);
}

#[test]
fn a_scalar_array_has_one_value() {
    assert_eq!(
        make(&Generator::Full(Scalar::Float(2.5)), DType::F64, &[], &[], &[]),
        2.5f64.to_ne_bytes()
    );
}

#[test]
fn draws_have_the_moments_of_their_distributions() {
    let count = 100_000;
    let moments = |x: &[f64]| {
        let mean = x.iter().sum::<f64>() / count as f64;
        (mean, x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64)
    };
    let uniform = doubles(
        &Generator::Uniform {
            seed: 1,
            low: -1.0,
            high: 3.0,
        },
        count,
    );
    assert!(uniform.iter().all(|x| (-1.0..3.0).contains(x)));
    let (mean, variance) = moments(&uniform);
    assert!(
        (mean - 1.0).abs() < 0.02 && (variance - 16.0 / 12.0).abs() < 0.02,
        "{mean} {variance}"
    );
    let (mean, variance) = moments(&doubles(
        &Generator::Normal {
            seed: 1,
            mean: 5.0,
            deviation: 2.0,
        },
        count,
    ));
    assert!(
        (mean - 5.0).abs() < 0.03 && (variance - 4.0).abs() < 0.1,
        "{mean} {variance}"
    );
    let integers = doubles(
        &Generator::Integers {
            seed: 9,
            low: -3,
            high: 4,
        },
        count,
    );
    let seen: HashSet<i64> = integers.iter().map(|x| *x as i64).collect();
    assert_eq!(seen, (-3..4).collect());
    let wide = Generator::Integers {
        seed: 9,
        low: i64::MIN,
        high: i64::MAX,
    };
    assert!(doubles(&wide, 1000).iter().any(|x| *x < 0.0));
}

#[test]
fn equality_and_hashes_look_at_bits() {
    let set: HashSet<Generator> = every_generator().into_iter().chain(every_generator()).collect();
    assert_eq!(set.len(), every_generator().len());
    let zero = |x| Generator::Uniform {
        seed: 1,
        low: x,
        high: 1.0,
    };
    assert_ne!(zero(0.0), zero(-0.0));
    assert_eq!(zero(f64::NAN), zero(f64::NAN));
}

#[test]
#[should_panic(expected = "leaves the array")]
fn a_region_outside_the_array_is_refused() {
    make(&Generator::Full(Scalar::Int(0)), DType::I8, &[4], &[3], &[2]);
}

/// In half precision one draw of 4096 would round to 1, and more where the interval has few values.
#[test]
fn uniform_draws_stay_below_high_in_every_float_type() {
    let largest = |low: f64, high: f64, dtype: DType| {
        let count = 100_000;
        let bytes = make(
            &Generator::Uniform { seed: 3, low, high },
            dtype,
            &[count as u64],
            &[0],
            &[count],
        );
        let mut aligned = vec![0u64; (count * dtype.size()).div_ceil(8)];
        let aligned = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut aligned)[..bytes.len()];
        aligned.copy_from_slice(&bytes);
        let mut wide = vec![0f64; count];
        cast_kernel(dtype, DType::F64)(aligned, bytemuck::cast_slice_mut(&mut wide));
        assert!(wide.iter().all(|x| (low..high).contains(x)), "[{low}, {high}) {dtype}");
        wide.into_iter().fold(f64::NEG_INFINITY, f64::max)
    };
    assert_eq!(largest(0.0, 1.0, DType::F16), 1.0 - f64::powi(2.0, -11));
    assert!(largest(-1.0, 0.0, DType::F16) < 0.0);
    assert_eq!(largest(-2.0, -1.0, DType::F16), -1.0 - f64::powi(2.0, -10));
    assert_eq!(largest(1.0, 1.0004, DType::F16), 1.0);
    assert_eq!(
        largest(65536.0, 65536.03125, DType::F32),
        65536.03125 - f64::powi(2.0, -7)
    );
    assert_eq!(
        largest(65536.0, 65536.03125, DType::C64),
        65536.03125 - f64::powi(2.0, -7)
    );
    assert_eq!(
        largest(1.0, 1.0 + 4.0 * f64::EPSILON, DType::F64),
        1.0 + 3.0 * f64::EPSILON
    );
}

#[test]
fn an_empty_interval_gives_its_one_end() {
    let draws = Generator::Uniform {
        seed: 3,
        low: 2.5,
        high: 2.5,
    };
    assert_eq!(doubles(&draws, 3), [2.5; 3]);
}

/// One block of Philox4x32-10, as its authors write it.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(counter[0]) * 0xd251_1f53;
        let second = u64::from(counter[2]) * 0xcd9e_8d57;
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// The known-answer vectors published with the authors' Random123 library (`kat_vectors`, philox4x32 10).
#[test]
fn published_vectors() {
    let cases = [
        ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
        (
            [u32::MAX; 4],
            [u32::MAX; 2],
            [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
        ),
        (
            [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
            [0xa4093822, 0x299f31d0],
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
        ),
    ];
    for (counter, key, expected) in cases {
        assert_eq!(philox(counter, key), expected);
    }
}

/// Two from each block, whose counter is half the place; of the widest interval, so that all bits of a word are seen.
#[test]
fn draws_are_the_words_of_the_published_generator() {
    const COUNT: usize = 200;
    for seed in [0, u64::MAX, 0x299f_31d0_a409_3822] {
        let all = Generator::Integers {
            seed,
            low: i64::MIN,
            high: i64::MAX,
        };
        for start in [0, 1, (1 << 33) - 71, 0x243f_6a88_85a3_08d3, u64::MAX - COUNT as u64] {
            let found = make(&all, DType::I64, &[u64::MAX], &[start], &[COUNT]);
            for (place, value) in (start..).zip(found.chunks_exact(8)) {
                let block = place / 2;
                let counter = [block as u32, (block >> 32) as u32, 0, 0];
                let words = philox(counter, [seed as u32, (seed >> 32) as u32]);
                let half = 2 * (place % 2) as usize;
                let bits = u64::from(words[half + 1]) << 32 | u64::from(words[half]);
                let expected = i64::MIN.wrapping_add(bits.saturating_sub(1) as i64);
                assert_eq!(value, expected.to_ne_bytes(), "seed {seed}, place {place}");
            }
        }
    }
}
