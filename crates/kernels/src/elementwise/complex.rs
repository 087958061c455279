//! Complex functions with C99's branch cuts. Single precision runs through double, so each formula is stated once.
//!
//! Inverse functions are W. Kahan's ("Branch cuts for complex elementary functions", 1987); they avoid the cancellation
//! of the textbook logarithms. Values at zeros, infinities and NaN are those of C99, Annex G.

use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, LN_10, LN_2};

type Z = Complex<f64>;

/// What the lookups need of a complex type beyond its operators.
pub trait ComplexNumber: bytemuck::Pod {
    fn through_double(self, f: impl Fn(Z) -> Z) -> Self;
    /// Smith's quotient, which scales by the larger part of the divisor (R. L. Smith, Algorithm 116, 1962).
    fn quotient(self, divisor: Self) -> Self;
    /// Smith's quotient for a dividend of 1, whose parts are not multiplied: their signs at zeros are NumPy's.
    fn reciprocal(self) -> Self;
    /// `z / |z|`, scaled where `|z|` alone would overflow.
    fn sign(self) -> Self;
    /// Lexicographic order; NaN in either part propagates.
    fn minimum(self, other: Self) -> Self;
    fn maximum(self, other: Self) -> Self;
    fn is_zero(self) -> bool;
}

macro_rules! complex_number {
    ($($T:ident),*) => {$(
        impl ComplexNumber for Complex<$T> {
            #[inline(always)]
            fn through_double(self, f: impl Fn(Z) -> Z) -> Self {
                let result = f(Complex::new(f64::from(self.re), f64::from(self.im)));
                Complex::new(result.re as $T, result.im as $T)
            }
            #[inline(always)]
            fn quotient(self, divisor: Self) -> Self {
                if divisor.re.abs() >= divisor.im.abs() {
                    if divisor.re == 0.0 && divisor.im == 0.0 {
                        return Complex::new(self.re / divisor.re.abs(), self.im / divisor.re.abs());
                    }
                    let ratio = divisor.im / divisor.re;
                    let scale = 1.0 / (divisor.re + divisor.im * ratio);
                    Complex::new((self.re + self.im * ratio) * scale, (self.im - self.re * ratio) * scale)
                } else {
                    let ratio = divisor.re / divisor.im;
                    let scale = 1.0 / (divisor.im + divisor.re * ratio);
                    Complex::new((self.re * ratio + self.im) * scale, (self.im * ratio - self.re) * scale)
                }
            }
            #[inline(always)]
            fn reciprocal(self) -> Self {
                if self.im.abs() <= self.re.abs() {
                    let ratio = self.im / self.re;
                    let scale = self.re + self.im * ratio;
                    Complex::new(1.0 / scale, -ratio / scale)
                } else {
                    let ratio = self.re / self.im;
                    let scale = self.re * ratio + self.im;
                    Complex::new(ratio / scale, -1.0 / scale)
                }
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let length = self.re.hypot(self.im);
                if length.is_infinite() && self.re.is_finite() && self.im.is_finite() {
                    return Complex::new(self.re * 0.25, self.im * 0.25).sign();
                }
                if length == 0.0 {
                    Complex::new(0.0, 0.0)
                } else if self.re.is_infinite() != self.im.is_infinite() {
                    let unit = |part: $T| if part.is_infinite() { part.signum() } else { 0.0 };
                    Complex::new(unit(self.re), unit(self.im))
                } else {
                    Complex::new(self.re / length, self.im / length)
                }
            }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                let first = self.re < other.re || (self.re == other.re && self.im <= other.im);
                if first && !other.im.is_nan() || self.re.is_nan() || self.im.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                let first = self.re > other.re || (self.re == other.re && self.im >= other.im);
                if first && !other.im.is_nan() || self.re.is_nan() || self.im.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self.re == 0.0 && self.im == 0.0
            }
        }
    )*};
}

complex_number!(f32, f64);

fn times_i(z: Z) -> Z {
    Complex::new(-z.im, z.re)
}

fn times_minus_i(z: Z) -> Z {
    Complex::new(z.im, -z.re)
}

/// Sine and cosine of `y` for a product with a function of `x`. Where neither `x` nor `y` is finite only the cosine's
/// part keeps its infinity.
fn sin_cos(x: f64, y: f64) -> (f64, f64) {
    if x.is_infinite() && !y.is_finite() {
        (f64::NAN, 1.0)
    } else {
        y.sin_cos()
    }
}

/// `a b` where a zero wins over infinities and NaN.
fn product(a: f64, b: f64) -> f64 {
    let sign = |x: f64| if x.is_nan() { 1.0 } else { x.signum() };
    if a == 0.0 || b == 0.0 {
        0.0 * sign(a) * sign(b)
    } else {
        a * b
    }
}

/// Beyond this modulus `asin z` is `-i log(2iz)` and `atanh z` is `1 / z` to the last bit, while squares overflow.
const LARGE: f64 = 1e150;

fn is_large(z: Z) -> bool {
    z.re.abs() > LARGE || z.im.abs() > LARGE
}

/// `sqrt(z)` in the right half plane: the larger part directly, the other from `2 re im = Im z`.
pub fn sqrt(z: Z) -> Z {
    let (x, y) = (z.re, z.im);
    if y.is_infinite() {
        return Complex::new(f64::INFINITY, y);
    }
    if x == 0.0 && y == 0.0 {
        return Complex::new(0.0, y);
    }
    if x.is_infinite() {
        let other = if y.is_nan() { y } else { 0.0 };
        return if x > 0.0 {
            Complex::new(x, if y.is_nan() { y } else { 0f64.copysign(y) })
        } else {
            Complex::new(other, f64::INFINITY.copysign(y))
        };
    }
    // Scaling by 4 keeps the sum below overflow, scaling up keeps it above the subnormals.
    let large = x.abs().max(y.abs());
    let scale = if large > 1e300 {
        0.25
    } else if large < 1e-290 {
        2f64.powi(60)
    } else {
        1.0
    };
    let (x, y) = (x * scale, y * scale);
    let root = (0.5 * (x.abs() + x.hypot(y))).sqrt();
    let result = if x >= 0.0 {
        Complex::new(root, y / (2.0 * root))
    } else {
        Complex::new(y.abs() / (2.0 * root), root.copysign(y))
    };
    let unscale = 1.0 / scale.sqrt();
    Complex::new(result.re * unscale, result.im * unscale)
}

/// `exp(x + iy) = e^x (cos y + i sin y)`.
pub fn exp(z: Z) -> Z {
    if z.im == 0.0 {
        return Complex::new(z.re.exp(), z.im);
    }
    if z.re.is_infinite() && !z.im.is_finite() {
        return if z.re < 0.0 {
            Complex::new(0.0, 0.0)
        } else {
            Complex::new(z.re, f64::NAN)
        };
    }
    let (sin, cos) = z.im.sin_cos();
    if z.re > 709.0 {
        // e^x alone may overflow where its product with a small sine does not.
        let half = (0.5 * z.re).exp();
        return Complex::new(half * cos * half, half * sin * half);
    }
    let scale = z.re.exp();
    Complex::new(scale * cos, scale * sin)
}

pub fn exp2(z: Z) -> Z {
    exp(z * LN_2)
}

/// `e^z - 1` with `cos y = 1 - 2 sin^2(y/2)`, so that nothing cancels near 0.
pub fn expm1(z: Z) -> Z {
    if z.re.abs() > 40.0 {
        return exp(z) - 1.0;
    }
    let half_sine = (0.5 * z.im).sin();
    let (sin, cos) = z.im.sin_cos();
    Complex::new(
        z.re.exp_m1() * cos - 2.0 * half_sine * half_sine,
        product(z.re.exp(), sin),
    )
}

/// `log|z| + i arg z`; near the unit circle `log|z|` is `log1p(|z|^2 - 1) / 2`.
pub fn log(z: Z) -> Z {
    let (large, small) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    let modulus = z.re.hypot(z.im);
    let real = if modulus > 0.5 && modulus < 2.0 {
        0.5 * ((large - 1.0) * (large + 1.0) + small * small).ln_1p()
    } else if large.is_finite() && large > 0.0 && !(1e-300..=1e300).contains(&large) {
        let scale = if large > 1.0 { 2f64.powi(-8) } else { 2f64.powi(100) };
        (z.re * scale).hypot(z.im * scale).ln() - scale.ln()
    } else {
        modulus.ln()
    };
    Complex::new(real, z.im.atan2(z.re))
}

/// `log(1 + z)`, with `|1 + z|^2 - 1 = x (2 + x) + y^2`.
pub fn log1p(z: Z) -> Z {
    let (x, y) = (z.re, z.im);
    let real = if x.abs() < 0.5 && y.abs() < 0.5 {
        0.5 * (x * (2.0 + x) + y * y).ln_1p()
    } else {
        log(Complex::new(1.0 + x, y)).re
    };
    Complex::new(real, y.atan2(1.0 + x))
}

pub fn log2(z: Z) -> Z {
    log(z) / LN_2
}

pub fn log10(z: Z) -> Z {
    log(z) / LN_10
}

/// `sinh(x + iy) = sinh x cos y + i cosh x sin y`.
pub fn sinh(z: Z) -> Z {
    let (sin, cos) = sin_cos(z.re, z.im);
    Complex::new(product(z.re.sinh(), cos), product(z.re.cosh(), sin))
}

/// `cosh(x + iy) = cosh x cos y + i sinh x sin y`.
pub fn cosh(z: Z) -> Z {
    let (sin, cos) = sin_cos(z.re, z.im);
    Complex::new(z.re.cosh() * cos, product(z.re.sinh(), sin))
}

/// Kahan's `tanh`: with `t = tan y`, `b = 1 + t^2`, `s = sinh x`, `r = sqrt(1 + s^2)`: `(b r s + i t) / (1 + b s^2)`.
pub fn tanh(z: Z) -> Z {
    if z.re.is_infinite() || z.re.abs() > 22.0 && z.im.is_finite() {
        let decay = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
        return Complex::new(
            1f64.copysign(z.re),
            if z.im.is_finite() { decay } else { 0f64.copysign(z.im) },
        );
    }
    let t = z.im.tan();
    let b = 1.0 + t * t;
    let s = z.re.sinh();
    let r = (1.0 + s * s).sqrt();
    let scale = 1.0 + b * s * s;
    Complex::new(product(s, b * r / scale), if t == 0.0 { t } else { t / scale })
}

pub fn sin(z: Z) -> Z {
    times_minus_i(sinh(times_i(z)))
}

pub fn cos(z: Z) -> Z {
    cosh(times_i(z))
}

pub fn tan(z: Z) -> Z {
    times_minus_i(tanh(times_i(z)))
}

/// `1 + z` and `1 - z` keep the sign of the imaginary zero, which picks the side of the branch cut.
fn plus_one(z: Z) -> Z {
    Complex::new(1.0 + z.re, z.im)
}

fn one_minus(z: Z) -> Z {
    Complex::new(1.0 - z.re, -z.im)
}

pub fn acos(z: Z) -> Z {
    if is_large(z) {
        return Complex::new(z.im.abs().atan2(z.re), -(log(z).re + LN_2).copysign(z.im));
    }
    let (minus, plus) = (sqrt(one_minus(z)), sqrt(plus_one(z)));
    let real = if z.re == 0.0 {
        FRAC_PI_2
    } else {
        2.0 * minus.re.atan2(plus.re)
    };
    Complex::new(real, libm::asinh(plus.re * minus.im - plus.im * minus.re))
}

pub fn asin(z: Z) -> Z {
    if is_large(z) {
        return Complex::new(z.re.atan2(z.im.abs()), (log(z).re + LN_2).copysign(z.im));
    }
    let (minus, plus) = (sqrt(one_minus(z)), sqrt(plus_one(z)));
    let real = if z.re == 0.0 {
        z.re
    } else {
        z.re.atan2(minus.re * plus.re - minus.im * plus.im)
    };
    Complex::new(real, libm::asinh(minus.re * plus.im - minus.im * plus.re))
}

pub fn asinh(z: Z) -> Z {
    times_minus_i(asin(times_i(z)))
}

/// `acosh z = ± i acos z`, the sign that makes the real part positive.
pub fn acosh(z: Z) -> Z {
    let angle = acos(z);
    Complex::new(angle.im.abs(), angle.re.copysign(z.im))
}

/// `atanh`: `log1p(4x / ((1-x)^2 + y^2)) / 4` and half the angle of `(1-x)(1+x) - y^2 + 2iy`.
pub fn atanh(z: Z) -> Z {
    let (x, y) = (z.re, z.im);
    if is_large(z) {
        let real = if x.is_infinite() || y.is_infinite() {
            0f64.copysign(x)
        } else {
            let scale = x.abs().max(y.abs());
            x / scale / (z / scale).norm_sqr() / scale
        };
        let unknown = real.is_nan() || y.is_nan();
        return Complex::new(real, if unknown { f64::NAN } else { FRAC_PI_2.copysign(y) });
    }
    let distance = 1.0 - x.abs();
    let square = distance * distance + y * y;
    let real = if x == 0.0 {
        x
    } else if square < 1e-290 {
        // Beside ±1, where the square underflows, 4 / square is a logarithm's difference.
        (0.5 * (LN_2 - y.abs().ln())).copysign(x)
    } else {
        (0.25 * (4.0 * x.abs() / square).ln_1p()).copysign(x)
    };
    let imaginary = 0.5 * (2.0 * y).atan2(distance * (1.0 + x.abs()) - y * y);
    Complex::new(real, imaginary)
}

pub fn atan(z: Z) -> Z {
    times_minus_i(atanh(times_i(z)))
}

/// `a^b` as NumPy's `npy_cpow`: small integer exponents by squaring, others through the logarithm.
pub fn pow(a: Z, b: Z) -> Z {
    if b.is_zero() {
        return Complex::new(1.0, 0.0);
    }
    if a.is_zero() {
        return if b.re > 0.0 {
            Complex::new(0.0, 0.0)
        } else {
            Complex::new(f64::NAN, f64::NAN)
        };
    }
    if b.im == 0.0 && b.re.fract() == 0.0 && b.re.abs() < 100.0 {
        // The commonest powers are plain products: a factor of 1 would change the signs of their zeros.
        match b.re as i32 {
            1 => return a,
            2 => return a * a,
            3 => return a * (a * a),
            _ => {}
        }
        let mut exponent = b.re.abs() as u32;
        let (mut power, mut result) = (a, Complex::new(1.0, 0.0));
        while exponent > 0 {
            if exponent & 1 == 1 {
                result *= power;
            }
            power *= power;
            exponent >>= 1;
        }
        return if b.re < 0.0 {
            Complex::new(1.0, 0.0).quotient(result)
        } else {
            result
        };
    }
    exp(b * log(a))
}
