//! Element-wise kernels against naive oracles, on every type.

use bytemuck::Pod;
use outcore_dtype::{f16, with_dtype, Complex, DType};
use outcore_kernels::{binary_kernel, cast_kernel, select_kernel, unary_kernel, Binary, Unary};
use proptest::prelude::*;

/// Aligned storage for `length` elements of `dtype`.
fn zeros(dtype: DType, length: usize) -> Vec<u128> {
    vec![0; (dtype.size() * length).div_ceil(16)]
}

fn bytes(storage: &mut [u128], dtype: DType, length: usize) -> &mut [u8] {
    &mut bytemuck::cast_slice_mut(storage)[..dtype.size() * length]
}

pub fn unary<A: Pod, R: Pod>(op: Unary, dtype: DType, input: &[A]) -> Vec<R> {
    let kernel = unary_kernel(op, dtype).unwrap();
    let mut output = vec![R::zeroed(); input.len()];
    kernel(bytemuck::cast_slice(input), bytemuck::cast_slice_mut(&mut output));
    output
}

pub fn binary<A: Pod, R: Pod>(op: Binary, dtype: DType, left: &[A], right: &[A]) -> Vec<R> {
    let kernel = binary_kernel(op, dtype).unwrap();
    let mut output = vec![R::zeroed(); left.len().max(right.len())];
    kernel(
        bytemuck::cast_slice(left),
        bytemuck::cast_slice(right),
        bytemuck::cast_slice_mut(&mut output),
    );
    output
}

/// Values of every type that exercise signs, halves and special numbers.
fn samples(dtype: DType, length: usize) -> Vec<u128> {
    let source: Vec<f64> = (0..length).map(|i| ((i * 37 % 101) as f64 - 50.0) * 0.5).collect();
    let mut storage = zeros(dtype, length);
    cast_kernel(DType::F64, dtype)(bytemuck::cast_slice(&source), bytes(&mut storage, dtype, length));
    storage
}

#[test]
fn names_round_trip() {
    for op in Unary::ALL {
        assert_eq!(Unary::from_name(op.name()), Some(*op));
    }
    for op in Binary::ALL {
        assert_eq!(Binary::from_name(op.name()), Some(*op));
    }
}

#[test]
fn every_supported_operation_has_a_kernel_on_its_compute_type() {
    for dtype in DType::ALL {
        for op in Unary::ALL {
            if let Some(compute) = op.compute_dtype(dtype) {
                assert_eq!(op.compute_dtype(compute), Some(compute), "{op:?} {dtype}");
                assert!(unary_kernel(*op, compute).is_some(), "{op:?} {dtype} in {compute}");
            }
        }
        for op in Binary::ALL {
            if let Some(compute) = op.compute_dtype(dtype) {
                assert_eq!(op.compute_dtype(compute), Some(compute), "{op:?} {dtype}");
                assert!(binary_kernel(*op, compute).is_some(), "{op:?} {dtype} in {compute}");
            }
        }
    }
}

#[test]
fn compute_types_are_those_of_numpy() {
    use DType::*;
    assert_eq!(Unary::Sqrt.compute_dtype(I32), Some(F64));
    assert_eq!(Unary::Sqrt.compute_dtype(I8), Some(F16));
    assert_eq!(Unary::Negative.compute_dtype(Bool), None);
    assert_eq!(Unary::Floor.compute_dtype(C64), None);
    assert_eq!(Unary::Absolute.output_dtype(C64), F32);
    assert_eq!(Binary::Divide.compute_dtype(I8), Some(F64));
    assert_eq!(Binary::Add.compute_dtype(Bool), Some(Bool));
    assert_eq!(Binary::Subtract.compute_dtype(Bool), None);
    assert_eq!(Binary::Less.compute_dtype(C128), None);
    assert_eq!(Binary::Pow.compute_dtype(Bool), Some(I8));
}

/// A one-element operand gives the bits that the repeated operand gives, and a strip those of its elements.
#[test]
fn broadcasting_is_repetition_on_every_type() {
    const LENGTH: usize = 131;
    for dtype in DType::ALL {
        let mut left = samples(dtype, LENGTH);
        let left = bytes(&mut left, dtype, LENGTH);
        for op in Binary::ALL {
            let Some(kernel) = binary_kernel(*op, dtype) else {
                continue;
            };
            let result = op.output_dtype(dtype);
            let size = dtype.size();
            let mut single = zeros(dtype, 1);
            bytes(&mut single, dtype, 1).copy_from_slice(&left[7 * size..8 * size]);
            let single = bytes(&mut single, dtype, 1);
            let mut repeated = zeros(dtype, LENGTH);
            let repeated = bytes(&mut repeated, dtype, LENGTH);
            repeated
                .chunks_exact_mut(size)
                .for_each(|place| place.copy_from_slice(single));
            let run = |a: &[u8], b: &[u8]| {
                let mut output = zeros(result, LENGTH);
                kernel(a, b, bytes(&mut output, result, LENGTH));
                output
            };
            assert_eq!(run(left, single), run(left, repeated), "{op:?} {dtype}");
            assert_eq!(run(single, left), run(repeated, left), "{op:?} {dtype}");
            assert_eq!(run(single, single), run(repeated, repeated), "{op:?} {dtype}");
        }
    }
}

/// Strips of a long row, by way of a third type or not, give what short rows give.
#[test]
fn a_long_row_gives_what_its_pieces_give() {
    const LENGTH: usize = 5000;
    const PIECE: usize = 7;
    let pieces = |size: usize| {
        (0..LENGTH)
            .step_by(PIECE)
            .map(move |at| at * size..LENGTH.min(at + PIECE) * size)
    };
    for from in DType::ALL {
        let mut input = samples(from, LENGTH);
        let input = &*bytes(&mut input, from, LENGTH);
        let check = |kernel: &dyn Fn(&[u8], &mut [u8]), to: DType, what: &str| {
            let (mut whole, mut joined) = (zeros(to, LENGTH), zeros(to, LENGTH));
            kernel(input, bytes(&mut whole, to, LENGTH));
            for (own, result) in pieces(from.size()).zip(pieces(to.size())) {
                kernel(&input[own], &mut bytes(&mut joined, to, LENGTH)[result]);
            }
            assert_eq!(whole, joined, "{what} {from} {to}");
        };
        for to in DType::ALL {
            check(&cast_kernel(from, to), to, "cast");
        }
        for op in Unary::ALL {
            if let Some(kernel) = unary_kernel(*op, from) {
                check(&kernel, op.output_dtype(from), op.name());
            }
        }
        for op in Binary::ALL {
            if let Some(kernel) = binary_kernel(*op, from) {
                check(
                    &|input, output| kernel(input, input, output),
                    op.output_dtype(from),
                    op.name(),
                );
            }
        }
    }
}

macro_rules! integer_properties {
    ($($name:ident, $T:ident, $dtype:expr);*) => {$(
        mod $name {
            use super::*;

            fn oracle(op: Binary, a: i128, b: i128) -> i128 {
                match op {
                    Binary::Add => a + b,
                    Binary::Subtract => a - b,
                    Binary::Multiply => a.wrapping_mul(b),
                    Binary::FloorDivide if b == 0 => 0,
                    Binary::FloorDivide => a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
                    Binary::Remainder if b == 0 => 0,
                    Binary::Remainder => a - b * oracle(Binary::FloorDivide, a, b),
                    Binary::Pow if b < 0 => match a { 1 => 1, -1 => if b % 2 == 0 { 1 } else { -1 }, _ => 0 },
                    Binary::Pow => (0..b).fold(1i128, |power, _| (power.wrapping_mul(a) as $T) as i128),
                    Binary::ShiftLeft if (0..$T::BITS as i128).contains(&b) => (a << b) as $T as i128,
                    Binary::ShiftLeft => 0,
                    Binary::ShiftRight if (0..$T::BITS as i128).contains(&b) => a >> b,
                    Binary::ShiftRight => if a < 0 { -1 } else { 0 },
                    Binary::Minimum => a.min(b),
                    Binary::Maximum => a.max(b),
                    other => unreachable!("{other:?}"),
                }
            }

            proptest! {
                #[test]
                fn arithmetic_is_that_of_the_integers_cut_to_the_width(
                    a in proptest::collection::vec(prop_oneof![any::<$T>(), Just($T::MIN), Just($T::MAX), 0..3 as $T], 100),
                    b in proptest::collection::vec(prop_oneof![any::<$T>(), Just($T::MAX), Just((0 as $T).wrapping_sub(1)), 0..70 as $T], 100),
                ) {
                    use Binary::*;
                    for op in [Add, Subtract, Multiply, FloorDivide, Remainder, ShiftLeft, ShiftRight, Minimum, Maximum] {
                        let expected: Vec<$T> =
                            a.iter().zip(&b).map(|(a, b)| oracle(op, *a as i128, *b as i128) as $T).collect();
                        prop_assert_eq!(binary::<$T, $T>(op, $dtype, &a, &b), expected, "{:?}", op);
                    }
                    let small: Vec<$T> = b.iter().map(|b| b % 70).collect();
                    let expected: Vec<$T> =
                        a.iter().zip(&small).map(|(a, b)| oracle(Pow, *a as i128, *b as i128) as $T).collect();
                    prop_assert_eq!(binary::<$T, $T>(Pow, $dtype, &a, &small), expected);
                    let less: Vec<u8> = a.iter().zip(&b).map(|(a, b)| u8::from(a < b)).collect();
                    prop_assert_eq!(binary::<$T, u8>(Less, $dtype, &a, &b), less);
                    let absolute: Vec<$T> = a.iter().map(|a| (*a as i128).unsigned_abs() as $T).collect();
                    prop_assert_eq!(unary::<$T, $T>(Unary::Absolute, $dtype, &a), absolute);
                }
            }
        }
    )*};
}

integer_properties!(int8, i8, DType::I8; int16, i16, DType::I16; int32, i32, DType::I32; int64, i64, DType::I64;
    uint8, u8, DType::U8; uint16, u16, DType::U16; uint32, u32, DType::U32; uint64, u64, DType::U64);

macro_rules! float_properties {
    ($($name:ident, $T:ident, $Bits:ident, $dtype:expr);*) => {$(
        mod $name {
            use super::*;

            fn same(a: $T, b: $T) -> bool {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            }

            fn float() -> impl Strategy<Value = $T> {
                prop_oneof![
                    any::<$Bits>().prop_map($T::from_bits),
                    (-8i32..8).prop_map(|x| x as $T / 2.0),
                    Just(-0.0), Just($T::INFINITY), Just($T::NEG_INFINITY), Just($T::NAN),
                ]
            }

            proptest! {
                #[test]
                fn arithmetic_is_that_of_one_element(
                    a in proptest::collection::vec(float(), 67), b in proptest::collection::vec(float(), 67),
                ) {
                    let pairs: [(Binary, fn($T, $T) -> $T); 7] = [
                        (Binary::Add, |a, b| a + b),
                        (Binary::Subtract, |a, b| a - b),
                        (Binary::Multiply, |a, b| a * b),
                        (Binary::Divide, |a, b| a / b),
                        (Binary::CopySign, |a, b| a.copysign(b)),
                        (Binary::Pow, $T::powf),
                        (Binary::Atan2, $T::atan2),
                    ];
                    for (op, f) in pairs {
                        for ((a, b), result) in a.iter().zip(&b).zip(binary::<$T, $T>(op, $dtype, &a, &b)) {
                            prop_assert!(same(result, f(*a, *b)), "{op:?} {a} {b} gave {result}");
                        }
                    }
                    let singles: [(Unary, fn($T) -> $T); 8] = [
                        (Unary::Negative, |x| -x),
                        (Unary::Absolute, $T::abs),
                        (Unary::Sqrt, $T::sqrt),
                        (Unary::Floor, $T::floor),
                        (Unary::Ceil, $T::ceil),
                        (Unary::Trunc, $T::trunc),
                        (Unary::Round, $T::round_ties_even),
                        (Unary::Expm1, $T::exp_m1),
                    ];
                    for (op, f) in singles {
                        for (a, result) in a.iter().zip(unary::<$T, $T>(op, $dtype, &a)) {
                            prop_assert!(same(result, f(*a)), "{op:?} {a} gave {result}");
                        }
                    }
                }

                #[test]
                fn extrema_propagate_nan(a in float(), b in float()) {
                    for (op, f) in [(Binary::Minimum, $T::min as fn($T, $T) -> $T), (Binary::Maximum, $T::max)] {
                        let result = binary::<$T, $T>(op, $dtype, &[a], &[b])[0];
                        if a.is_nan() || b.is_nan() {
                            prop_assert!(result.is_nan());
                        } else {
                            prop_assert_eq!(result, f(a, b));
                        }
                    }
                }

                #[test]
                fn remainder_has_the_divisors_sign(a in -1000i32..1000, b in (-50i32..50).prop_filter("not 0", |b| *b != 0)) {
                    let (x, y) = (a as $T, b as $T);
                    let quotient = binary::<$T, $T>(Binary::FloorDivide, $dtype, &[x], &[y])[0];
                    let remainder = binary::<$T, $T>(Binary::Remainder, $dtype, &[x], &[y])[0];
                    prop_assert_eq!(quotient, (f64::from(a) / f64::from(b)).floor() as $T);
                    prop_assert_eq!(quotient * y + remainder, x);
                    prop_assert_eq!(remainder.is_sign_negative(), y < 0.0);
                }
            }
        }
    )*};
}

float_properties!(float32, f32, u32, DType::F32; float64, f64, u64, DType::F64);

#[test]
fn division_by_zero_is_that_of_numpy() {
    assert_eq!(
        binary::<f64, f64>(Binary::FloorDivide, DType::F64, &[1.0, -1.0], &[0.0]),
        [f64::INFINITY, -f64::INFINITY]
    );
    assert!(binary::<f64, f64>(Binary::Remainder, DType::F64, &[1.0], &[0.0])[0].is_nan());
    assert_eq!(
        binary::<f64, f64>(Binary::FloorDivide, DType::F64, &[-1.0], &[f64::INFINITY]),
        [-1.0]
    );
}

#[test]
fn halves_compute_through_single_precision() {
    let a: Vec<f16> = (0..200).map(|i| f16::from_f32_const(i as f32 * 0.37 - 30.0)).collect();
    let b: Vec<f16> = (0..200).map(|i| f16::from_f32_const(i as f32 * 0.11 - 3.0)).collect();
    let product = binary::<f16, f16>(Binary::Multiply, DType::F16, &a, &b);
    for ((a, b), product) in a.iter().zip(&b).zip(product) {
        assert_eq!(
            product.to_bits(),
            f16::from_f32_const(a.to_f32_const() * b.to_f32_const()).to_bits()
        );
    }
    let next = binary::<f16, f16>(Binary::NextAfter, DType::F16, &[f16::ZERO, f16::ONE], &[f16::NEG_ONE]);
    assert_eq!([next[0].to_bits(), next[1].to_bits()], [0x8001, 0x3bff]);
}

#[test]
fn casts_saturate_wrap_drop_and_test() {
    fn cast<A: Pod, R: Pod>(from: DType, to: DType, input: &[A]) -> Vec<R> {
        let mut output = vec![R::zeroed(); input.len()];
        cast_kernel(from, to)(bytemuck::cast_slice(input), bytemuck::cast_slice_mut(&mut output));
        output
    }
    assert_eq!(
        cast::<f64, i8>(DType::F64, DType::I8, &[1e9, -1e9, f64::NAN, -1.9]),
        [127, -128, 0, -1]
    );
    assert_eq!(cast::<i32, u8>(DType::I32, DType::U8, &[300, -1]), [44, 255]);
    assert_eq!(
        cast::<f64, u8>(DType::F64, DType::Bool, &[0.5, -0.0, f64::NAN]),
        [1, 0, 1]
    );
    assert_eq!(
        cast::<Complex<f64>, f32>(DType::C128, DType::F32, &[Complex::new(2.5, 9.0)]),
        [2.5]
    );
    // Rounding once: through single precision this value would tie and go up.
    let value = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40);
    assert_eq!(cast::<f64, u16>(DType::F64, DType::F16, &[value]), [0x3c01]);
    for from in DType::ALL {
        for to in DType::ALL {
            let mut input = zeros(from, 5);
            let mut output = zeros(to, 5);
            let one = outcore_dtype::Scalar::Int(1);
            bytes(&mut input, from, 5).copy_from_slice(&one.to_bytes(from).unwrap().repeat(5));
            cast_kernel(from, to)(bytes(&mut input, from, 5), bytes(&mut output, to, 5));
            assert_eq!(
                bytes(&mut output, to, 5),
                one.to_bytes(to).unwrap().repeat(5),
                "{from} to {to}"
            );
        }
    }
}

#[test]
fn selection_takes_left_where_true_on_every_type() {
    const LENGTH: usize = 77;
    let condition: Vec<u8> = (0..LENGTH).map(|i| u8::from(i * i % 3 == 1)).collect();
    for dtype in DType::ALL {
        let size = dtype.size();
        let (mut left, mut right) = (samples(dtype, LENGTH), samples(dtype, LENGTH + 9));
        let left = bytes(&mut left, dtype, LENGTH);
        let right = &bytes(&mut right, dtype, LENGTH + 9)[9 * size..];
        for (a, b) in [(LENGTH, LENGTH), (1, LENGTH), (LENGTH, 1), (1, 1)] {
            for conditions in [&condition[..], &condition[..1]] {
                let mut output = zeros(dtype, LENGTH);
                let mut aligned = zeros(dtype, LENGTH);
                let aligned = bytes(&mut aligned, dtype, LENGTH);
                aligned.copy_from_slice(right);
                select_kernel(dtype)(
                    conditions,
                    &left[..a * size],
                    &aligned[..b * size],
                    bytes(&mut output, dtype, LENGTH),
                );
                for i in 0..LENGTH {
                    let (side, count) = if conditions[i % conditions.len()] != 0 {
                        (&*left, a)
                    } else {
                        (&*aligned, b)
                    };
                    let at = (i % count) * size;
                    assert_eq!(
                        bytes(&mut output, dtype, LENGTH)[i * size..][..size],
                        side[at..at + size],
                        "{dtype}"
                    );
                }
            }
        }
        with_dtype!(dtype, T => assert_eq!(size_of::<T>(), size));
    }
}

/// Expected values from mpmath at 400 bits.
#[test]
fn inverse_hyperbolic_functions_keep_their_digits() {
    let close = |op, x: f64, expected: f64| {
        let result = unary::<f64, f64>(op, DType::F64, &[x])[0];
        assert!(
            (result - expected).abs() <= 4e-16 * expected.abs(),
            "{op:?}({x}) = {result}, not {expected}"
        );
        let single = unary::<f32, f32>(op, DType::F32, &[x as f32])[0];
        if f64::from(x as f32) == x {
            assert_eq!(single, expected as f32, "{op:?}({x})");
        }
    };
    close(Unary::Atanh, -0.999999999999, -14.162095209226402);
    close(Unary::Atanh, -1.0 + f64::EPSILON / 2.0, -18.714973875118524);
    close(Unary::Atanh, 0.5, 0.5493061443340549);
    close(Unary::Atanh, 1e-20, 1e-20);
    close(Unary::Acosh, 1.0 + f64::EPSILON, 2.1073424255447014e-8);
    close(Unary::Acosh, f64::from(1.000001f32), 0.0013810678222475811);
    close(Unary::Acosh, 1e308, 709.889355822726);
    close(Unary::Asinh, 1e308, 709.889355822726);
    close(Unary::Asinh, -1e308, -709.889355822726);
    close(Unary::Acosh, f64::from(2e38f32), 88.8845278629222);
    close(Unary::Asinh, f64::from(2e38f32), 88.8845278629222);
    close(Unary::Asinh, -1e-300, -1e-300);
}

#[test]
fn inverse_hyperbolic_functions_are_odd_and_end_where_they_should() {
    let x: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.001).collect();
    let mirrored: Vec<f64> = x.iter().map(|x| -x).collect();
    for op in [Unary::Asinh, Unary::Atanh] {
        let results = unary::<f64, f64>(op, DType::F64, &x);
        for (result, opposite) in results.iter().zip(unary::<f64, f64>(op, DType::F64, &mirrored)) {
            assert_eq!(result.to_bits(), (-opposite).to_bits(), "{op:?}");
        }
    }
    let infinity = f64::INFINITY;
    let cases = [
        (Unary::Asinh, infinity, infinity),
        (Unary::Asinh, -infinity, -infinity),
        (Unary::Acosh, 1.0, 0.0),
        (Unary::Acosh, infinity, infinity),
        (Unary::Atanh, 1.0, infinity),
        (Unary::Atanh, -1.0, -infinity),
    ];
    for (op, x, expected) in cases {
        assert_eq!(unary::<f64, f64>(op, DType::F64, &[x]), [expected], "{op:?}({x})");
        assert_eq!(
            unary::<f32, f32>(op, DType::F32, &[x as f32]),
            [expected as f32],
            "{op:?}({x})"
        );
    }
    // -2^25 is where a logarithm's argument cancels to zero.
    let outside = [
        (Unary::Acosh, 0.999),
        (Unary::Acosh, -1.0),
        (Unary::Acosh, -33_554_432.0),
        (Unary::Acosh, -infinity),
        (Unary::Atanh, 1.001),
        (Unary::Atanh, -infinity),
        (Unary::Asinh, f64::NAN),
        (Unary::Acosh, f64::NAN),
        (Unary::Atanh, f64::NAN),
    ];
    for (op, x) in outside {
        assert!(unary::<f64, f64>(op, DType::F64, &[x])[0].is_nan(), "{op:?}({x})");
        assert!(
            unary::<f32, f32>(op, DType::F32, &[x as f32])[0].is_nan(),
            "{op:?}({x})"
        );
    }
}
