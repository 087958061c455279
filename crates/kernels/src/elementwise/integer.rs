//! Integer arithmetic with NumPy's answers where hardware has none: division by zero, negative powers, long shifts.

/// What the lookups need of an integer type beyond its operators.
pub trait Integer: bytemuck::Pod + Ord {
    /// Quotient toward negative infinity; 0 for division by zero; the smallest value over -1 wraps.
    fn floor_divide(self, other: Self) -> Self;
    /// Remainder with the divisor's sign; 0 for division by zero.
    fn floor_remainder(self, other: Self) -> Self;
    /// Power, wrapping; a negative exponent, which the caller refuses, gives 0 unless the base is 1 or -1.
    fn power(self, exponent: Self) -> Self;
    /// Left shift; all bits leave when `bits` reaches the width.
    fn shift_left(self, bits: Self) -> Self;
    /// Arithmetic right shift; only the sign is left when `bits` reaches the width.
    fn shift_right(self, bits: Self) -> Self;
    fn absolute(self) -> Self;
    fn sign(self) -> Self;
    /// `1 / x` truncated: 1 for 1, -1 for -1, else 0 (also for 0, where NumPy's answer is undefined).
    fn reciprocal(self) -> Self;
    fn is_negative(self) -> bool;
}

macro_rules! common {
    ($T:ty, $U:ty) => {
        #[inline(always)]
        fn shift_left(self, bits: $T) -> $T {
            // A negative count is a huge unsigned one: everything leaves.
            if (bits as $U) < <$T>::BITS as $U {
                self << bits
            } else {
                0
            }
        }
        #[inline(always)]
        fn shift_right(self, bits: $T) -> $T {
            let most = (<$T>::BITS - 1) as $U;
            let stays = self >> (bits as $U).min(most);
            // One more than the longest hardware shift clears what an unsigned value has left.
            if (bits as $U) > most && !Integer::is_negative(self) {
                0
            } else {
                stays
            }
        }
    };
}

fn wrapping_power<T: Copy>(one: T, mut base: T, mut exponent: u64, multiply: impl Fn(T, T) -> T) -> T {
    let mut result = one;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

macro_rules! signed {
    ($($T:ty, $U:ty);*) => {$(
        impl Integer for $T {
            common!($T, $U);
            #[inline(always)]
            fn floor_divide(self, other: $T) -> $T {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let inexact = self.wrapping_rem(other) != 0;
                quotient - <$T>::from(inexact && ((self < 0) != (other < 0)))
            }
            #[inline(always)]
            fn floor_remainder(self, other: $T) -> $T {
                if other == 0 {
                    return 0;
                }
                let remainder = self.wrapping_rem(other);
                if remainder != 0 && ((remainder < 0) != (other < 0)) { remainder + other } else { remainder }
            }
            #[inline(always)]
            fn power(self, exponent: $T) -> $T {
                match (exponent < 0, self) {
                    (false, _) => wrapping_power(1, self, exponent as u64, <$T>::wrapping_mul),
                    (true, 1) => 1,
                    (true, -1) => if exponent & 1 == 0 { 1 } else { -1 },
                    (true, _) => 0,
                }
            }
            #[inline(always)]
            fn absolute(self) -> $T {
                self.wrapping_abs()
            }
            #[inline(always)]
            fn sign(self) -> $T {
                self.signum()
            }
            #[inline(always)]
            fn reciprocal(self) -> $T {
                if self == 1 || self == -1 { self } else { 0 }
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                self < 0
            }
        }
    )*};
}

macro_rules! unsigned {
    ($($T:ty),*) => {$(
        impl Integer for $T {
            common!($T, $T);
            #[inline(always)]
            fn floor_divide(self, other: $T) -> $T {
                self.checked_div(other).unwrap_or(0)
            }
            #[inline(always)]
            fn floor_remainder(self, other: $T) -> $T {
                self.checked_rem(other).unwrap_or(0)
            }
            #[inline(always)]
            fn power(self, exponent: $T) -> $T {
                wrapping_power(1, self, exponent as u64, <$T>::wrapping_mul)
            }
            #[inline(always)]
            fn absolute(self) -> $T {
                self
            }
            #[inline(always)]
            fn sign(self) -> $T {
                <$T>::from(self != 0)
            }
            #[inline(always)]
            fn reciprocal(self) -> $T {
                <$T>::from(self == 1)
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                false
            }
        }
    )*};
}

signed!(i8, u8; i16, u16; i32, u32; i64, u64);
unsigned!(u8, u16, u32, u64);
