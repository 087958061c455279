//! Loop programs as they are handed over: nests of loops, blocks of steps in them, subscripts affine in the counters.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{binary_kernel, Binary, BinaryKernel};

use super::affine::{Affine, CounterBox, CounterRange, DEPTH_MAX};
use super::call::{SliceCall, SliceFunction};
use super::formula::LineFormula;
use super::polyhedron::{Extremes, Polyhedron};
use crate::expr::{Expr, Op};
use crate::strips::{self, Fused};
use crate::{ops, EngineError};

/// Dimensions of an array at most.
const RANK_MAX: usize = 16;
/// Loops, blocks, steps and leaves of a program at most, each.
const PARTS_MAX: usize = 1 << 12;

/// An item of a body: a loop or a block, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopItem {
    Loop(usize),
    Block(usize),
}

/// A loop, whose counter goes up by one from its first value.
#[derive(Clone, Debug)]
pub(super) struct NestLoop {
    pub depth: usize,
    /// The first value of the counter, which those of loops around it give.
    pub first: Affine,
    /// At least 0 while the loop runs: its own counter makes it less.
    pub bound: Affine,
    pub items: Vec<LoopItem>,
}

impl NestLoop {
    /// Its first and its last counter, where they follow from those around it.
    pub fn ends(&self) -> [Option<Affine>; 2] {
        let mut last = self.bound;
        let by = std::mem::take(&mut last.coefficients[self.depth]);
        [Some(self.first), (by == -1).then_some(last)]
    }

    /// Its first counter and its bound, as far as loops around give them.
    pub fn bounds_of_others(&self) -> [Affine; 2] {
        let mut bound = self.bound;
        bound.coefficients[self.depth] = 0;
        [self.first, bound]
    }

    /// Its counters within a box of those around it.
    pub fn counters(&self, over: &CounterBox) -> CounterRange {
        let mut around = *over;
        around[self.depth] = CounterRange::default();
        let by = -self.bound.coefficients[self.depth];
        CounterRange {
            low: self.first.range(&around).low,
            high: self.bound.range(&around).high.div_euclid(by),
        }
    }
}

/// An element of an array, by affine subscripts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArrayElement {
    pub array: usize,
    pub subscripts: Vec<Affine>,
}

/// Where the value of a step goes.
#[derive(Clone, Debug)]
pub(super) enum StepTarget {
    Register(usize),
    Store(ArrayElement),
    /// The element takes in the value by an operation.
    Update(ArrayElement, Binary, BinaryKernel),
}

/// A part of a value.
#[derive(Clone, Debug)]
pub(super) enum Leaf {
    Element(ArrayElement),
    /// A number that follows from the counters.
    Index(Affine),
    Register(usize),
}

#[derive(Clone, Debug)]
pub(super) struct BlockStep {
    pub target: StepTarget,
    pub leaves: Vec<Leaf>,
    /// Nothing where it calls functions of the user: such a step runs compiled alone.
    pub value: Option<Arc<Fused>>,
    /// The value as a compiler takes it, if one can.
    pub formula: Option<LineFormula>,
    /// Bytes of one element of the value.
    pub item: usize,
}

impl BlockStep {
    /// The elements that it reads besides the one that it updates.
    pub fn reads(&self) -> impl Iterator<Item = &ArrayElement> + Clone {
        self.leaves.iter().filter_map(|leaf| match leaf {
            Leaf::Element(element) => Some(element),
            _ => None,
        })
    }

    pub fn written(&self) -> Option<&ArrayElement> {
        match &self.target {
            StepTarget::Register(_) => None,
            StepTarget::Store(element) | StepTarget::Update(element, _, _) => Some(element),
        }
    }
}

/// Steps that run one after the other for each iteration of the loops around them.
#[derive(Clone, Debug)]
pub(super) struct LoopBlock {
    /// Loops around it, the outermost first.
    pub path: Vec<usize>,
    pub registers: usize,
    pub steps: Vec<BlockStep>,
    /// The bounds of its loops and its guards: each is at least 0.
    pub constraints: Vec<Affine>,
    /// The function that its one step calls with whole slices, if it is such a call.
    pub call: Option<SliceCall>,
}

/// A program of loops over arrays.
#[derive(Clone, Debug)]
pub(super) struct LoopProgram {
    pub arrays: Vec<ArrayShape>,
    pub loops: Vec<NestLoop>,
    pub blocks: Vec<LoopBlock>,
    pub items: Vec<LoopItem>,
}

/// An array of a program, and whether it is written.
#[derive(Clone, Debug)]
pub(super) struct ArrayShape {
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub tile: Vec<u64>,
    pub is_written: bool,
}

/// Values of a program with their stand-ins, in the order of its words, and functions, which words have by number.
#[derive(Clone, Copy, Debug)]
pub struct LoopValues<'a> {
    pub nodes: &'a [Expr],
    pub functions: &'a [Arc<dyn SliceFunction>],
}

/// Words of a program, and the nodes of its values.
struct Reading<'a> {
    words: std::slice::Iter<'a, i64>,
    nodes: std::slice::Iter<'a, Expr>,
    functions: &'a [Arc<dyn SliceFunction>],
    inputs: &'a [Expr],
    loops: Vec<NestLoop>,
    blocks: Vec<LoopBlock>,
    steps: usize,
    /// By how much the counters of the loops around are more than words have them, which begin with 0.
    shifts: Vec<Affine>,
}

fn refusal(reason: &str) -> EngineError {
    EngineError::Argument(format!("loops: {reason}"))
}

impl LoopProgram {
    /// The program that words tell, over arrays.
    ///
    /// # Errors
    /// Words that tell none, subscripts beyond their arrays, values that are not element-wise.
    pub fn read(words: &[i64], values: LoopValues<'_>, inputs: &[Expr]) -> Result<LoopProgram, EngineError> {
        let mut reading = Reading {
            words: words.iter(),
            nodes: values.nodes.iter(),
            functions: values.functions,
            inputs,
            loops: vec![],
            blocks: vec![],
            steps: 0,
            shifts: vec![],
        };
        if reading.count(PARTS_MAX)? != inputs.len() {
            return Err(refusal("arrays are not as many as inputs"));
        }
        let items = reading.items(&mut vec![])?;
        if reading.words.next().is_some() || reading.nodes.next().is_some() {
            return Err(refusal("more words than a program has"));
        }
        let mut arrays: Vec<ArrayShape> = inputs
            .iter()
            .map(|input| ArrayShape {
                shape: input.shape.clone(),
                dtype: input.dtype,
                tile: input.tile.clone(),
                is_written: false,
            })
            .collect();
        for step in reading.blocks.iter().flat_map(|block| &block.steps) {
            if let Some(element) = step.written() {
                arrays[element.array].is_written = true;
            }
        }
        let program = LoopProgram {
            arrays,
            loops: reading.loops,
            blocks: reading.blocks,
            items,
        };
        program.check()?;
        program.check_calls()?;
        Ok(program)
    }

    /// The blocks of an item, in the order of the text.
    pub fn blocks_below(&self, item: LoopItem) -> Vec<usize> {
        match item {
            LoopItem::Block(block) => vec![block],
            LoopItem::Loop(of) => {
                let items = &self.loops[of].items;
                items.iter().flat_map(|&item| self.blocks_below(item)).collect()
            }
        }
    }

    /// The block that a loop goes along the slices of, which its function takes whole.
    pub fn called_along(&self, item: LoopItem) -> Option<usize> {
        let LoopItem::Loop(of) = item else { return None };
        let mut below = item;
        let block = loop {
            below = match below {
                LoopItem::Block(block) => break block,
                LoopItem::Loop(of) => match self.loops[of].items[..] {
                    [next] => next,
                    _ => return None,
                },
            };
        };
        let call = self.blocks[block].call.as_ref()?;
        (self.loops[of].depth >= call.first).then_some(block)
    }

    /// Loops along slices have their call alone.
    fn check_calls(&self) -> Result<(), EngineError> {
        let mut firsts = self
            .blocks
            .iter()
            .filter_map(|block| Some(block.path[block.call.as_ref()?.first]));
        match firsts.all(|first| self.called_along(LoopItem::Loop(first)).is_some()) {
            true => Ok(()),
            false => Err(refusal("a call of slices beside others in its loops")),
        }
    }

    /// The box of a block's counters; nothing where it never runs.
    ///
    /// # Errors
    /// Numbers too large to compute with.
    pub fn whole(&self, path: &[usize]) -> Result<Option<CounterBox>, EngineError> {
        let mut over = [CounterRange::default(); DEPTH_MAX];
        for &of in path {
            let of = &self.loops[of];
            if !of.bound.is_small(&over) || !of.first.is_small(&over) {
                return Err(refusal("a loop has more iterations than can be counted"));
            }
            over[of.depth] = of.counters(&over);
            if over[of.depth].is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(over))
    }

    /// Numbers are small, and no subscript is beyond its array where all loops are as long as they can be.
    fn check(&self) -> Result<(), EngineError> {
        for block in &self.blocks {
            let Some(mut over) = self.whole(&block.path)? else {
                continue;
            };
            let elements = block.steps.iter().flat_map(|step| step.reads().chain(step.written()));
            let subscripts = elements.clone().flat_map(|element| &element.subscripts);
            let indices = block
                .steps
                .iter()
                .flat_map(|step| &step.leaves)
                .filter_map(|leaf| match leaf {
                    Leaf::Index(index) => Some(index),
                    _ => None,
                });
            let numbers = subscripts.chain(&block.constraints).chain(indices);
            if !numbers.clone().all(|number| number.is_small(&over)) {
                return Err(refusal("subscripts larger than can be computed with"));
            }
            if !super::affine::tighten(&mut over, &block.constraints) {
                continue;
            }
            for element in elements {
                let shape = &self.arrays[element.array].shape;
                for (axis, (subscript, &length)) in element.subscripts.iter().zip(shape).enumerate() {
                    let mut range = subscript.range(&over);
                    if range.low < 0 || range.high >= length as i64 {
                        range = extremes(subscript, &block.constraints).unwrap_or(range);
                    }
                    if range.low < 0 || range.high >= length as i64 {
                        return Err(EngineError::Shape(format!(
                            "loops: subscripts from {} to {} along axis {axis} of array {}, which has {length} there",
                            range.low, range.high, element.array
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The least and the largest value of a number where constraints hold, if both are found.
fn extremes(of: &Affine, constraints: &[Affine]) -> Option<CounterRange> {
    let wide = |affine: &Affine| affine.coefficients.iter().map(|&by| by.into()).collect::<Vec<i128>>();
    let mut system = Polyhedron::of(DEPTH_MAX);
    for constraint in constraints {
        system.at_least_zero(wide(constraint), constraint.constant.into());
    }
    match system.extremes(&wide(of)) {
        Extremes::Infeasible => Some(CounterRange { low: 0, high: -1 }),
        Extremes::Between(low, high) => Some(CounterRange {
            low: i64::try_from(low?).ok()? + of.constant,
            high: i64::try_from(high?).ok()? + of.constant,
        }),
    }
}

impl Reading<'_> {
    fn word(&mut self) -> Result<i64, EngineError> {
        self.words.next().copied().ok_or_else(|| refusal("words end too early"))
    }

    fn count(&mut self, most: usize) -> Result<usize, EngineError> {
        let word = self.word()?;
        usize::try_from(word)
            .ok()
            .filter(|count| *count <= most)
            .ok_or_else(|| refusal("a count that cannot be"))
    }

    fn node(&mut self) -> Result<&Expr, EngineError> {
        self.nodes.next().ok_or_else(|| refusal("fewer nodes than values"))
    }

    fn affine(&mut self, depth: usize) -> Result<Affine, EngineError> {
        let mut affine = Affine {
            constant: self.word()?,
            ..Affine::default()
        };
        for _ in 0..self.count(DEPTH_MAX)? {
            let (at, by) = (self.count(DEPTH_MAX)?, self.word()?);
            if at >= depth {
                return Err(refusal("a counter of no loop around"));
            }
            affine.coefficients[at] = by;
        }
        let mut shifts = self.shifts.iter().take(depth).enumerate();
        let shifted = shifts.try_fold(affine, |sum, (at, shift)| sum.less(affine.coefficients[at], shift));
        let is_small = affine.has_small_words();
        let shifted = shifted.filter(|affine| is_small && affine.has_small_words());
        shifted.ok_or_else(|| refusal("numbers larger than can be computed with"))
    }

    fn items(&mut self, path: &mut Vec<usize>) -> Result<Vec<LoopItem>, EngineError> {
        let count = self.count(PARTS_MAX)?;
        let mut items = vec![];
        for _ in 0..count {
            items.push(match self.word()? {
                0 => self.nest(path)?,
                1 => self.block(path)?,
                2 => self.call(path)?,
                _ => return Err(refusal("an item that is neither loop nor block")),
            });
            if self.loops.len().max(self.blocks.len()).max(self.steps) > PARTS_MAX {
                return Err(refusal("a program with more than 4096 loops or steps"));
            }
        }
        Ok(items)
    }

    fn nest(&mut self, path: &mut Vec<usize>) -> Result<LoopItem, EngineError> {
        let depth = path.len();
        if depth == DEPTH_MAX {
            return Err(refusal("loops within each other are eight at most"));
        }
        let (first, mut bound) = (self.affine(depth)?, self.affine(depth)?);
        let divisor = self.word()?;
        if !(1..1 << 40).contains(&divisor) {
            return Err(refusal("a step of a loop that cannot be"));
        }
        let shifted = bound.less(-divisor, &first).filter(Affine::has_small_words);
        bound = shifted.ok_or_else(|| refusal("numbers larger than can be computed with"))?;
        bound.coefficients[depth] = -divisor;
        self.shifts.push(first);
        let number = self.loops.len();
        self.loops.push(NestLoop {
            depth,
            first,
            bound,
            items: vec![],
        });
        path.push(number);
        let items = self.items(path)?;
        path.pop();
        self.shifts.pop();
        self.loops[number].items = items;
        Ok(LoopItem::Loop(number))
    }

    fn block(&mut self, path: &[usize]) -> Result<LoopItem, EngineError> {
        let guards = self.guards(path.len())?;
        let registers = self.count(64)?;
        let steps = (0..self.count(PARTS_MAX)?).map(|_| self.step(path.len(), registers));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        Ok(self.block_of(path, guards, registers, steps, None))
    }

    fn guards(&mut self, depth: usize) -> Result<Vec<Affine>, EngineError> {
        (0..self.count(PARTS_MAX)?).map(|_| self.affine(depth)).collect()
    }

    /// A call of a function with whole slices: the last loops go along these.
    fn call(&mut self, path: &[usize]) -> Result<LoopItem, EngineError> {
        let guards = self.guards(path.len())?;
        let function = self.count(PARTS_MAX)?;
        let function = self.functions.get(function).cloned();
        let function = function.ok_or_else(|| refusal("a function that there is not"))?;
        let first = path
            .len()
            .checked_sub(self.count(DEPTH_MAX)?)
            .filter(|first| *first < path.len());
        let first = first.ok_or_else(|| refusal("a call of slices without loops along them"))?;
        let target = self.element(path.len())?;
        let leaves = self.leaves(path.len(), 0)?;
        let call = SliceCall { function, first };
        let bounds = path[first..].iter().flat_map(|&of| self.loops[of].bounds_of_others());
        let indices = leaves.iter().filter_map(|leaf| match leaf {
            Leaf::Index(index) => Some(*index),
            _ => None,
        });
        let numbers = guards.iter().copied().chain(bounds).chain(indices);
        let are_slices = leaves.iter().all(|leaf| match leaf {
            Leaf::Element(element) => call.is_slice(&element.subscripts),
            leaf => matches!(leaf, Leaf::Index(_)),
        });
        if !call.is_rectangular(numbers) || !are_slices || !call.is_slice(&target.subscripts) {
            return Err(refusal("a call of slices that are none"));
        }
        let step = BlockStep {
            item: self.inputs[target.array].dtype.size(),
            target: StepTarget::Store(target),
            leaves,
            value: None,
            formula: None,
        };
        Ok(self.block_of(path, guards, 0, vec![step], Some(call)))
    }

    fn block_of(
        &mut self,
        path: &[usize],
        guards: Vec<Affine>,
        registers: usize,
        steps: Vec<BlockStep>,
        call: Option<SliceCall>,
    ) -> LoopItem {
        self.steps += steps.len();
        let bounds = path.iter().map(|&of| self.loops[of].bound);
        let counters = path.iter().map(|&of| {
            let of = &self.loops[of];
            let mut least = Affine::default().less(1, &of.first).unwrap_or_default();
            least.coefficients[of.depth] = 1;
            least
        });
        let constraints = bounds.chain(counters).chain(guards).collect();
        self.blocks.push(LoopBlock {
            path: path.to_vec(),
            registers,
            steps,
            constraints,
            call,
        });
        LoopItem::Block(self.blocks.len() - 1)
    }

    fn element(&mut self, depth: usize) -> Result<ArrayElement, EngineError> {
        let array = self.count(PARTS_MAX)?;
        self.element_of(array, depth)
    }

    fn element_of(&mut self, array: usize, depth: usize) -> Result<ArrayElement, EngineError> {
        let rank = self.count(RANK_MAX)?;
        if self.inputs.get(array).is_none_or(|input| input.ndim() != rank) {
            return Err(refusal("subscripts are not as many as the axes of an array"));
        }
        let subscripts = (0..rank).map(|_| self.affine(depth)).collect::<Result<_, _>>()?;
        Ok(ArrayElement { array, subscripts })
    }

    fn register(&mut self, registers: usize) -> Result<usize, EngineError> {
        match self.count(64)? {
            register if register < registers => Ok(register),
            _ => Err(refusal("a register that there is not")),
        }
    }

    fn leaves(&mut self, depth: usize, registers: usize) -> Result<Vec<Leaf>, EngineError> {
        let leaves = (0..self.count(PARTS_MAX)?).map(|_| {
            Ok(match self.word()? {
                0 => Leaf::Element(self.element(depth)?),
                1 => Leaf::Index(self.affine(depth)?),
                2 => Leaf::Register(self.register(registers)?),
                _ => return Err(refusal("a leaf of no kind")),
            })
        });
        leaves.collect()
    }

    fn step(&mut self, depth: usize, registers: usize) -> Result<BlockStep, EngineError> {
        let target = match self.word()? {
            0 => (None, self.register(registers)?),
            1 => {
                let (array, update) = (self.count(PARTS_MAX)?, self.word()?);
                (Some((self.element_of(array, depth)?, update)), 0)
            }
            _ => return Err(refusal("a step that goes nowhere")),
        };
        let leaves = self.leaves(depth, registers)?;
        let value = self.node()?.clone();
        let stand_ins = (0..leaves.len()).map(|_| self.node().cloned());
        let stand_ins = stand_ins.collect::<Result<Vec<Expr>, _>>()?;
        let place = |node: &crate::expr::Node| stand_ins.iter().position(|leaf| leaf.id == node.id);
        let formula = LineFormula::of(&value, &place);
        let fused = match value.op {
            _ if formula.as_ref().is_some_and(LineFormula::has_calls) => None,
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_) => {
                Some(strips::compile(&value, &place)?)
            }
            _ => Some(strips::compile(&ops::copy_tiled(&value, value.tile.clone()), &place)?),
        };
        for (leaf, stand_in) in leaves.iter().zip(&stand_ins) {
            let dtype = match leaf {
                Leaf::Element(element) => self.inputs[element.array].dtype,
                Leaf::Index(_) => DType::I64,
                Leaf::Register(_) => continue,
            };
            if stand_in.dtype != dtype {
                return Err(refusal("a leaf of another type than its array"));
            }
        }
        let target = match target {
            (None, register) => StepTarget::Register(register),
            (Some((element, update)), _) => {
                if self.inputs[element.array].dtype != value.dtype {
                    return Err(refusal("a value of another type than its array"));
                }
                let operation = match update {
                    0 => None,
                    1 => Some(Binary::Add),
                    2 => Some(Binary::Multiply),
                    3 => Some(Binary::Minimum),
                    4 => Some(Binary::Maximum),
                    _ => return Err(refusal("an update of no kind")),
                };
                match operation {
                    None => StepTarget::Store(element),
                    Some(operation) => {
                        let kernel = binary_kernel(operation, value.dtype);
                        let refused = || refusal(&format!("no {} of {}", operation.name(), value.dtype));
                        StepTarget::Update(element, operation, kernel.ok_or_else(refused)?)
                    }
                }
            }
        };
        Ok(BlockStep {
            target,
            leaves,
            value: fused.map(Arc::new),
            formula,
            item: value.dtype.size(),
        })
    }
}
