//! Logarithms and powers of two by additions, products and quotients alone, so that all machines agree on their bits,
//! and the range of scales.

use std::f64::consts::{LN_2, SQRT_2};

/// Adding and subtracting it rounds numbers of at most 512 to multiples of 2^-42.
const ROUNDING: f64 = 1536.0;
const FRACTION_BITS: u32 = 52;
const EXPONENT_BIAS: i64 = 1023;

/// Base-2 logarithm of the size of a number, None of zero and NaN.
///
/// Logarithms are multiples of 2^-42: their sums are exact below 2^11, and so are duals and lengths of paths wherever
/// the scales are in the range of double precision.
#[inline]
pub(super) fn log2(size: f64) -> Option<f64> {
    let size = size.abs();
    if size.is_nan() || size == 0.0 {
        return None;
    }
    let size = size.min(f64::MAX);
    let (normal, shift) = if size < f64::MIN_POSITIVE {
        (size * (1u64 << 60) as f64, -60)
    } else {
        (size, 0)
    };
    let bits = normal.to_bits();
    let exponent = (bits >> FRACTION_BITS) as i64 - EXPONENT_BIAS + shift;
    let mantissa = f64::from_bits(bits & ((1 << FRACTION_BITS) - 1) | (EXPONENT_BIAS as u64) << FRACTION_BITS);
    let (mantissa, exponent) = if mantissa > SQRT_2 {
        (mantissa / 2.0, exponent + 1)
    } else {
        (mantissa, exponent)
    };
    // log m = 2 atanh s = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1)/(m + 1) within 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for power in (0..10).rev() {
        series = series * square + 1.0 / f64::from(2 * power + 1);
    }
    let fraction = 2.0 / LN_2 * s * series;
    Some(exponent as f64 + ((fraction + ROUNDING) - ROUNDING))
}

/// 2 to the power of a number within -1022 and 1023.
pub(super) fn exp2(power: f64) -> f64 {
    let whole = power.round();
    let rest = (power - whole) * LN_2;
    let mut series = 1.0;
    for term in (1..16).rev() {
        series = series * rest / f64::from(term) + 1.0;
    }
    series * f64::from_bits(((whole as i64 + EXPONENT_BIAS) as u64) << FRACTION_BITS)
}

/// Logarithms of scales lie within -LIMIT and LIMIT.
const LIMIT: f64 = 1000.0;
/// Upper limit where some logarithm is beyond `LIMIT`. The least scale times the largest one is 2^-500 then: a lowered
/// scale makes entries smaller, and one raised to 2^-1000 leaves entries below 2^500 at most 1.
const LOWERED: f64 = 500.0;

/// How logarithms of scales are moved into the range of double precision.
pub(super) struct ScaleRange {
    shift: f64,
    upper: f64,
}

impl ScaleRange {
    /// For scales that are multiplied by each other: a factor on all scales of rows and its inverse on those of columns
    /// are free.
    pub(super) fn of_products(rows: &[f64], columns: &[f64]) -> ScaleRange {
        let (row_least, row_most) = extent(rows.iter().copied());
        let (column_least, column_most) = extent(columns.iter().copied());
        let (least, most) = (row_least.min(-column_most), row_most.max(-column_least));
        let shift = if least >= -LIMIT && most <= LIMIT {
            0.0
        } else {
            // A whole number keeps multiples of 2^-42 what they are.
            -((least + most) / 2.0).round()
        };
        ScaleRange {
            shift,
            upper: upper(least + shift, most + shift),
        }
    }

    /// For scales that are multiplied by each other and by themselves.
    pub(super) fn of_squares(scales: &[f64]) -> ScaleRange {
        let (least, most) = extent(scales.iter().copied());
        ScaleRange {
            shift: 0.0,
            upper: upper(least, most),
        }
    }

    pub(super) fn fit(&self, logarithm: f64, direction: f64) -> f64 {
        (logarithm + direction * self.shift).clamp(-LIMIT, self.upper)
    }
}

fn upper(least: f64, most: f64) -> f64 {
    if least >= -LIMIT && most <= LIMIT {
        LIMIT
    } else {
        LOWERED
    }
}

fn extent(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), number| {
        (least.min(number), most.max(number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_library() {
        for size in [
            1.0,
            3.0,
            1e-310,
            5e-324,
            f64::MAX,
            1.414,
            1.415,
            0.7072,
            1e-150,
            123456.789,
        ] {
            let logarithm = log2(-size).expect("a size");
            assert!((logarithm - size.log2()).abs() < 3e-13, "log2 {size} = {logarithm}");
            assert_eq!((logarithm * 2f64.powi(42)).fract(), 0.0);
        }
        assert_eq!(log2(0.25), Some(-2.0));
        assert_eq!(log2(f64::INFINITY), log2(f64::MAX));
        assert_eq!([log2(0.0), log2(-0.0), log2(f64::NAN)], [None; 3]);
    }

    #[test]
    fn powers_are_those_of_the_library() {
        for power in [0.0, 0.5, -0.5, 1.75, -999.99, 1000.0, 53.123, 1e-9] {
            assert!((exp2(power) / power.exp2() - 1.0).abs() < 1e-15, "2^{power}");
        }
        assert_eq!(exp2(-3.0), 0.125);
    }

    #[test]
    fn ranges_hold_what_they_fit() {
        let range = ScaleRange::of_products(&[1500.0, -100.0], &[-1500.0, 100.0]);
        assert_eq!([range.fit(1500.0, 1.0), range.fit(-1500.0, -1.0)], [800.0, -800.0]);
        let range = ScaleRange::of_products(&[0.0, 3000.0], &[0.0]);
        assert_eq!([range.fit(0.0, 1.0), range.fit(3000.0, 1.0)], [-1000.0, 500.0]);
        assert_eq!(ScaleRange::of_squares(&[900.0]).fit(900.0, 1.0), 900.0);
        assert_eq!(ScaleRange::of_squares(&[900.0, -1001.0]).fit(900.0, 1.0), 500.0);
    }
}
