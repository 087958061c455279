//! Type promotion as `numpy.result_type` does it for two array types.

use crate::{DType, Kind};

impl DType {
    /// The smallest type that holds every value of both, by NumPy's rules (`int64` with `uint64` is `float64`).
    pub fn promote(a: DType, b: DType) -> DType {
        if a == b {
            return a;
        }
        let (low, high) = if a.kind() <= b.kind() { (a, b) } else { (b, a) };
        match (low.kind(), high.kind()) {
            (Kind::Bool, _) => high,
            (same, other) if same == other => {
                if low.size() >= high.size() {
                    low
                } else {
                    high
                }
            }
            (Kind::Unsigned, Kind::Signed) => {
                if high.size() > low.size() {
                    high
                } else {
                    signed_wider_than(low)
                }
            }
            (Kind::Unsigned | Kind::Signed, Kind::Float) => larger_float(high, float_holding(low)),
            (Kind::Unsigned | Kind::Signed, Kind::Complex) => complex_of(larger_float(high.real(), float_holding(low))),
            (Kind::Float, Kind::Complex) => complex_of(larger_float(high.real(), low)),
            _ => unreachable!("kinds are ordered"),
        }
    }

    /// The floating type that true division and the transcendental functions compute in.
    pub fn to_inexact(self) -> DType {
        if self.is_inexact() {
            return self;
        }
        match self {
            // NumPy computes int8 transcendentals in float16, int16 in float32, all else in float64.
            DType::Bool | DType::I8 | DType::U8 => DType::F16,
            DType::I16 | DType::U16 => DType::F32,
            _ => DType::F64,
        }
    }
}

fn signed_wider_than(unsigned: DType) -> DType {
    match unsigned {
        DType::U8 => DType::I16,
        DType::U16 => DType::I32,
        DType::U32 => DType::I64,
        _ => DType::F64,
    }
}

fn float_holding(integer: DType) -> DType {
    match integer.size() {
        1 => DType::F16,
        2 => DType::F32,
        _ => DType::F64,
    }
}

fn larger_float(a: DType, b: DType) -> DType {
    if a.size() >= b.size() {
        a
    } else {
        b
    }
}

fn complex_of(float: DType) -> DType {
    match float {
        DType::F16 | DType::F32 => DType::C64,
        _ => DType::C128,
    }
}
