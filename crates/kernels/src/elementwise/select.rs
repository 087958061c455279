//! `where(condition, left, right)`.

use super::SelectKernel;
use crate::fence::shells::SelectBody;
use bytemuck::Pod;
use outcore_dtype::{Complex, DType};
use std::marker::PhantomData;

struct Selecting<T>(PhantomData<T>);

impl<T: Pod> SelectBody for Selecting<T> {
    #[inline(always)]
    fn run(condition: &[u8], left: &[u8], right: &[u8], output: &mut [u8]) {
        let left: &[T] = bytemuck::cast_slice(left);
        let right: &[T] = bytemuck::cast_slice(right);
        let output: &mut [T] = bytemuck::cast_slice_mut(output);
        let length = output.len();
        for (name, operand) in [
            ("condition", condition.len()),
            ("left", left.len()),
            ("right", right.len()),
        ] {
            assert!(
                operand == length || operand == 1,
                "select: {name} of {operand} elements for {length}"
            );
        }
        if condition.len() == 1 && length != 1 {
            let chosen = if condition[0] != 0 { left } else { right };
            return if chosen.len() == length {
                output.copy_from_slice(chosen)
            } else {
                output.fill(chosen[0])
            };
        }
        match (left.len() == length, right.len() == length) {
            (true, true) => {
                for (((result, condition), a), b) in output.iter_mut().zip(condition).zip(left).zip(right) {
                    *result = if *condition != 0 { *a } else { *b };
                }
            }
            (true, false) => {
                let b = right[0];
                for ((result, condition), a) in output.iter_mut().zip(condition).zip(left) {
                    *result = if *condition != 0 { *a } else { b };
                }
            }
            (false, true) => {
                let a = left[0];
                for ((result, condition), b) in output.iter_mut().zip(condition).zip(right) {
                    *result = if *condition != 0 { a } else { *b };
                }
            }
            (false, false) => {
                let (a, b) = (left[0], right[0]);
                for (result, condition) in output.iter_mut().zip(condition) {
                    *result = if *condition != 0 { a } else { b };
                }
            }
        }
    }
}

/// The selection kernel of a type: elements only move, so their width and alignment are all that counts.
pub fn select_kernel(dtype: DType) -> SelectKernel {
    match (dtype, dtype.size()) {
        (DType::C64, _) => <Selecting<Complex<f32>> as SelectBody>::kernel(),
        (DType::C128, _) => <Selecting<Complex<f64>> as SelectBody>::kernel(),
        (_, 1) => <Selecting<u8> as SelectBody>::kernel(),
        (_, 2) => <Selecting<u16> as SelectBody>::kernel(),
        (_, 4) => <Selecting<u32> as SelectBody>::kernel(),
        _ => <Selecting<u64> as SelectBody>::kernel(),
    }
}
