//! Calls of functions of the user with whole slices of arrays: slices are put together from tiles, and what comes back is put
//! where elements are.
//!
//! A call is a block of one step within loops along its slices. One of them goes along an axis of the target, others along axes
//! of what is read, so that dependences hold between all elements that are written and all that are read, and tasks have whole
//! slices: such loops are not cut.

use outcore_dtype::DType;
use outcore_kernels::{copy_strided, StridedBytes, StridedBytesMut};

use super::affine::{CounterBox, CounterRange, LoopCounters, DEPTH_MAX};
use super::call::SliceCall;
use super::line::{put, LineSpan, PlacedElement, TilePlaces};
use super::program::{ArrayElement, BlockStep, Leaf, LoopBlock, LoopProgram};
use crate::expr::Block;
use crate::task::Bound;
use crate::{cancel, EngineError};

/// Where a slice begins in memory, in bytes.
const SLICE_ALIGNMENT: usize = 64;
/// Operations of a function for each element that it is called with, as far as can be told before.
const OPERATIONS_OF_CALL: f64 = 32.0;
/// Copies of the slices that a function has beside the engine's: the arrays that it is called with, and what it makes of them.
const COPIES: u64 = 2;

/// Bytes of the largest slices of a call, and of what its function makes of them; none of other blocks.
pub(super) fn slice_bytes(program: &LoopProgram, block: &LoopBlock) -> u64 {
    let (Some(call), Ok(Some(over))) = (&block.call, program.whole(&block.path)) else {
        return 0;
    };
    let bytes = |element: &ArrayElement| {
        let lengths = call
            .axes(&element.subscripts)
            .into_iter()
            .map(|depth| over[depth].length() as u64);
        let item = program.arrays[element.array].dtype.size() as u64;
        let bytes = lengths.fold(item, u64::saturating_mul);
        bytes
            .checked_next_multiple_of(SLICE_ALIGNMENT as u64)
            .unwrap_or(u64::MAX)
    };
    let of = |leaf: &Leaf| match leaf {
        Leaf::Element(element) => bytes(element),
        _ => SLICE_ALIGNMENT as u64,
    };
    let steps = block.steps.iter();
    let slices = steps.flat_map(|step| step.leaves.iter().map(of).chain(step.written().map(bytes)));
    let sum = slices.fold(0u64, u64::saturating_add);
    sum.saturating_mul(1 + COPIES)
}

/// Operations of a block over a box of counters.
pub(super) fn block_operations(block: &LoopBlock, over: &CounterBox) -> f64 {
    let length = |range: &CounterRange| range.length() as f64;
    let Some(call) = &block.call else {
        // A step takes a few operations, and its elements as many more.
        return 8.0 * block.steps.len() as f64 * over.iter().map(length).product::<f64>();
    };
    let calls: f64 = over[..call.first].iter().map(length).product();
    let elements = block.steps.iter().flat_map(|step| step.reads().chain(step.written()));
    let of = |element: &ArrayElement| {
        let lengths = call
            .axes(&element.subscripts)
            .into_iter()
            .map(|depth| length(&over[depth]));
        lengths.product::<f64>()
    };
    OPERATIONS_OF_CALL * calls * elements.map(of).sum::<f64>()
}

/// A slice in one call: the loops along its axes, and their counters.
struct PlacedSlice<'a> {
    element: &'a ArrayElement,
    axes: Vec<(usize, CounterRange)>,
    item: usize,
    shape: Vec<usize>,
}

impl PlacedSlice<'_> {
    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.item
    }
}

/// Calls the function of a block in an iteration of the loops around its slices, unless guards keep it from that.
pub(super) fn call_with_slices(
    program: &LoopProgram,
    number: usize,
    counters: &LoopCounters,
    places: &TilePlaces,
    tiles: &mut Bound<'_>,
    memory: &mut [u8],
) -> Result<(), EngineError> {
    cancel::check();
    let block = &program.blocks[number];
    let (Some(call), [step]) = (&block.call, &block.steps[..]) else {
        return Ok(());
    };
    let mut over: CounterBox = counters.map(|at| CounterRange { low: at, high: at });
    let mut at = *counters;
    for &of in &block.path[call.first..] {
        let of = &program.loops[of];
        let range = of.counters(&over);
        if range.is_empty() {
            return Ok(());
        }
        (over[of.depth], at[of.depth]) = (range, range.low);
    }
    if block.constraints.iter().any(|constraint| constraint.at(&at) < 0) {
        return Ok(());
    }
    let calling = Calling {
        program,
        call,
        places,
        at,
        over,
    };
    calling.run(step, tiles, memory)
}

/// A call in one iteration of the loops around its slices.
struct Calling<'a> {
    program: &'a LoopProgram,
    call: &'a SliceCall,
    places: &'a TilePlaces,
    at: LoopCounters,
    over: CounterBox,
}

impl Calling<'_> {
    fn run(&self, step: &BlockStep, tiles: &mut Bound<'_>, memory: &mut [u8]) -> Result<(), EngineError> {
        let Some(target) = step.written() else { return Ok(()) };
        let target = self.placed(target);
        let (output, mut rest) = parted(memory, target.bytes())?;
        let mut slices: Vec<(&[u8], DType, Vec<usize>)> = vec![];
        for leaf in &step.leaves {
            let into;
            slices.push(match leaf {
                Leaf::Element(element) => {
                    let slice = self.placed(element);
                    (into, rest) = parted(rest, slice.bytes())?;
                    self.gather(&slice, tiles, into)?;
                    (into, self.program.arrays[element.array].dtype, slice.shape)
                }
                Leaf::Index(index) => {
                    (into, rest) = parted(rest, size_of::<i64>())?;
                    into.copy_from_slice(&index.at(&self.at).to_ne_bytes());
                    (into, DType::I64, vec![])
                }
                Leaf::Register(_) => return Err(EngineError::Internal("loops: a register in a call".into())),
            });
        }
        let slices = slices.iter().map(|(data, dtype, shape)| Block {
            data,
            dtype: *dtype,
            shape,
        });
        let slices: Vec<Block<'_>> = slices.collect();
        let dtype = self.program.arrays[target.element.array].dtype;
        let called = self.call.function.call(&slices, output, dtype, &target.shape);
        called.map_err(EngineError::Function)?;
        self.each_run(&target, &mut |run, first| {
            let strip = &output[first * target.item..];
            put(target.item, run.count, strip, tiles.writes[run.of.tile], run.of);
        })
    }

    fn gather(&self, slice: &PlacedSlice<'_>, tiles: &Bound<'_>, into: &mut [u8]) -> Result<(), EngineError> {
        self.each_run(slice, &mut |run, first| {
            let tile: &[u8] = match run.of.is_written {
                true => tiles.writes[run.of.tile],
                false => tiles.reads[run.of.tile],
            };
            copy_strided(
                slice.item,
                &[run.count],
                StridedBytes::new(tile, run.of.offset, &[run.of.stride]),
                StridedBytesMut::new(into, first, &[1]),
            );
        })
    }

    fn placed<'e>(&self, element: &'e ArrayElement) -> PlacedSlice<'e> {
        let axes = self.call.axes(&element.subscripts).into_iter();
        let axes: Vec<(usize, CounterRange)> = axes.map(|depth| (depth, self.over[depth])).collect();
        PlacedSlice {
            element,
            item: self.program.arrays[element.array].dtype.size(),
            shape: axes.iter().map(|(_, range)| range.length() as usize).collect(),
            axes,
        }
    }

    /// Calls `each` for each run of elements of a slice that lie in one tile, with the place of the first in the slice.
    fn each_run(&self, slice: &PlacedSlice<'_>, each: &mut dyn FnMut(SliceRun, usize)) -> Result<(), EngineError> {
        let (mut at, mut direction) = (self.at, [0; DEPTH_MAX]);
        let place = |at: &LoopCounters, direction: &LoopCounters, count: i64| {
            let mut span = LineSpan::of(count);
            let of = self
                .places
                .place(self.program, slice.element, at, direction, &mut span)?;
            let count = span.count as usize;
            Ok::<SliceRun, EngineError>(SliceRun { of, count })
        };
        let Some((&(last, range), outer)) = slice.axes.split_last() else {
            each(place(&at, &direction, 1)?, 0);
            return Ok(());
        };
        direction[last] = 1;
        let mut first = 0;
        loop {
            at[last] = range.low;
            while at[last] <= range.high {
                let run = place(&at, &direction, range.high - at[last] + 1)?;
                each(run, first);
                first += run.count;
                at[last] += run.count as i64;
            }
            // The next place along the axes before the last.
            let Some(axis) = outer.iter().rposition(|&(depth, range)| at[depth] < range.high) else {
                return Ok(());
            };
            at[outer[axis].0] += 1;
            outer[axis + 1..]
                .iter()
                .for_each(|&(depth, range)| at[depth] = range.low);
        }
    }
}

/// Elements of a slice, one after the other, that lie in one tile.
#[derive(Clone, Copy)]
struct SliceRun {
    of: PlacedElement,
    count: usize,
}

/// The first bytes of memory, and what is left from the next place where a slice may begin.
fn parted(memory: &mut [u8], bytes: usize) -> Result<(&mut [u8], &mut [u8]), EngineError> {
    let end = bytes.next_multiple_of(SLICE_ALIGNMENT);
    if end > memory.len() {
        return Err(EngineError::Internal("loops: slices larger than their memory".into()));
    }
    let (slice, rest) = memory.split_at_mut(end);
    Ok((&mut slice[..bytes], rest))
}
