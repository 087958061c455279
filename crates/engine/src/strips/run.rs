//! Element-wise programs over a block, strip by strip.

use std::ops::DerefMut;

use outcore_kernels::{copy_strided, find_beyond, prefetch, prefetch_for_write, StridedBytes, StridedBytesMut};

use super::buffers::Buffers;
use super::compile::{Fused, FusedInstruction, Kernel, Operand, STRIP};
use crate::EngineError;

/// One input: its bytes, and offset and strides in elements over the block's shape (zero along repeated axes).
pub struct FusedInput<'a> {
    pub data: &'a [u8],
    pub item: usize,
    pub offset: usize,
    pub strides: Vec<isize>,
}

impl<'a> FusedInput<'a> {
    /// A row of elements, or one element that is repeated: at these strides.
    pub fn new(data: &'a [u8], item: usize, stride: isize) -> FusedInput<'a> {
        FusedInput {
            data,
            item,
            offset: 0,
            strides: vec![stride],
        }
    }
}

/// How an input is read in each strip.
enum StripAccess {
    /// One run of memory.
    Run,
    /// One element for the whole block.
    Scalar,
    /// Copied into a register first.
    Copied,
}

/// Runs the program over a block of `shape`, writing `output`, C-contiguous.
///
/// # Errors
/// An element that one of the program's checks refuses.
pub fn run<R: DerefMut<Target = [u8]>>(
    fused: &Fused,
    shape: &[usize],
    mut inputs: Vec<FusedInput<'_>>,
    registers: &mut Buffers<R>,
    output: &mut [u8],
) -> Result<(), EngineError> {
    if shape.contains(&0) {
        return Ok(());
    }
    let shape = coalesce(shape, &mut inputs);
    let ndim = shape.len();
    let inner = shape.last().copied().unwrap_or(1);
    let rows = if ndim >= 2 { shape[ndim - 2] } else { 1 };
    let outer: usize = shape[..ndim.saturating_sub(2)].iter().product();
    let item = fused.instructions.last().map_or(1, |last| last.item);
    // Short rows are taken several at a time, long rows in pieces.
    let rows_per_strip = (STRIP / inner).clamp(1, rows);
    let columns_per_strip = inner.min(STRIP);
    let mut written = 0;
    for lead in 0..outer {
        let bases: Vec<usize> = inputs
            .iter()
            .map(|input| base(input, &shape[..ndim.saturating_sub(2)], lead))
            .collect();
        let mut row = 0;
        while row < rows {
            let height = rows_per_strip.min(rows - row);
            let mut column = 0;
            while column < inner {
                let width = columns_per_strip.min(inner - column);
                let strip = Strip {
                    row,
                    column,
                    height,
                    width,
                    is_whole: width == inner,
                };
                let bytes = height * width * item;
                let (now, later) = output[written..].split_at_mut(bytes);
                let next = later.len().min(bytes);
                run_strip(fused, &inputs, &bases, strip, registers, now, &mut later[..next])?;
                written += bytes;
                column += width;
            }
            row += height;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Strip {
    row: usize,
    column: usize,
    height: usize,
    width: usize,
    /// Whether rows are whole: then the strips of a block all begin in its first column.
    is_whole: bool,
}

fn base(input: &FusedInput<'_>, leading: &[usize], mut index: usize) -> usize {
    let mut offset = input.offset as isize;
    for axis in (0..leading.len()).rev() {
        offset += (index % leading[axis]) as isize * input.strides[axis];
        index /= leading[axis];
    }
    offset as usize
}

/// Joins neighbouring axes wherever every input allows it, so that loops are long; at least one axis is left.
fn coalesce(shape: &[usize], inputs: &mut [FusedInput<'_>]) -> Vec<usize> {
    let mut joined: Vec<usize> = Vec::new();
    let mut strides: Vec<Vec<isize>> = vec![vec![]; inputs.len()];
    for (axis, &length) in shape.iter().enumerate() {
        if length == 1 {
            continue;
        }
        let fits = !joined.is_empty()
            && inputs.iter().zip(&strides).all(|(input, strides)| {
                *strides.last().expect("one per joined axis") == input.strides[axis] * length as isize
            });
        if fits {
            *joined.last_mut().expect("not empty") *= length;
        } else {
            joined.push(length);
        }
        for (strides, input) in strides.iter_mut().zip(inputs.iter()) {
            if fits {
                strides.pop();
            }
            strides.push(input.strides[axis]);
        }
    }
    if joined.is_empty() {
        joined.push(1);
        strides.iter_mut().for_each(|strides| strides.push(0));
    }
    for (input, strides) in inputs.iter_mut().zip(strides) {
        input.strides = strides;
    }
    joined
}

fn access(input: &FusedInput<'_>, strip: Strip) -> StripAccess {
    let ndim = input.strides.len();
    let along = input.strides[ndim - 1];
    let down = if ndim >= 2 && strip.height > 1 {
        Some(input.strides[ndim - 2])
    } else {
        None
    };
    match (along, down) {
        (1, None) => StripAccess::Run,
        (1, Some(down)) if down == strip.width as isize => StripAccess::Run,
        (0, None | Some(0)) => StripAccess::Scalar,
        _ if strip.width == 1 && strip.height == 1 => StripAccess::Scalar,
        _ => StripAccess::Copied,
    }
}

/// Where the strip of an input begins and ends, in bytes of its own data, or of its register.
#[derive(Clone, Copy, Default)]
struct Located {
    is_copied: bool,
    begin: usize,
    end: usize,
}

/// A strip that is worked on, with all that its instructions read.
struct StripOperands<'a> {
    fused: &'a Fused,
    inputs: &'a [FusedInput<'a>],
    located: &'a [Located],
    /// Elements of the strip.
    count: usize,
}

fn run_strip<R: DerefMut<Target = [u8]>>(
    fused: &Fused,
    inputs: &[FusedInput<'_>],
    bases: &[usize],
    strip: Strip,
    registers: &mut Buffers<R>,
    output: &mut [u8],
    next: &mut [u8],
) -> Result<(), EngineError> {
    let mut few = [Located::default(); 16];
    let mut many: Vec<Located> = Vec::new();
    if inputs.len() > few.len() {
        many.resize(inputs.len(), Located::default());
    }
    let located: &mut [Located] = if many.is_empty() { &mut few } else { &mut many };
    for (index, input) in inputs.iter().enumerate() {
        located[index] = locate(input, bases[index], strip, registers, fused.registers + index);
    }
    let reading = StripOperands {
        fused,
        inputs,
        located,
        count: strip.height * strip.width,
    };
    for (number, instruction) in fused.instructions.iter().enumerate() {
        reading.prefetch_part(number, next);
        let refused = match instruction.target {
            Some(target) => registers.lend(target, |frame, registers| {
                let target = &mut frame[..reading.count * instruction.item];
                reading.run_instruction(instruction, registers, target)
            }),
            None => reading.run_instruction(instruction, registers, output),
        };
        if let Some(error) = refused {
            return Err(error);
        }
    }
    Ok(())
}

/// Finds the strip of an input, which is copied to a register where it is not in one run.
#[inline]
fn locate<R: DerefMut<Target = [u8]>>(
    input: &FusedInput<'_>,
    base: usize,
    strip: Strip,
    registers: &mut Buffers<R>,
    register: usize,
) -> Located {
    let count = strip.height * strip.width;
    let ndim = input.strides.len();
    let mut offset = base as isize + strip.column as isize * input.strides[ndim - 1];
    if ndim >= 2 {
        offset += strip.row as isize * input.strides[ndim - 2];
    }
    let begin = offset as usize * input.item;
    let elements = match access(input, strip) {
        StripAccess::Run => count,
        StripAccess::Scalar => 1,
        StripAccess::Copied => {
            let register = registers.get_mut(register);
            let down = if ndim >= 2 { input.strides[ndim - 2] } else { 0 };
            let along = input.strides[ndim - 1];
            // A row that is the same for all of them is there from the strip before, which was no shorter.
            let is_there = down == 0 && strip.is_whole && strip.row > 0;
            if !is_there && along == 0 {
                widen(input, offset, down, strip, &mut register[..count * input.item]);
            } else if !is_there {
                copy_strided(
                    input.item,
                    &[strip.height, strip.width],
                    StridedBytes::new(input.data, offset as usize, &[down, along]),
                    StridedBytesMut::new(register, 0, &[strip.width as isize, 1]),
                );
            }
            return Located {
                is_copied: true,
                begin: 0,
                end: count * input.item,
            };
        }
    };
    Located {
        is_copied: false,
        begin,
        end: begin + elements * input.item,
    }
}

impl StripOperands<'_> {
    /// The next strip comes from memory while this one is worked on, a part of it with each instruction.
    #[inline]
    fn prefetch_part(&self, number: usize, next: &mut [u8]) {
        let instructions = self.fused.instructions.len();
        let part = |bytes: usize| bytes * number / instructions..bytes * (number + 1) / instructions;
        for (input, &Located { is_copied, begin, end }) in self.inputs.iter().zip(self.located) {
            if !is_copied && end - begin > input.item {
                let ahead = &input.data[end..input.data.len().min(end + end - begin)];
                prefetch(&ahead[part(ahead.len())]);
            }
        }
        let ahead = part(next.len());
        prefetch_for_write(&mut next[ahead]);
    }

    #[inline]
    fn operand<'b, R: DerefMut<Target = [u8]>>(
        &'b self,
        operand: Operand,
        item: usize,
        registers: &'b Buffers<R>,
    ) -> &'b [u8] {
        match operand {
            Operand::Constant(index) => self.fused.constant(index),
            Operand::Register(register) => &registers.get(register)[..self.count * item],
            Operand::Input(index) => {
                let Located { is_copied, begin, end } = self.located[index];
                if is_copied {
                    &registers.get(self.fused.registers + index)[begin..end]
                } else {
                    &self.inputs[index].data[begin..end]
                }
            }
        }
    }

    /// Computes the strip of an instruction; gives what a check refuses.
    #[inline]
    fn run_instruction<R: DerefMut<Target = [u8]>>(
        &self,
        instruction: &FusedInstruction,
        registers: &Buffers<R>,
        target: &mut [u8],
    ) -> Option<EngineError> {
        let operand = |operand, item| self.operand(operand, item, registers);
        let [a, b, c] = instruction.operands;
        let [wa, wb, wc] = instruction.operand_items;
        let sources = match instruction.kernel {
            Kernel::Unary(_) | Kernel::Check(..) => [operand(a, wa), &[], &[]],
            Kernel::Binary(_) => [operand(a, wa), operand(b, wb), &[]],
            Kernel::Select(_) => [operand(a, wa), operand(b, wb), operand(c, wc)],
        };
        let repeated = self.count > 1
            && sources
                .iter()
                .zip([wa, wb, wc])
                .all(|(source, item)| source.len() <= item);
        // One value for the whole strip is computed once and repeated.
        let computed = if repeated {
            &mut target[..instruction.item]
        } else {
            &mut *target
        };
        let mut refused = None;
        match instruction.kernel {
            Kernel::Unary(kernel) => kernel(sources[0], computed),
            Kernel::Binary(kernel) => kernel(sources[0], sources[1], computed),
            Kernel::Select(kernel) => kernel(sources[0], sources[1], sources[2], computed),
            Kernel::Check(number, dtype) => {
                let check = &self.fused.checks[number];
                refused = find_beyond(check.bounds, dtype, sources[0]).map(|element| check.error(element));
                computed.copy_from_slice(sources[0]);
            }
        }
        if repeated {
            repeat(target, instruction.item);
        }
        refused
    }
}

/// Each row of the strip filled with the one element that the input has for it.
fn widen(input: &FusedInput<'_>, offset: isize, down: isize, strip: Strip, target: &mut [u8]) {
    fn fill<const ITEM: usize>(data: &[u8], offset: isize, down: isize, width: usize, target: &mut [u8]) {
        let (elements, _) = data.as_chunks::<ITEM>();
        let (places, _) = target.as_chunks_mut::<ITEM>();
        for (row, places) in places.chunks_exact_mut(width).enumerate() {
            places.fill(elements[(offset + row as isize * down) as usize]);
        }
    }
    match input.item {
        1 => fill::<1>(input.data, offset, down, strip.width, target),
        2 => fill::<2>(input.data, offset, down, strip.width, target),
        4 => fill::<4>(input.data, offset, down, strip.width, target),
        8 => fill::<8>(input.data, offset, down, strip.width, target),
        _ => fill::<16>(input.data, offset, down, strip.width, target),
    }
}

/// Fills `target` with its first element.
fn repeat(target: &mut [u8], item: usize) {
    let mut filled = item;
    while filled < target.len() {
        let more = filled.min(target.len() - filled);
        target.copy_within(..more, filled);
        filled += more;
    }
}
