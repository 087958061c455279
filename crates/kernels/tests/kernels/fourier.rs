//! Transforms against the sum that defines them.

use bytemuck::Pod;
use outcore_dtype::{Complex, DType};
use outcore_kernels::{Fourier, FourierPlan};
use std::f64::consts::TAU;

fn naive(data: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
    let n = data.len();
    let sum = |k: usize| {
        let terms = data.iter().enumerate();
        terms
            .map(|(j, value)| value * Complex::from_polar(1.0, sign * TAU * ((j * k) % n) as f64 / n as f64))
            .sum()
    };
    (0..n).map(sum).collect()
}

fn numbers(count: usize) -> Vec<Complex<f64>> {
    let wave = |i: usize, f: f64| (i as f64 * f).sin() + (i % 7) as f64;
    (0..count).map(|i| Complex::new(wave(i, 0.7), wave(i, 1.9))).collect()
}

fn typed<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

fn run(plan: &FourierPlan, data: &[u8], outer: usize, inner: usize, scale: f64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0u128; bytes.div_ceil(16)];
    let out: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut out)[..bytes];
    let mut workspace = vec![[0u64; 8]; plan.workspace_bytes(inner).div_ceil(64) + 1];
    let workspace: &mut [u8] = bytemuck::cast_slice_mut(&mut workspace);
    plan.run(
        data,
        (outer, inner),
        scale,
        out,
        &mut workspace[..plan.workspace_bytes(inner)],
    );
    out.to_vec()
}

#[test]
fn lanes_of_all_lengths_and_places_are_transformed() {
    for n in [1, 2, 3, 7, 8, 30, 97, 128] {
        for (outer, inner) in [(1, 1), (3, 1), (1, 5), (2, 19)] {
            let data = numbers(outer * n * inner);
            for (kind, sign) in [(Fourier::Forward, -1.0), (Fourier::Backward, 1.0)] {
                let plan = FourierPlan::new(kind, DType::C128, n);
                let out = run(&plan, bytemuck::cast_slice(&data), outer, inner, 0.5, data.len() * 16);
                let out: Vec<Complex<f64>> = typed(&out);
                for o in 0..outer {
                    for i in 0..inner {
                        let lane = |from: &[Complex<f64>]| -> Vec<Complex<f64>> {
                            (0..n).map(|k| from[(o * n + k) * inner + i]).collect()
                        };
                        let expected = naive(&lane(&data), sign);
                        for (found, expected) in lane(&out).iter().zip(&expected) {
                            assert!((found - expected * 0.5).norm() < 1e-10 * n as f64, "n = {n}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn real_lanes_have_half_the_coefficients_and_come_back() {
    for n in [1, 2, 3, 8, 15, 100] {
        for inner in [1, 11] {
            let data: Vec<f64> = numbers(2 * n * inner).iter().map(|value| value.re).collect();
            let half = n / 2 + 1;
            let forth = FourierPlan::new(Fourier::FromReal, DType::F64, n);
            let out = run(
                &forth,
                bytemuck::cast_slice(&data),
                2,
                inner,
                1.0,
                2 * half * inner * 16,
            );
            let coefficients: Vec<Complex<f64>> = typed(&out);
            let lane: Vec<Complex<f64>> = (0..n).map(|k| Complex::new(data[k * inner], 0.0)).collect();
            for (k, expected) in naive(&lane, -1.0)[..half].iter().enumerate() {
                assert!((coefficients[k * inner] - expected).norm() < 1e-10 * n as f64);
            }
            let back = FourierPlan::new(Fourier::ToReal, DType::F64, n);
            let again = run(&back, &out, 2, inner, 1.0 / n as f64, data.len() * 8);
            let again: Vec<f64> = typed(&again);
            assert!(again.iter().zip(&data).all(|(a, b)| (a - b).abs() < 1e-10));
        }
    }
}

#[test]
fn single_precision_stays_single() {
    let data: Vec<Complex<f32>> = numbers(24)
        .iter()
        .map(|v| Complex::new(v.re as f32, v.im as f32))
        .collect();
    let plan = FourierPlan::new(Fourier::Forward, DType::C64, 24);
    let out: Vec<Complex<f32>> = typed(&run(&plan, bytemuck::cast_slice(&data), 1, 1, 1.0, 24 * 8));
    for (found, expected) in out.iter().zip(naive(&numbers(24), -1.0)) {
        assert!((f64::from(found.re) - expected.re).abs() < 1e-4 && (f64::from(found.im) - expected.im).abs() < 1e-4);
    }
}
