//! Running sums, products and extrema along one axis, carried from block to block.
//!
//! **Invariant.** Along the axis each result is the operation applied to the result before it and the next element, in
//! that order and in the element's own type. So the bits do not depend on how the axis was cut into blocks.

use crate::half::Lifted;
use crate::names::names;
use bytemuck::Pod;
use outcore_dtype::{f16, Complex, DType};
use std::ops::{Add, Mul};

/// What is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scan {
    /// `numpy.cumsum`; integers wrap.
    Sum,
    /// `numpy.cumprod`; integers wrap.
    Prod,
    /// `numpy.maximum.accumulate`: from the first NaN on, all are NaN.
    Max,
    /// `numpy.minimum.accumulate`, likewise.
    Min,
}

names!(Scan {
    Sum => "sum",
    Prod => "prod",
    Max => "max",
    Min => "min",
});

impl Scan {
    fn is_arithmetic(self) -> bool {
        matches!(self, Scan::Sum | Scan::Prod)
    }

    /// Whether `dtype` can be accumulated without a cast: `bool` has extrema only, complex numbers sums and products.
    pub fn supports(self, dtype: DType) -> bool {
        match self {
            Scan::Sum | Scan::Prod => dtype != DType::Bool,
            Scan::Max | Scan::Min => !dtype.is_complex(),
        }
    }
}

/// Accumulates the C-contiguous `[outer, length, inner]` block `data` along its middle axis into `out`.
///
/// `carry` holds `[outer, inner]` elements: the last results of the block before where `started` is true, else nothing of
/// use; afterwards the last results of this block. A block of no length leaves it as it is. Where `starts` is given, one
/// flag (`bool`) for each place along the axis, accumulation begins anew at every place that it marks.
///
/// # Panics
/// When [`Scan::supports`] says no, or a slice has not the length that the shape gives.
pub fn scan(
    op: Scan,
    dtype: DType,
    data: &[u8],
    [outer, length, inner]: [usize; 3],
    (carry, started): (&mut [u8], bool),
    starts: Option<&[u8]>,
    out: &mut [u8],
) {
    let bytes = outer * length * inner * dtype.size();
    assert!(
        data.len() == bytes && out.len() == bytes && carry.len() == outer * inner * dtype.size(),
        "scan: {outer}x{length}x{inner} block of {dtype} with {} bytes of data, {} of results, {} of carry",
        data.len(),
        out.len(),
        carry.len()
    );
    if bytes == 0 {
        return;
    }
    assert!(
        starts.is_none_or(|starts| starts.len() == length),
        "scan: a flag for each place"
    );
    let block = ScanBlock {
        data,
        length,
        inner,
        carry,
        started,
        starts,
        out,
    };
    match dtype {
        DType::Bool => block.extrema(op, u8::max, u8::min),
        // Sums and products do not depend on the sign.
        DType::I8 | DType::U8 if op.is_arithmetic() => block.words(op, u8::wrapping_add, u8::wrapping_mul),
        DType::I16 | DType::U16 if op.is_arithmetic() => block.words(op, u16::wrapping_add, u16::wrapping_mul),
        DType::I32 | DType::U32 if op.is_arithmetic() => block.words(op, u32::wrapping_add, u32::wrapping_mul),
        DType::I64 | DType::U64 if op.is_arithmetic() => block.words(op, u64::wrapping_add, u64::wrapping_mul),
        DType::I8 => block.extrema(op, i8::max, i8::min),
        DType::I16 => block.extrema(op, i16::max, i16::min),
        DType::I32 => block.extrema(op, i32::max, i32::min),
        DType::I64 => block.extrema(op, i64::max, i64::min),
        DType::U8 => block.extrema(op, u8::max, u8::min),
        DType::U16 => block.extrema(op, u16::max, u16::min),
        DType::U32 => block.extrema(op, u32::max, u32::min),
        DType::U64 => block.extrema(op, u64::max, u64::min),
        DType::F16 => block.reals(
            op,
            |a: f16, b: f16| f16::narrow(a.widen() + b.widen()),
            |a: f16, b: f16| f16::narrow(a.widen() * b.widen()),
        ),
        DType::F32 => block.reals(op, |a: f32, b: f32| a + b, |a: f32, b: f32| a * b),
        DType::F64 => block.reals(op, |a: f64, b: f64| a + b, |a: f64, b: f64| a * b),
        DType::C64 => block.complex::<Complex<f32>>(op),
        DType::C128 => block.complex::<Complex<f64>>(op),
    }
}

struct ScanBlock<'a> {
    data: &'a [u8],
    length: usize,
    inner: usize,
    carry: &'a mut [u8],
    started: bool,
    starts: Option<&'a [u8]>,
    out: &'a mut [u8],
}

impl ScanBlock<'_> {
    fn words<T: Pod>(self, op: Scan, add: impl Fn(T, T) -> T, multiply: impl Fn(T, T) -> T) {
        match op {
            Scan::Prod => self.accumulate(multiply),
            _ => self.accumulate(add),
        }
    }

    fn extrema<T: Pod>(self, op: Scan, greater: impl Fn(T, T) -> T, smaller: impl Fn(T, T) -> T) {
        match op {
            Scan::Max => self.accumulate(greater),
            Scan::Min => self.accumulate(smaller),
            Scan::Sum | Scan::Prod => panic!("scan: {op:?} of bool needs a cast"),
        }
    }

    fn reals<T: Lifted<Wide: PartialOrd>>(self, op: Scan, add: impl Fn(T, T) -> T, multiply: impl Fn(T, T) -> T) {
        // As `numpy.maximum`: the first operand where both are equal, and a NaN before anything.
        #[allow(clippy::eq_op)] // only NaN differs from itself
        let nan = |x: T::Wide| x != x;
        match op {
            Scan::Sum => self.accumulate(add),
            Scan::Prod => self.accumulate(multiply),
            Scan::Max => self.accumulate(|a: T, b: T| {
                if (a.widen() >= b.widen()) | nan(a.widen()) {
                    a
                } else {
                    b
                }
            }),
            Scan::Min => self.accumulate(|a: T, b: T| {
                if (a.widen() <= b.widen()) | nan(a.widen()) {
                    a
                } else {
                    b
                }
            }),
        }
    }

    fn complex<Z: Pod + Add<Output = Z> + Mul<Output = Z>>(self, op: Scan) {
        match op {
            Scan::Sum => self.accumulate(Z::add),
            Scan::Prod => self.accumulate(Z::mul),
            Scan::Max | Scan::Min => panic!("scan: {op:?} of complex numbers, which have no order"),
        }
    }

    #[inline(always)]
    fn accumulate<T: Pod>(self, combine: impl Fn(T, T) -> T) {
        let inner = self.inner;
        let data: &[T] = bytemuck::cast_slice(self.data);
        let out: &mut [T] = bytemuck::cast_slice_mut(self.out);
        let carry: &mut [T] = bytemuck::cast_slice_mut(self.carry);
        let blocks = data
            .chunks_exact(self.length * inner)
            .zip(out.chunks_exact_mut(self.length * inner));
        for ((data, out), carry) in blocks.zip(carry.chunks_exact_mut(inner)) {
            if let Some(starts) = self.starts {
                let lanes = data.chunks_exact(inner).zip(out.chunks_exact_mut(inner));
                for (place, (row, results)) in lanes.enumerate() {
                    if starts[place] != 0 || (place == 0 && !self.started) {
                        carry.copy_from_slice(row);
                    } else {
                        for (total, value) in carry.iter_mut().zip(row) {
                            *total = combine(*total, *value);
                        }
                    }
                    results.copy_from_slice(carry);
                }
                continue;
            }
            let first = if self.started {
                0
            } else {
                carry.copy_from_slice(&data[..inner]);
                out[..inner].copy_from_slice(carry);
                inner
            };
            if inner == 1 {
                let mut total = carry[0];
                for (value, place) in data[first..].iter().zip(&mut out[first..]) {
                    total = combine(total, *value);
                    *place = total;
                }
                carry[0] = total;
                continue;
            }
            for (row, places) in data[first..]
                .chunks_exact(inner)
                .zip(out[first..].chunks_exact_mut(inner))
            {
                for ((value, place), total) in row.iter().zip(places).zip(carry.iter_mut()) {
                    *total = combine(*total, *value);
                    *place = *total;
                }
            }
        }
    }
}
