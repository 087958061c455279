//! Functions of the mathematical library on halves, by the kernels of single precision, a strip at a time.

use super::cast::{narrowed, widened};
use super::{BinaryKernel, UnaryKernel};

/// Elements of a strip: three of single precision stay in the first-level cache.
const STRIP: usize = 512;
const HALF_BYTES: usize = 2;

/// An operand as strips of single precision; one element alone stands for all.
struct Strips<'a> {
    halves: &'a [u8],
    repeats: bool,
    wide: [f32; STRIP],
    widen: UnaryKernel,
}

impl<'a> Strips<'a> {
    fn new(halves: &'a [u8], count: usize) -> Strips<'a> {
        let own = halves.len() / HALF_BYTES;
        assert!(
            own == count || own == 1,
            "a kernel's operand of {own} elements does not broadcast to {count}"
        );
        let mut strips = Strips {
            halves,
            repeats: own != count,
            wide: [0.0; STRIP],
            widen: widened(),
        };
        if strips.repeats {
            (strips.widen)(halves, bytemuck::cast_slice_mut(&mut strips.wide[..1]));
        }
        strips
    }

    fn get(&mut self, first: usize, count: usize) -> &[u8] {
        let count = if self.repeats { 1 } else { count };
        let wide = bytemuck::cast_slice_mut(&mut self.wide[..count]);
        if !self.repeats {
            (self.widen)(&self.halves[first * HALF_BYTES..(first + count) * HALF_BYTES], wide);
        }
        wide
    }
}

pub fn unary(kernel: UnaryKernel, input: &[u8], output: &mut [u8]) {
    let count = output.len() / HALF_BYTES;
    let (mut input, narrow) = (Strips::new(input, count), narrowed());
    let mut results = [0f32; STRIP];
    for (strip, output) in output.chunks_mut(STRIP * HALF_BYTES).enumerate() {
        let length = output.len() / HALF_BYTES;
        let results = bytemuck::cast_slice_mut(&mut results[..length]);
        kernel(input.get(strip * STRIP, length), results);
        narrow(results, output);
    }
}

pub fn binary(kernel: BinaryKernel, left: &[u8], right: &[u8], output: &mut [u8]) {
    let count = output.len() / HALF_BYTES;
    let (mut left, mut right, narrow) = (Strips::new(left, count), Strips::new(right, count), narrowed());
    let mut results = [0f32; STRIP];
    for (strip, output) in output.chunks_mut(STRIP * HALF_BYTES).enumerate() {
        let length = output.len() / HALF_BYTES;
        let results = bytemuck::cast_slice_mut(&mut results[..length]);
        let first = strip * STRIP;
        kernel(left.get(first, length), right.get(first, length), results);
        narrow(results, output);
    }
}
