//! The numbers of which elements of a factor are made: of double precision, or of single precision, where solutions are
//! refined by a matrix of double precision (Buttari and others, Exploiting mixed precision for dense linear algebra, 2007).

use std::ops::AddAssign;

use bytemuck::Pod;
use outcore_dtype::DType;

/// A real number of a factor.
pub(super) trait RealNumber: Pod + AddAssign {
    const ZERO: Self;
    fn rounded(value: f64) -> Self;
}

impl RealNumber for f32 {
    const ZERO: f32 = 0.0;
    fn rounded(value: f64) -> f32 {
        value as f32
    }
}

impl RealNumber for f64 {
    const ZERO: f64 = 0.0;
    fn rounded(value: f64) -> f64 {
        value
    }
}

/// The type of single precision for a type of double precision.
pub(super) fn single_of(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F32,
        DType::C128 => DType::C64,
        other => other,
    }
}

/// Whether elements are of single precision.
pub(super) fn is_single(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::C64)
}
