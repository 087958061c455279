//! Half precision computed through single: branch-free conversions that the compiler can vectorize.
//!
//! The `half` crate asks the processor per element and rounds `f64` through `f32` on some processors but not on others;
//! these give the same bits everywhere (F. Giesen, "Half to float done quick").

use bytemuck::Pod;
use outcore_dtype::f16;

/// A real floating type and the type its arithmetic runs in.
pub trait Lifted: Pod {
    type Wide: Pod;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
}

impl Lifted for f32 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f32 {
        wide
    }
}

impl Lifted for f64 {
    type Wide = f64;
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f64) -> f64 {
        wide
    }
}

impl Lifted for f16 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        widen(self)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f16 {
        narrow(wide)
    }
}

/// The exact value of a half.
#[inline(always)]
pub fn widen(value: f16) -> f32 {
    const EXPONENT: u32 = 0x7c00 << 13;
    const REBIAS: u32 = (127 - 15) << 23;
    let bits = u32::from(value.to_bits());
    let shifted = (bits & 0x7fff) << 13;
    let normal = shifted + REBIAS;
    let subnormal = (f32::from_bits(normal + (1 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let magnitude = match shifted & EXPONENT {
        EXPONENT => normal + REBIAS,
        0 => subnormal,
        _ => normal,
    };
    f32::from_bits(magnitude | (bits & 0x8000) << 16)
}

/// The half nearest to `value`, ties to even; beyond 65504 + 8 it is infinite.
#[inline(always)]
pub fn narrow(value: f32) -> f16 {
    const HALF: u32 = 126 << 23;
    let sign = value.to_bits() & 0x8000_0000;
    let bits = value.to_bits() ^ sign;
    let special = if bits > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    // Adding one half aligns a subnormal's bits at the bottom of the mantissa and rounds them in hardware.
    let subnormal = (f32::from_bits(bits) + f32::from_bits(HALF))
        .to_bits()
        .wrapping_sub(HALF);
    let odd = (bits >> 13) & 1;
    let normal = bits.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    let magnitude = if bits >= 143 << 23 {
        special
    } else if bits < 113 << 23 {
        subnormal
    } else {
        normal
    };
    f16::from_bits((magnitude | sign >> 16) as u16)
}

/// The half nearest to a double, rounded once: single precision rounded to odd keeps what the second rounding needs.
#[inline(always)]
pub fn narrow_double(value: f64) -> f16 {
    let near = value as f32;
    let inexact = f64::from(near) != value && !value.is_nan();
    let beyond = f64::from(near).abs() > value.abs();
    let toward_zero = near.to_bits().wrapping_sub(u32::from(beyond));
    narrow(f32::from_bits(toward_zero | u32::from(inexact)))
}

/// The neighbour of `a` on the side of `b`; `a` where they are equal, also of another sign, as NumPy's halves have it.
pub fn next_after(a: f16, b: f16) -> f16 {
    let (x, y) = (widen(a), widen(b));
    if x.is_nan() || y.is_nan() {
        f16::NAN
    } else if x == y {
        a
    } else if x == 0.0 {
        f16::from_bits(if y > 0.0 { 0x0001 } else { 0x8001 })
    } else if (x < y) == (x > 0.0) {
        f16::from_bits(a.to_bits() + 1)
    } else {
        f16::from_bits(a.to_bits() - 1)
    }
}
