//! A task of a loop program: its iterations, line by line, each line in pieces that lie in one tile of every array.

use outcore_kernels::{copy_strided, BinaryKernel, StridedBytes, StridedBytesMut};

use super::affine::{enclose, tighten, Affine, CounterBox, CounterRange, LoopCounters, DEPTH_MAX};
use super::cut::Unit;
use super::embedding::PlaceRanges;
use super::line::{put, IterationLine, LineSpan, PlacedElement, TilePlaces};
use super::program::{BlockStep, Leaf, LoopBlock, LoopItem, LoopProgram, StepTarget};
use super::slices::{call_with_slices, slice_bytes};
use super::sweep::SweepLines;
use crate::strips::{self, Buffers, FusedInput, REGISTER_BYTES, STRIP};
use crate::task::Bound;
use crate::{cancel, EngineError};

/// Strips besides registers and numbers: a value, and two that updates need.
const OTHERS: usize = 3;

/// Strips that a task computes in.
struct TaskStrips<'w> {
    registers: Buffers<&'w mut [u8]>,
    /// Strips of the registers of a block.
    kept: Vec<&'w mut [u8]>,
    /// Numbers that follow from counters, one for each leaf of a step.
    indices: Vec<&'w mut [u8]>,
    others: [&'w mut [u8]; OTHERS],
}

/// Strips of blocks: of instructions, of registers, of numbers.
fn counts(program: &LoopProgram, blocks: &[usize]) -> [usize; 3] {
    let mut counts = [0; 3];
    for block in blocks.iter().map(|&block| &program.blocks[block]) {
        counts[1] = counts[1].max(block.registers);
        for step in &block.steps {
            let is_index = |leaf: &&Leaf| matches!(leaf, Leaf::Index(_));
            let registers = step
                .value
                .as_ref()
                .map_or(0, |value| value.registers + value.inputs.len());
            counts[0] = counts[0].max(registers);
            counts[2] = counts[2].max(step.leaves.iter().filter(is_index).count());
        }
    }
    counts
}

/// Memory in which a task of these blocks computes.
pub(super) fn scratch_bytes(program: &LoopProgram, blocks: &[usize]) -> u64 {
    let slices = blocks.iter().map(|&block| slice_bytes(program, &program.blocks[block]));
    strip_bytes(program, blocks) as u64 + slices.max().unwrap_or(0)
}

fn strip_bytes(program: &LoopProgram, blocks: &[usize]) -> usize {
    let strips: usize = counts(program, blocks).iter().sum();
    (strips + OTHERS) * REGISTER_BYTES
}

impl<'w> TaskStrips<'w> {
    fn of(program: &LoopProgram, blocks: &[usize], workspace: &'w mut [u8]) -> TaskStrips<'w> {
        let [registers, kept, indices] = counts(program, blocks);
        let mut strips = workspace.chunks_exact_mut(REGISTER_BYTES);
        let mut next = || strips.next().unwrap_or_default();
        TaskStrips {
            registers: (0..registers).map(|_| next()).collect(),
            kept: (0..kept).map(|_| next()).collect(),
            indices: (0..indices).map(|_| next()).collect(),
            others: [next(), next(), next()],
        }
    }
}

/// A task while it runs.
pub(super) struct TaskWalk<'a, 'w, 'b> {
    program: &'a LoopProgram,
    unit: &'a Unit,
    over: CounterBox,
    /// Constraints on the counters of each block of the program besides its own.
    within: Vec<Vec<Affine>>,
    places: TilePlaces,
    tiles: &'w mut Bound<'b>,
    strips: TaskStrips<'w>,
    /// Where slices are put together for functions that are called with them.
    slices: &'w mut [u8],
    placed: Vec<PlacedElement>,
    /// What a compiled block is called with.
    words: Vec<i64>,
    word_steps: Vec<i64>,
}

impl<'a, 'w, 'b> TaskWalk<'a, 'w, 'b> {
    pub fn new(
        program: &'a LoopProgram,
        unit: &'a Unit,
        (over, ranges): (CounterBox, PlaceRanges),
        places: TilePlaces,
        tiles: &'w mut Bound<'b>,
        workspace: &'w mut [u8],
    ) -> Self {
        let within = (0..program.blocks.len()).map(|block| unit.within(block, &ranges));
        let (strips, slices) = workspace.split_at_mut(strip_bytes(program, &unit.blocks).min(workspace.len()));
        TaskWalk {
            program,
            unit,
            over,
            within: within.collect(),
            places,
            tiles,
            strips: TaskStrips::of(program, &unit.blocks, strips),
            slices,
            placed: vec![],
            words: vec![],
            word_steps: vec![],
        }
    }

    pub fn run(mut self) -> Result<(), EngineError> {
        let mut counters = [0; DEPTH_MAX];
        for (counter, range) in counters.iter_mut().zip(&self.over).take(self.unit.exact) {
            *counter = range.low;
        }
        let unit = self.unit;
        unit.items.iter().try_for_each(|&item| self.item(item, &mut counters))
    }

    fn item(&mut self, item: LoopItem, counters: &mut LoopCounters) -> Result<(), EngineError> {
        let program = self.program;
        let of = match item {
            LoopItem::Block(block) => return self.lines(&[block], counters),
            LoopItem::Loop(of) => of,
        };
        if let Some(blocks) = &self.unit.lines_below[of] {
            return self.lines(blocks, counters);
        }
        if let Some(block) = program.called_along(item) {
            return call_with_slices(program, block, counters, &self.places, self.tiles, self.slices);
        }
        let of = &program.loops[of];
        counters[of.depth] = 0;
        let most = of.bound.at(counters).div_euclid(-of.bound.coefficients[of.depth]);
        let range = self.over[of.depth];
        for at in range.low.max(of.first.at(counters))..=range.high.min(most) {
            cancel::check();
            counters[of.depth] = at;
            for &item in &of.items {
                self.item(item, counters)?;
            }
        }
        counters[of.depth] = 0;
        Ok(())
    }

    /// All iterations of blocks of one loop, with the counters of the loops around their own chain.
    fn lines(&mut self, blocks: &[usize], counters: &LoopCounters) -> Result<(), EngineError> {
        let (program, unit) = (self.program, self.unit);
        let depth = program.blocks[blocks[0]].path.len();
        let Some(sweep) = unit.sweeps[blocks[0]] else {
            return Ok(());
        };
        if let (SweepLines::Along(along), true) = (sweep.lines, sweep.first + 1 == depth) {
            let mut line = IterationLine {
                base: *counters,
                direction: sweep.lines.direction(depth),
            };
            line.base[along] = 0;
            let range = self.over[along];
            return blocks.iter().try_for_each(|&block| self.line(block, &line, range));
        }
        let mut whole = self.over;
        for (range, &at) in whole.iter_mut().zip(counters).take(sweep.first) {
            *range = CounterRange { low: at, high: at };
        }
        for range in &mut whole[depth..] {
            *range = CounterRange::default();
        }
        let mut hull: Option<CounterBox> = None;
        for &block in blocks {
            let mut over = whole;
            if tighten(&mut over, &program.blocks[block].constraints) && tighten(&mut over, &self.within[block]) {
                enclose(&mut hull, over);
            }
        }
        let Some(over) = hull else {
            return Ok(());
        };
        let mut line = IterationLine {
            base: *counters,
            direction: sweep.lines.direction(depth),
        };
        match sweep.lines {
            SweepLines::Single => {
                let all: Vec<usize> = (sweep.first..depth).collect();
                self.each_line(blocks, &all, &over, &mut line, CounterRange::default())
            }
            SweepLines::Along(along) => {
                line.base[along] = 0;
                let beside: Vec<usize> = (sweep.first..depth).filter(|&at| at != along).collect();
                self.each_line(blocks, &beside, &over, &mut line, over[along])
            }
            SweepLines::Across(ahead) => {
                let (outer, inner) = (over[depth - 2], over[depth - 1]);
                line.base[depth - 2] = 0;
                // The sum stands in the place of the last counter.
                let mut sums = over;
                sums[depth - 1] = CounterRange {
                    low: ahead * outer.low + inner.low,
                    high: ahead * outer.high + inner.high,
                };
                let beside: Vec<usize> = (sweep.first..depth - 2).chain([depth - 1]).collect();
                self.each_line(blocks, &beside, &sums, &mut line, outer)
            }
        }
    }

    /// Lines for all counters of the loops `beside`, the outermost first.
    fn each_line(
        &mut self,
        blocks: &[usize],
        beside: &[usize],
        over: &CounterBox,
        line: &mut IterationLine,
        along: CounterRange,
    ) -> Result<(), EngineError> {
        let Some((&outer, inner)) = beside.split_first() else {
            // Each block goes through the whole line before the next one does.
            return blocks.iter().try_for_each(|&block| self.line(block, line, along));
        };
        if let ([], [block]) = (inner, blocks) {
            if self.unit.kernels[*block].is_some() && self.is_even(*block, line, outer) {
                return self.lines_together(*block, line, over[outer], outer, along);
            }
        }
        for at in over[outer].low..=over[outer].high {
            cancel::check();
            line.base[outer] = at;
            self.each_line(blocks, inner, over, line, along)?;
        }
        Ok(())
    }

    /// Whether lines that follow each other along a loop have the same iterations, or none.
    fn is_even(&self, block: usize, line: &IterationLine, outer: usize) -> bool {
        let constraints = self.program.blocks[block].constraints.iter().chain(&self.within[block]);
        constraints
            .into_iter()
            .all(|constraint| constraint.coefficients[outer] == 0 || constraint.along(&line.direction) == 0)
    }

    /// Lines of a compiled block that have the same iterations: their elements are found once for as many as lie in one tile.
    fn lines_together(
        &mut self,
        number: usize,
        line: &mut IterationLine,
        mut lines: CounterRange,
        outer: usize,
        along: CounterRange,
    ) -> Result<(), EngineError> {
        let block = &self.program.blocks[number];
        line.base[outer] = 0;
        for constraint in block.constraints.iter().chain(&self.within[number]) {
            if constraint.coefficients[outer] != 0 {
                line.clip(&mut lines, constraint.at(&line.base), constraint.coefficients[outer]);
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        line.base[outer] = lines.low;
        let range = self.clipped(number, line, along);
        while !lines.is_empty() && !range.is_empty() {
            cancel::check();
            line.base[outer] = lines.low;
            let at = line.at(range.low);
            let mut span = LineSpan {
                count: range.length(),
                lines: lines.length(),
                outer,
            };
            self.place_all(block, &at, &line.direction, &mut span)?;
            if span.count == range.length() {
                self.compiled(number, &at, &line.direction, span)?;
                lines.low += span.lines;
            } else {
                self.line(number, line, range)?;
                lines.low += 1;
            }
        }
        Ok(())
    }

    /// The part of a line that bounds and guards allow.
    fn clipped(&self, number: usize, line: &IterationLine, mut range: CounterRange) -> CounterRange {
        let block = &self.program.blocks[number];
        for (depth, of) in self.over.iter().enumerate().take(block.path.len()) {
            let (base, along) = (line.base[depth], line.direction[depth]);
            line.clip(&mut range, base - of.low, along);
            line.clip(&mut range, of.high - base, -along);
        }
        for constraint in block.constraints.iter().chain(&self.within[number]) {
            line.clip(&mut range, constraint.at(&line.base), constraint.along(&line.direction));
        }
        range
    }

    /// Finds all elements of a block.
    fn place_all(
        &mut self,
        block: &LoopBlock,
        at: &LoopCounters,
        direction: &LoopCounters,
        span: &mut LineSpan,
    ) -> Result<(), EngineError> {
        self.placed.clear();
        for step in &block.steps {
            for element in step.reads().chain(step.written()) {
                let placed = self.places.place(self.program, element, at, direction, span)?;
                self.placed.push(placed);
            }
        }
        Ok(())
    }

    /// The iterations of a line that bounds and guards allow, in pieces.
    fn line(&mut self, number: usize, line: &IterationLine, range: CounterRange) -> Result<(), EngineError> {
        let block = &self.program.blocks[number];
        let is_compiled = self.unit.kernels[number].is_some();
        let mut range = self.clipped(number, line, range);
        while !range.is_empty() {
            let at = line.at(range.low);
            let most = if is_compiled { i64::MAX } else { STRIP as i64 };
            let mut span = LineSpan::of(range.length().min(most));
            self.place_all(block, &at, &line.direction, &mut span)?;
            match is_compiled {
                true => self.compiled(number, &at, &line.direction, span)?,
                false => self.piece(block, &at, &line.direction, span.count as usize)?,
            }
            range.low += span.count;
        }
        Ok(())
    }

    /// Runs a compiled block for lines whose elements lie in one tile of each array.
    fn compiled(
        &mut self,
        number: usize,
        at: &LoopCounters,
        direction: &LoopCounters,
        span: LineSpan,
    ) -> Result<(), EngineError> {
        let block = &self.program.blocks[number];
        let Some(kernel) = self.unit.kernels[number].as_deref() else {
            return Ok(());
        };
        let elements = block.steps.iter().flat_map(|step| step.reads().chain(step.written()));
        // Words, and by how much those that change do so from line to line.
        self.words.clear();
        self.word_steps.clear();
        let (count, lines) = (span.count as isize, span.lines as isize);
        for (of, element) in self.placed.iter().zip(elements) {
            let item = self.program.arrays[element.array].dtype.size();
            let (address, bytes) = match of.is_written {
                true => (
                    self.tiles.writes[of.tile].as_mut_ptr() as usize,
                    self.tiles.writes[of.tile].len(),
                ),
                false => (
                    self.tiles.reads[of.tile].as_ptr() as usize,
                    self.tiles.reads[of.tile].len(),
                ),
            };
            let ends = [0, count - 1].map(|at| [0, lines - 1].map(|line| at * of.stride + line * of.line_stride));
            let mut ends = ends.iter().flatten().map(|end| of.offset as isize + end);
            if !ends.all(|end| (end as usize) < bytes / item) {
                return Err(EngineError::Internal("loops: a line leaves its tile".into()));
            }
            self.words
                .extend([(address + of.offset * item) as i64, of.stride as i64]);
            self.word_steps.extend([(of.line_stride * item as isize) as i64, 0]);
        }
        for leaf in block.steps.iter().flat_map(|step| &step.leaves) {
            if let Leaf::Index(index) = leaf {
                self.words.extend([index.at(at), index.along(direction)]);
                self.word_steps.extend([index.coefficients[span.outer], 0]);
            }
        }
        for _ in 0..span.lines {
            kernel.run(span.count as usize, &self.words)?;
            for (word, step) in self.words.iter_mut().zip(&self.word_steps) {
                *word += step;
            }
        }
        Ok(())
    }

    /// Runs the steps of a block for iterations whose elements lie in one tile of each array.
    fn piece(
        &mut self,
        block: &LoopBlock,
        at: &LoopCounters,
        direction: &LoopCounters,
        count: usize,
    ) -> Result<(), EngineError> {
        let mut first = 0;
        for step in &block.steps {
            let elements = step.reads().count() + usize::from(step.written().is_some());
            let placed: Vec<PlacedElement> = self.placed[first..first + elements].to_vec();
            first += elements;
            self.compute(step, &placed, at, direction, count)?;
            let target = placed.last().copied();
            let bytes = count * step.item;
            let TaskStrips { kept, others, .. } = &mut self.strips;
            match (&step.target, target) {
                (StepTarget::Register(register), _) => kept[*register][..bytes].copy_from_slice(&others[0][..bytes]),
                (StepTarget::Store(_), Some(target)) => {
                    put(step.item, count, others[0], self.tiles.writes[target.tile], target);
                }
                (StepTarget::Update(_, _, kernel), Some(target)) => {
                    update(
                        *kernel,
                        step.item,
                        count,
                        others,
                        self.tiles.writes[target.tile],
                        target,
                    );
                }
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Computes the value of a step into the first of the other strips.
    fn compute(
        &mut self,
        step: &BlockStep,
        placed: &[PlacedElement],
        at: &LoopCounters,
        direction: &LoopCounters,
        count: usize,
    ) -> Result<(), EngineError> {
        let missing = || EngineError::Internal("loops: a call is not compiled".into());
        let value = step.value.as_deref().ok_or_else(missing)?;
        let TaskStrips {
            registers,
            kept,
            indices,
            others,
        } = &mut self.strips;
        let mut filled = 0;
        for leaf in &step.leaves {
            if let Leaf::Index(index) = leaf {
                let (mut number, along) = (index.at(at), index.along(direction));
                for place in indices[filled].chunks_exact_mut(8).take(count) {
                    place.copy_from_slice(&number.to_ne_bytes());
                    number += along;
                }
                filled += 1;
            }
        }
        // The place of each leaf among the elements and among the numbers of its step.
        let before = |leaf: usize, is: fn(&Leaf) -> bool| step.leaves[..leaf].iter().filter(|leaf| is(leaf)).count();
        let inputs = value.inputs.iter().map(|&(leaf, item)| match &step.leaves[leaf] {
            Leaf::Element(_) => {
                let of = placed[before(leaf, |leaf| matches!(leaf, Leaf::Element(_)))];
                let data: &[u8] = match of.is_written {
                    true => self.tiles.writes[of.tile],
                    false => self.tiles.reads[of.tile],
                };
                FusedInput {
                    offset: of.offset,
                    ..FusedInput::new(data, item, of.stride)
                }
            }
            Leaf::Index(_) => {
                let number = before(leaf, |leaf| matches!(leaf, Leaf::Index(_)));
                FusedInput::new(&*indices[number], item, 1)
            }
            Leaf::Register(register) => FusedInput::new(&*kept[*register], item, 1),
        });
        let inputs: Vec<FusedInput<'_>> = inputs.collect();
        strips::run(value, &[count], inputs, registers, &mut others[0][..count * step.item])
    }
}

/// Takes a strip of values, the first of three, into elements: each into its own, or one after the other into one.
fn update(
    kernel: BinaryKernel,
    item: usize,
    count: usize,
    strips: &mut [&mut [u8]; OTHERS],
    tile: &mut [u8],
    target: PlacedElement,
) {
    let [values, other, result] = strips;
    let left = if target.stride == 0 { 1 } else { count };
    let bytes = left * item;
    copy_strided(
        item,
        &[left],
        StridedBytes::new(tile, target.offset, &[target.stride]),
        StridedBytesMut::new(other, 0, &[1]),
    );
    if left < count {
        for value in values[..count * item].chunks_exact(item) {
            kernel(&other[..item], value, &mut result[..item]);
            std::mem::swap(other, result);
        }
        std::mem::swap(other, result);
    } else {
        kernel(&other[..bytes], &values[..bytes], &mut result[..bytes]);
    }
    put(item, left, result, tile, target);
}
