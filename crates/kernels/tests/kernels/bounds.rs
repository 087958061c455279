use outcore_dtype::{DType, Scalar};
use outcore_kernels::{find_beyond, Bounds};

#[test]
fn the_first_element_outside_is_named_and_both_bounds_are_inside() {
    let data = [3i64, -1, 4, 9, -2];
    let data = bytemuck::cast_slice(&data);
    assert_eq!(find_beyond(Bounds::Between(-2, 9), DType::I64, data), None);
    assert_eq!(
        find_beyond(Bounds::Between(-1, 8), DType::I64, data),
        Some(Scalar::Int(9))
    );
    assert_eq!(
        find_beyond(Bounds::Between(0, i64::MAX), DType::I64, data),
        Some(Scalar::Int(-1))
    );
}

#[test]
fn bounds_may_be_wider_than_the_type_or_beside_it() {
    let data = [0u8, 255];
    assert_eq!(find_beyond(Bounds::Between(-5, 300), DType::U8, &data), None);
    assert_eq!(
        find_beyond(Bounds::Between(-5, -1), DType::U8, &data),
        Some(Scalar::UInt(0))
    );
    assert_eq!(
        find_beyond(Bounds::Between(256, 300), DType::U8, &data),
        Some(Scalar::UInt(0))
    );
}

#[test]
fn nan_and_infinities_are_not_finite() {
    let data = [1.0f32, f32::NEG_INFINITY];
    let found = find_beyond(Bounds::Finite, DType::F32, bytemuck::cast_slice(&data));
    assert_eq!(found, Some(Scalar::Float(f64::NEG_INFINITY)));
    let data = [f64::MAX, 0.0];
    assert_eq!(
        find_beyond(Bounds::Finite, DType::F64, bytemuck::cast_slice(&data)),
        None
    );
}
