//! Element-wise kernels: one operation, one compute type, one loop.
//!
//! `op` names the operations and their types, `unary` and `binary` hold the lookups, and `integer`, `real` and `complex`
//! the arithmetic that is more than an operator. A loop is compiled once for all types in which it gives the same bits: by
//! width where signs play no part, and functions of the mathematical library on halves by way of single precision (`lifted`).

mod binary;
mod cast;
mod complex;
mod integer;
mod lifted;
mod op;
mod real;
mod select;
mod unary;

pub use binary::binary_kernel;
pub use cast::cast_kernel;
pub(crate) use complex::ComplexNumber;
pub use op::{Binary, Unary};
pub use select::select_kernel;
pub use unary::unary_kernel;

use bytemuck::Pod;

/// Input and output of equal length.
pub type UnaryKernel = fn(input: &[u8], output: &mut [u8]);

/// An operand of exactly one element broadcasts; otherwise its length equals the output's.
pub type BinaryKernel = fn(left: &[u8], right: &[u8], output: &mut [u8]);

/// Where the condition (one byte each) is not 0 the left operand, else the right; one-element operands broadcast.
pub type SelectKernel = fn(condition: &[u8], left: &[u8], right: &[u8], output: &mut [u8]);

#[inline(always)]
fn map<A: Pod, R: Pod>(input: &[u8], output: &mut [u8], f: impl Fn(A) -> R) {
    let input: &[A] = bytemuck::cast_slice(input);
    let output: &mut [R] = bytemuck::cast_slice_mut(output);
    assert_eq!(
        input.len(),
        output.len(),
        "a unary kernel's input and output differ in length"
    );
    for (result, value) in output.iter_mut().zip(input) {
        *result = f(*value);
    }
}

#[inline(always)]
fn zip_map<A: Pod, R: Pod>(left: &[u8], right: &[u8], output: &mut [u8], f: impl Fn(A, A) -> R) {
    let left: &[A] = bytemuck::cast_slice(left);
    let right: &[A] = bytemuck::cast_slice(right);
    let output: &mut [R] = bytemuck::cast_slice_mut(output);
    let length = output.len();
    if left.len() == length && right.len() == length {
        for ((result, a), b) in output.iter_mut().zip(left).zip(right) {
            *result = f(*a, *b);
        }
    } else if right.len() == 1 && left.len() == length {
        let b = right[0];
        for (result, a) in output.iter_mut().zip(left) {
            *result = f(*a, b);
        }
    } else if left.len() == 1 && right.len() == length {
        let a = left[0];
        for (result, b) in output.iter_mut().zip(right) {
            *result = f(a, *b);
        }
    } else {
        assert!(
            left.len() == 1 && right.len() == 1,
            "a binary kernel's operands of {} and {} elements do not broadcast to {length}",
            left.len(),
            right.len()
        );
        output.fill(f(left[0], right[0]));
    }
}

/// A unary kernel from an expression on one element.
macro_rules! unary_body {
    ($A:ty => $R:ty, $f:expr) => {{
        struct Body;
        impl $crate::fence::shells::UnaryBody for Body {
            #[inline(always)]
            fn run(input: &[u8], output: &mut [u8]) {
                $crate::elementwise::map::<$A, $R>(input, output, $f)
            }
        }
        <Body as $crate::fence::shells::UnaryBody>::kernel()
    }};
}

/// A binary kernel from an expression on two elements.
macro_rules! binary_body {
    ($A:ty => $R:ty, $f:expr) => {{
        struct Body;
        impl $crate::fence::shells::BinaryBody for Body {
            #[inline(always)]
            fn run(left: &[u8], right: &[u8], output: &mut [u8]) {
                $crate::elementwise::zip_map::<$A, $R>(left, right, output, $f)
            }
        }
        <Body as $crate::fence::shells::BinaryBody>::kernel()
    }};
}

use {binary_body, unary_body};
