//! Conversions of halves against those of the `half` crate, bit by bit.

use bytemuck::Pod;
use outcore_dtype::{f16, DType};
use outcore_kernels::cast_kernel;

fn cast<A: Pod, R: Pod>(from: DType, to: DType, values: &[A]) -> Vec<R> {
    let mut output = vec![R::zeroed(); values.len()];
    cast_kernel(from, to)(bytemuck::cast_slice(values), bytemuck::cast_slice_mut(&mut output));
    output
}

fn widen(halves: &[f16]) -> Vec<f32> {
    cast(DType::F16, DType::F32, halves)
}

fn narrow(values: &[f32]) -> Vec<f16> {
    cast(DType::F32, DType::F16, values)
}

fn narrow_double(values: &[f64]) -> Vec<f16> {
    cast(DType::F64, DType::F16, values)
}

#[test]
fn every_half_widens_exactly_and_returns() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let wide = widen(&halves);
    for ((value, wide), back) in halves.iter().zip(&wide).zip(narrow(&wide)) {
        if value.is_nan() {
            assert!(wide.is_nan() && back.is_nan());
        } else {
            assert_eq!(wide.to_bits(), value.to_f32_const().to_bits());
            assert_eq!(back.to_bits(), value.to_bits());
        }
    }
}

#[test]
fn doubles_beside_a_tie_round_to_its_side() {
    let halves: Vec<f16> = (0..=0x7bff).map(f16::from_bits).collect();
    let wide: Vec<f64> = widen(&halves).into_iter().map(f64::from).collect();
    let ties: Vec<f64> = wide.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    let narrowed = |of: fn(f64) -> f64| narrow_double(&ties.iter().copied().map(of).collect::<Vec<_>>());
    assert_eq!(narrowed(f64::next_down), halves[..ties.len()]);
    assert_eq!(narrowed(f64::next_up), halves[1..]);
    assert!(narrowed(|tie| -tie).iter().all(|half| half.to_bits() & 1 == 0));
    let special = narrow_double(&[1e300, f64::NAN]);
    assert_eq!(special[0], f16::INFINITY);
    assert!(special[1].is_nan());
}

#[test]
fn narrowing_rounds_to_nearest_even() {
    // Every 251st float passes through all exponents and many ties.
    let mut all = (0..=u32::MAX)
        .step_by(251)
        .chain((0..1 << 19).map(|high| high << 13 | 0x1000))
        .map(f32::from_bits)
        .filter(|value| !value.is_nan());
    loop {
        let values: Vec<f32> = all.by_ref().take(1 << 16).collect();
        if values.is_empty() {
            break;
        }
        for (value, half) in values.iter().zip(narrow(&values)) {
            assert_eq!(half.to_bits(), f16::from_f32_const(*value).to_bits(), "{value:e}");
        }
    }
}
