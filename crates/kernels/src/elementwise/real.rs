//! Real floating-point functions that are more than one operation, stated as NumPy computes them.

/// What the lookups need of `f32` and `f64` beyond their inherent methods.
pub trait Real: Copy {
    /// NaN stays, zeros become +0.
    fn sign(self) -> Self;
    fn floor_divide(self, other: Self) -> Self;
    fn floor_remainder(self, other: Self) -> Self;
    /// `log(exp(a) + exp(b))` without overflow.
    fn log_add_exp(self, other: Self) -> Self;
    fn next_after(self, toward: Self) -> Self;
    /// Inverse hyperbolic functions under their ISO 80000-2 names: the inherent `asinh`, `acosh` and `atanh` lose
    /// digits near 1 and overflow. In double precision for both types.
    fn arsinh(self) -> Self;
    fn arcosh(self) -> Self;
    fn artanh(self) -> Self;
    fn minimum(self, other: Self) -> Self;
    fn maximum(self, other: Self) -> Self;
}

macro_rules! real {
    ($T:ident) => {
        /// Quotient and remainder toward negative infinity (`npy_divmod`): the quotient is rounded to the integer
        /// that makes `a = q b + r` hold best, and zeros carry the signs of the exact results.
        #[inline(always)]
        fn divmod(a: $T, b: $T) -> ($T, $T) {
            let mut remainder = a % b;
            if b == 0.0 {
                return (a / b, remainder);
            }
            let mut quotient = (a - remainder) / b;
            if remainder != 0.0 {
                if (b < 0.0) != (remainder < 0.0) {
                    remainder += b;
                    quotient -= 1.0;
                }
            } else {
                remainder = (0.0 as $T).copysign(b);
            }
            if quotient == 0.0 {
                return ((0.0 as $T).copysign(a / b), remainder);
            }
            let mut floor = quotient.floor();
            if quotient - floor > 0.5 {
                floor += 1.0;
            }
            (floor, remainder)
        }

        impl super::Real for $T {
            #[inline(always)]
            fn sign(self) -> $T {
                if self > 0.0 {
                    1.0
                } else if self < 0.0 {
                    -1.0
                } else if self == 0.0 {
                    0.0
                } else {
                    self
                }
            }
            #[inline(always)]
            fn floor_divide(self, other: $T) -> $T {
                divmod(self, other).0
            }
            #[inline(always)]
            fn floor_remainder(self, other: $T) -> $T {
                divmod(self, other).1
            }
            #[inline(always)]
            fn log_add_exp(self, other: $T) -> $T {
                let difference = self - other;
                if self == other {
                    self + std::$T::consts::LN_2
                } else if difference > 0.0 {
                    self + (-difference).exp().ln_1p()
                } else if difference <= 0.0 {
                    other + difference.exp().ln_1p()
                } else {
                    difference
                }
            }
            #[inline(always)]
            fn next_after(self, toward: $T) -> $T {
                if self.is_nan() || toward.is_nan() {
                    $T::NAN
                } else if self == toward {
                    toward
                } else if self < toward {
                    self.next_up()
                } else {
                    self.next_down()
                }
            }
            #[inline(always)]
            fn arsinh(self) -> $T {
                libm::asinh(f64::from(self)) as $T
            }
            #[inline(always)]
            fn arcosh(self) -> $T {
                // The library's logarithm meets a zero instead of a negative number near -2^25.
                if self < 1.0 {
                    $T::NAN
                } else {
                    libm::acosh(f64::from(self)) as $T
                }
            }
            #[inline(always)]
            fn artanh(self) -> $T {
                libm::atanh(f64::from(self)) as $T
            }
            #[inline(always)]
            #[allow(clippy::eq_op)] // `x != x` is the vectorizable test for NaN
            fn minimum(self, other: $T) -> $T {
                if self <= other || self != self {
                    self
                } else {
                    other
                }
            }
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn maximum(self, other: $T) -> $T {
                if self >= other || self != self {
                    self
                } else {
                    other
                }
            }
        }
    };
}

mod single {
    real!(f32);
}
mod double {
    real!(f64);
}
