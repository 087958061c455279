//! Element-wise functions of complex numbers.

use crate::elementwise::{binary, unary};
use outcore_dtype::{Complex, DType};
use outcore_kernels::{Binary, Unary};

/// Inverse functions undo their functions off the branch cuts, and agree with the real ones on the real axis.
#[test]
fn complex_functions_invert_and_extend_the_real_ones() {
    let points: Vec<Complex<f64>> = (0..400)
        .map(|i| Complex::new(f64::from(i % 20) * 0.19 - 1.87, f64::from(i / 20) * 0.13 - 1.21))
        .collect();
    let pairs = [
        (Unary::Asin, Unary::Sin),
        (Unary::Acos, Unary::Cos),
        (Unary::Atan, Unary::Tan),
        (Unary::Asinh, Unary::Sinh),
        (Unary::Acosh, Unary::Cosh),
        (Unary::Atanh, Unary::Tanh),
        (Unary::Log, Unary::Exp),
        (Unary::Log1p, Unary::Expm1),
        (Unary::Sqrt, Unary::Square),
        (Unary::Log2, Unary::Exp2),
    ];
    type Z = Complex<f64>;
    for (inverse, function) in pairs {
        let back = unary::<Z, Z>(function, DType::C128, &unary::<Z, Z>(inverse, DType::C128, &points));
        for (z, back) in points.iter().zip(back) {
            assert!(
                (z - back).norm() <= 2e-14 * z.norm().max(1.0),
                "{function:?}({inverse:?}({z})) = {back}"
            );
        }
        let real: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.02 + 0.1).collect();
        let extended: Vec<Z> = real.iter().map(|x| Z::new(*x, 0.0)).collect();
        for op in [inverse, function] {
            for (x, (z, r)) in
                real.iter().zip(
                    unary::<Z, Z>(op, DType::C128, &extended)
                        .into_iter()
                        .zip(unary::<f64, f64>(op, DType::F64, &real)),
                )
            {
                assert!(
                    r.is_nan() || (z.re - r).abs() <= 1e-14 * r.abs().max(0.1),
                    "{op:?}({x}) = {z}, real {r}"
                );
            }
        }
    }
    let cut = unary::<Z, Z>(Unary::Sqrt, DType::C128, &[Z::new(-4.0, 0.0), Z::new(-4.0, -0.0)]);
    assert_eq!(cut, [Z::new(0.0, 2.0), Z::new(0.0, -2.0)]);
}

#[test]
fn complex_division_survives_large_parts() {
    let z = Complex::new(1e300, 1e300);
    let quotient = binary::<Complex<f64>, Complex<f64>>(Binary::Divide, DType::C128, &[z], &[z])[0];
    assert_eq!(quotient, Complex::new(1.0, 0.0));
    let power = binary::<Complex<f64>, Complex<f64>>(
        Binary::Pow,
        DType::C128,
        &[Complex::new(0.0, 2.0)],
        &[Complex::new(-2.0, 0.0)],
    )[0];
    assert!((power - Complex::new(-0.25, 0.0)).norm() < 1e-16);
}

/// C99, Annex G.6; the signs that it leaves open are not looked at.
#[test]
fn complex_functions_have_the_special_values_of_the_standard() {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    type Z = Complex<f64>;
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let cases = [
        (Unary::Acos, (INF, INF), (FRAC_PI_4, -INF)),
        (Unary::Acos, (-INF, INF), (3.0 * FRAC_PI_4, -INF)),
        (Unary::Acos, (2.0, INF), (FRAC_PI_2, -INF)),
        (Unary::Acos, (-INF, 1.0), (PI, -INF)),
        (Unary::Acos, (0.0, NAN), (FRAC_PI_2, NAN)),
        (Unary::Asin, (INF, 0.0), (FRAC_PI_2, INF)),
        (Unary::Asin, (0.0, NAN), (0.0, NAN)),
        (Unary::Asinh, (0.0, INF), (INF, FRAC_PI_2)),
        (Unary::Asinh, (INF, NAN), (INF, NAN)),
        (Unary::Asinh, (NAN, 0.0), (NAN, 0.0)),
        (Unary::Acosh, (INF, INF), (INF, FRAC_PI_4)),
        (Unary::Acosh, (-INF, 1.0), (INF, PI)),
        (Unary::Acosh, (NAN, INF), (INF, NAN)),
        (Unary::Atanh, (0.0, NAN), (0.0, NAN)),
        (Unary::Atanh, (INF, NAN), (0.0, NAN)),
        (Unary::Atanh, (NAN, INF), (0.0, FRAC_PI_2)),
        (Unary::Atanh, (1.0, 0.0), (INF, 0.0)),
        (Unary::Sinh, (0.0, INF), (0.0, NAN)),
        (Unary::Sinh, (INF, INF), (INF, NAN)),
        (Unary::Sinh, (NAN, 0.0), (NAN, 0.0)),
        (Unary::Cosh, (0.0, INF), (NAN, 0.0)),
        (Unary::Cosh, (INF, 0.0), (INF, 0.0)),
        (Unary::Cosh, (INF, NAN), (INF, NAN)),
        (Unary::Tanh, (0.0, NAN), (0.0, NAN)),
        (Unary::Tanh, (INF, NAN), (1.0, 0.0)),
        (Unary::Tanh, (30.0, NAN), (NAN, NAN)),
        (Unary::Tanh, (NAN, 0.0), (NAN, 0.0)),
        (Unary::Expm1, (INF, 0.0), (INF, 0.0)),
        (Unary::Expm1, (-INF, NAN), (-1.0, 0.0)),
        (Unary::Sign, (INF, NAN), (1.0, 0.0)),
    ];
    let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
    for (op, z, expected) in cases {
        let result = unary::<Z, Z>(op, DType::C128, &[Z::new(z.0, z.1)])[0];
        assert!(
            same(result.re, expected.0) && same(result.im, expected.1),
            "{op:?}{z:?} = {result}, not {expected:?}"
        );
    }
}

/// Expected values from mpmath at 2200 bits.
#[test]
fn complex_inverse_functions_survive_extreme_parts() {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};
    type Z = Complex<f64>;
    let cases = [
        (Unary::Atanh, (1.0, 1e-300), (345.73433753938684, FRAC_PI_4)),
        (Unary::Atanh, (-1.0, -1e-310), (-357.2472630043571, -FRAC_PI_4)),
        (Unary::Atanh, (1e200, 1e200), (5e-201, FRAC_PI_2)),
        (Unary::Asin, (1e308, 1e308), (FRAC_PI_4, 710.235929413006)),
        (Unary::Acosh, (1e308, -1e308), (710.235929413006, -FRAC_PI_4)),
    ];
    for (op, z, expected) in cases {
        let result = unary::<Z, Z>(op, DType::C128, &[Z::new(z.0, z.1)])[0];
        for (part, expected) in [(result.re, expected.0), (result.im, expected.1)] {
            assert!(
                (part - expected).abs() <= 1e-15 * f64::abs(expected),
                "{op:?}{z:?} = {result}"
            );
        }
    }
}
