//! Reductions against naive loops, whole and in pieces.

use bytemuck::Pod;
use outcore_dtype::{Complex, DType, Scalar};
use outcore_kernels::{Finish, Reduce, Reducer};

struct Shape {
    outer: usize,
    length: usize,
    inner: usize,
}

const SHAPES: [[usize; 3]; 13] = [
    [1, 1, 1],
    [3, 1, 4],
    [1, 7, 1],
    [5, 9, 1],
    [2, 1000, 1],
    [1, 20_011, 1],
    [2, 333, 3],
    [1, 50, 32],
    [1, 129, 64],
    [2, 70, 100],
    [1, 40, 257],
    [4, 2, 2],
    [1, 3000, 8],
];

fn shapes() -> impl Iterator<Item = Shape> {
    SHAPES
        .into_iter()
        .map(|[outer, length, inner]| Shape { outer, length, inner })
}

fn values(count: usize) -> Vec<f64> {
    (0..count)
        .map(|i| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / 4096.0 - 2048.0)
        .collect()
}

/// Reduces in one piece, and in two pieces that are then combined.
fn reduce<T: Pod, R: Pod>(op: Reduce, dtype: DType, x: &[T], shape: &Shape, finish: Finish) -> [Vec<R>; 2] {
    let reducer = Reducer::new(op, dtype).unwrap();
    let Shape { outer, length, inner } = *shape;
    let columns = outer * inner;
    let size = op.accumulator_size(dtype);
    let fold = |from: usize, to: usize| {
        let mut storage = vec![0u128; (columns * size).div_ceil(16)];
        let accumulators = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut storage)[..columns * size];
        reducer.init(accumulators);
        let part: Vec<T> = x
            .chunks_exact(length * inner)
            .flat_map(|x| x[from * inner..to * inner].to_vec())
            .collect();
        reducer.accumulate(
            bytemuck::cast_slice(&part),
            outer,
            to - from,
            inner,
            from as i64,
            1,
            accumulators,
        );
        storage
    };
    let finished = |storage: &[u128]| {
        let mut output = vec![R::zeroed(); columns];
        reducer.finish(
            &bytemuck::cast_slice(storage)[..columns * size],
            finish,
            bytemuck::cast_slice_mut(&mut output),
        );
        output
    };
    let whole = fold(0, length);
    let mut left = fold(0, length / 3);
    let right = fold(length / 3, length);
    reducer.combine(
        &mut bytemuck::cast_slice_mut(&mut left)[..columns * size],
        &bytemuck::cast_slice(&right)[..columns * size],
    );
    [finished(&whole), finished(&left)]
}

/// The middle axis of each output element.
fn columns<'a, T: Copy>(x: &'a [T], shape: &'a Shape) -> impl Iterator<Item = Vec<T>> + 'a {
    let Shape { length, inner, .. } = *shape;
    x.chunks_exact(length * inner)
        .flat_map(move |x| (0..inner).map(move |j| (0..length).map(|i| x[i * inner + j]).collect()))
}

#[test]
fn accumulators_divide_into_words_or_elements() {
    for op in Reduce::ALL {
        for dtype in DType::ALL {
            assert_eq!(Reducer::new(*op, dtype).is_some(), op.supports(dtype), "{op:?} {dtype}");
            let size = op.accumulator_size(dtype);
            assert!(
                size > 0 && (size % 8 == 0 || size % dtype.size() == 0 || size == 1),
                "{op:?} {dtype}"
            );
        }
    }
}

macro_rules! exact {
    ($($name:ident, $T:ty, $dtype:expr);*) => {$(
        #[test]
        fn $name() {
            for shape in shapes() {
                let x: Vec<$T> = values(shape.outer * shape.length * shape.inner).iter().map(|x| (x * 31.0) as $T).collect();
                let expect = |op: Reduce, f: fn($T, $T) -> $T| {
                    for result in reduce::<$T, $T>(op, $dtype, &x, &shape, Finish::Value) {
                        let expected: Vec<$T> = columns(&x, &shape).map(|c| c.into_iter().reduce(f).unwrap()).collect();
                        assert_eq!(result, expected, "{op:?}");
                    }
                };
                expect(Reduce::Sum, <$T>::wrapping_add);
                expect(Reduce::Prod, <$T>::wrapping_mul);
                expect(Reduce::Min, |a, b| a.min(b));
                expect(Reduce::Max, |a, b| a.max(b));
                for (op, sign) in [(Reduce::ArgMin, 1i128), (Reduce::ArgMax, -1)] {
                    for result in reduce::<$T, i64>(op, $dtype, &x, &shape, Finish::Value) {
                        let first = |c: Vec<$T>| (0..c.len()).min_by_key(|i| c[*i] as i128 * sign).unwrap() as i64;
                        assert_eq!(result, columns(&x, &shape).map(first).collect::<Vec<_>>(), "{op:?}");
                    }
                }
                for result in reduce::<$T, i64>(Reduce::CountNonzero, $dtype, &x, &shape, Finish::Value) {
                    let count = |c: Vec<$T>| c.iter().filter(|x| **x != 0).count() as i64;
                    assert_eq!(result, columns(&x, &shape).map(count).collect::<Vec<_>>());
                }
            }
        }
    )*};
}

exact!(int8, i8, DType::I8; int16, i16, DType::I16; int32, i32, DType::I32; int64, i64, DType::I64;
    uint8, u8, DType::U8; uint16, u16, DType::U16; uint32, u32, DType::U32; uint64, u64, DType::U64);

#[test]
fn truth_on_every_type() {
    for dtype in DType::ALL {
        for (zeros, any, all) in [(0, 1, 1), (1, 1, 0), (5, 0, 0)] {
            let mut x = vec![0u128; 5];
            let x = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut x)[..5 * dtype.size()];
            for (i, place) in x.chunks_exact_mut(dtype.size()).enumerate() {
                place.copy_from_slice(&Scalar::Int(i64::from(i >= zeros)).to_bytes(dtype).unwrap());
            }
            for (op, expected) in [(Reduce::Any, any), (Reduce::All, all)] {
                let reducer = Reducer::new(op, dtype).unwrap();
                let mut accumulator = [9u8];
                reducer.init(&mut accumulator);
                reducer.accumulate(x, 1, 5, 1, 0, 1, &mut accumulator);
                assert_eq!(accumulator, [expected], "{op:?} {dtype} with {zeros} zeros");
            }
        }
    }
}

#[test]
fn float_sums_are_close_to_exact_ones() {
    for shape in shapes() {
        let x = values(shape.outer * shape.length * shape.inner);
        let single: Vec<f32> = x.iter().map(|x| *x as f32).collect();
        let pairs: Vec<Complex<f64>> = x.iter().map(|x| Complex::new(*x, 2.0 * x)).collect();
        let size = |c: &[f64]| c.iter().map(|x| x.abs()).sum::<f64>();
        // The values are multiples of 2^-12, so that these double sums are exact.
        let exact: Vec<(f64, f64)> = columns(&x, &shape).map(|c| (c.iter().sum(), size(&c))).collect();
        for result in reduce::<f64, f64>(Reduce::Sum, DType::F64, &x, &shape, Finish::Value) {
            assert_eq!(result, exact.iter().map(|(sum, _)| *sum).collect::<Vec<_>>());
        }
        for result in reduce::<f32, f32>(Reduce::Sum, DType::F32, &single, &shape, Finish::Value) {
            for (result, (sum, size)) in result.iter().zip(&exact) {
                assert!((f64::from(*result) - sum).abs() <= 40.0 * 6e-8 * size);
            }
        }
        for result in reduce::<Complex<f64>, Complex<f64>>(Reduce::Sum, DType::C128, &pairs, &shape, Finish::Value) {
            assert_eq!(
                result,
                exact
                    .iter()
                    .map(|(sum, _)| Complex::new(*sum, 2.0 * sum))
                    .collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn moments_are_those_of_two_passes() {
    for shape in shapes() {
        let x: Vec<f64> = values(shape.outer * shape.length * shape.inner)
            .iter()
            .map(|x| x + 1e6)
            .collect();
        let z: Vec<Complex<f64>> = x.iter().map(|x| Complex::new(*x, 3.0 - x)).collect();
        let expected: Vec<(f64, f64)> = columns(&x, &shape)
            .map(|c| {
                let mean = c.iter().sum::<f64>() / c.len() as f64;
                (
                    mean,
                    c.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / c.len() as f64,
                )
            })
            .collect();
        let variance = Finish::Variance { correction: 0.0 };
        let deviation = Finish::StandardDeviation { correction: 0.0 };
        let check = |results: [Vec<f64>; 2], expected: Vec<f64>, tolerance: f64| {
            for result in results {
                for (result, expected) in result.iter().zip(&expected) {
                    assert!(
                        (result - expected).abs() <= tolerance * expected.abs(),
                        "{result} for {expected}"
                    );
                }
            }
        };
        let of = |f: fn(&(f64, f64)) -> f64| expected.iter().map(f).collect::<Vec<_>>();
        check(
            reduce(Reduce::Moments, DType::F64, &x, &shape, Finish::Mean),
            of(|e| e.0),
            1e-15,
        );
        check(
            reduce(Reduce::Moments, DType::F64, &x, &shape, variance),
            of(|e| e.1),
            1e-9,
        );
        check(
            reduce(Reduce::Moments, DType::F64, &x, &shape, deviation),
            of(|e| e.1.sqrt()),
            1e-9,
        );
        check(
            reduce(Reduce::Moments, DType::C128, &z, &shape, variance),
            of(|e| 2.0 * e.1),
            1e-9,
        );
        for result in reduce::<Complex<f64>, Complex<f64>>(Reduce::Moments, DType::C128, &z, &shape, Finish::Mean) {
            for (result, (mean, _)) in result.iter().zip(&expected) {
                assert!((result - Complex::new(*mean, 3.0 - mean)).norm() <= 1e-14 * mean.abs());
            }
        }
    }
}

#[test]
fn nan_is_the_extremum_and_its_first_position_the_argument() {
    let shape = Shape {
        outer: 1,
        length: 100,
        inner: 1,
    };
    let mut x = values(100);
    (x[40], x[70]) = (f64::NAN, f64::NAN);
    for op in [Reduce::Min, Reduce::Max] {
        for result in reduce::<f64, f64>(op, DType::F64, &x, &shape, Finish::Value) {
            assert!(result[0].is_nan());
        }
    }
    for op in [Reduce::ArgMin, Reduce::ArgMax] {
        assert_eq!(
            reduce::<f64, i64>(op, DType::F64, &x, &shape, Finish::Value),
            [[40], [40]]
        );
    }
}

#[test]
fn arguments_follow_the_step_and_take_the_smaller_position() {
    let x = [3.0f64, 1.0, -0.0, 0.0, 7.0, 0.0];
    for (base, step, expected) in [(0, 1, 2), (100, -10, 50), (5, 2, 9)] {
        let reducer = Reducer::new(Reduce::ArgMin, DType::F64).unwrap();
        for inner in [1, 2] {
            let block: Vec<f64> = x.iter().flat_map(|x| vec![*x; inner]).collect();
            let mut accumulators = vec![0u64; 2 * inner];
            reducer.init(bytemuck::cast_slice_mut(&mut accumulators));
            reducer.accumulate(
                bytemuck::cast_slice(&block),
                1,
                6,
                inner,
                base,
                step,
                bytemuck::cast_slice_mut(&mut accumulators),
            );
            assert_eq!(accumulators[0], expected);
        }
    }
}

/// Blocks folded one by one, then the halves combined, against exact integer arithmetic.
#[test]
fn variances_keep_their_digits_under_a_large_offset() {
    let reducer = Reducer::new(Reduce::Moments, DType::F64).unwrap();
    let variance = |x: &[f64], block: usize| {
        let size = reducer.op.accumulator_size(DType::F64);
        let mut halves = [[0u64; 4]; 2];
        for (x, accumulator) in x.chunks(x.len().div_ceil(2)).zip(&mut halves) {
            let accumulator = &mut bytemuck::cast_slice_mut(accumulator)[..size];
            reducer.init(accumulator);
            for x in x.chunks(block) {
                reducer.accumulate(bytemuck::cast_slice(x), 1, x.len(), 1, 0, 1, accumulator);
            }
        }
        let [mut left, right] = halves;
        reducer.combine(bytemuck::cast_slice_mut(&mut left), bytemuck::cast_slice(&right));
        let mut result = [0f64];
        let finish = Finish::Variance { correction: 0.0 };
        reducer.finish(
            bytemuck::cast_slice(&left),
            finish,
            bytemuck::cast_slice_mut(&mut result),
        );
        result[0]
    };
    for (offset, unit, count, block) in [
        (1e9, f64::powi(2.0, -23), 1_000_000, 30_011),
        (1e9, f64::powi(2.0, -23), 300_000, 1000),
        (1e13, f64::powi(2.0, -9), 1000, 1000),
        (1e13, f64::powi(2.0, -9), 1000, 37),
        (-1e15, 0.125, 5000, 64),
    ] {
        // Deviations are whole numbers of units, below 2^20 of them, so that the integers hold every sum.
        let steps: Vec<i128> = (0..count as u64)
            .map(|i| i128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) * if offset < 2e9 { 8 } else { 1 })
            .collect();
        let x: Vec<f64> = steps.iter().map(|step| offset + *step as f64 * unit).collect();
        let (sum, squares) = steps
            .iter()
            .fold((0, 0), |(sum, squares), s| (sum + s, squares + s * s));
        let n = i128::from(count);
        let expected = (n * squares - sum * sum) as f64 / (n * n) as f64 * unit * unit;
        let result = variance(&x, block);
        assert!(
            (result - expected).abs() <= 2e-15 * expected,
            "{offset} in blocks of {block}: {result}, not {expected}"
        );
    }
    assert_eq!(variance(&[0.1; 1000], 77), 0.0);
    assert!(variance(&[1.0, f64::INFINITY, 2.0], 1).is_nan());
}

#[test]
fn an_infinite_mean_stays_infinite() {
    let shape = Shape {
        outer: 1,
        length: 9,
        inner: 1,
    };
    let mut x = [1.0f64; 9];
    x[7] = f64::INFINITY;
    for result in reduce::<f64, f64>(Reduce::Moments, DType::F64, &x, &shape, Finish::Mean) {
        assert_eq!(result, [f64::INFINITY]);
    }
}
