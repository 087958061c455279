//! Blocks compiled for lines: what a compiler is told of one, and how what it makes is called.

use std::fmt::Debug;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::Binary;

use super::affine::LoopCounters;
use super::formula::LineFormula;
use super::program::{ArrayElement, Leaf, LoopBlock, LoopProgram, StepTarget};
use crate::EngineError;

/// An element that a block touches.
#[derive(Clone, Debug)]
pub struct LineElement {
    pub array: usize,
    pub dtype: DType,
    /// Whether the block writes the array somewhere.
    pub is_written: bool,
    /// Elements to that of the next iteration, where it is the same in all tiles.
    pub stride: Option<i64>,
    /// The element that the iteration before has written to this place, by its number, where nothing else writes the array.
    pub carried: Option<usize>,
}

/// Where the value of a step goes: elements by their number among those of the block.
#[derive(Clone, Copy, Debug)]
pub enum LineTarget {
    Register(usize),
    Store(usize),
    Update(usize, Binary),
}

/// A part of a value: elements and affine numbers by their numbers among those of the block.
#[derive(Clone, Copy, Debug)]
pub enum LineLeaf {
    Element(usize),
    Index(usize),
    Register(usize),
}

#[derive(Clone, Debug)]
pub struct LineStep<'a> {
    pub target: LineTarget,
    pub leaves: Vec<LineLeaf>,
    pub formula: &'a LineFormula,
}

/// A block as a compiler is told of it: the steps of each iteration, in order, one iteration after the other.
#[derive(Clone, Debug)]
pub struct LineBlock<'a> {
    pub elements: Vec<LineElement>,
    pub steps: Vec<LineStep<'a>>,
    /// The work of the block altogether where it is not compiled, at most: elements that lines go through.
    pub effort: f64,
}

/// A compiled block.
///
/// Words are the address of each element in the first iteration and its stride in elements, in the order of the block, then
/// of each affine number its first value and its step.
pub trait LineKernel: Debug + Send + Sync {
    /// # Errors
    /// An exception of a function of the user.
    fn run(&self, count: usize, words: &[i64]) -> Result<(), EngineError>;
}

pub type SharedKernel = Arc<dyn LineKernel>;

/// Makes kernels of blocks.
pub trait LineCompiler {
    /// # Errors
    /// Errors of the compiler. Blocks that the compiler does not take give nothing.
    fn compile(&self, block: &LineBlock<'_>) -> Result<Option<SharedKernel>, EngineError>;
}

/// The stride of an element where its array's tiles, those at the end too, have the same.
fn known_stride(element: &ArrayElement, direction: &LoopCounters) -> Option<i64> {
    let (last, others) = element.subscripts.split_last()?;
    let is_along_last = others.iter().all(|subscript| subscript.along(direction) == 0);
    is_along_last.then(|| last.along(direction))
}

/// Whether an element is in each iteration the one that another is in the iteration before.
fn is_behind(element: &ArrayElement, other: &ArrayElement, direction: &LoopCounters) -> bool {
    let mut pairs = element.subscripts.iter().zip(&other.subscripts);
    let is_moving = other.subscripts.iter().any(|subscript| subscript.along(direction) != 0);
    is_moving
        && element.array == other.array
        && pairs.all(|(a, b)| a.coefficients == b.coefficients && a.constant == b.constant - b.along(direction))
}

/// A block along lines of a direction; nothing where a value is no formula.
pub(super) fn line_block<'a>(
    program: &LoopProgram,
    block: &'a LoopBlock,
    direction: &LoopCounters,
    effort: f64,
) -> Option<LineBlock<'a>> {
    let written: Vec<usize> = block
        .steps
        .iter()
        .filter_map(|step| Some(step.written()?.array))
        .collect();
    let (mut elements, mut places, mut indices) = (vec![], vec![], 0);
    let mut steps = vec![];
    for step in &block.steps {
        let mut add = |element: &'a ArrayElement| {
            elements.push(LineElement {
                array: element.array,
                dtype: program.arrays[element.array].dtype,
                is_written: written.contains(&element.array),
                stride: known_stride(element, direction),
                carried: None,
            });
            places.push(element);
            elements.len() - 1
        };
        let mut leaves = vec![];
        for leaf in &step.leaves {
            leaves.push(match leaf {
                Leaf::Element(element) => LineLeaf::Element(add(element)),
                Leaf::Register(register) => LineLeaf::Register(*register),
                Leaf::Index(_) => {
                    indices += 1;
                    LineLeaf::Index(indices - 1)
                }
            });
        }
        let target = match &step.target {
            StepTarget::Register(register) => LineTarget::Register(*register),
            StepTarget::Store(element) => LineTarget::Store(add(element)),
            StepTarget::Update(element, operation, _) => LineTarget::Update(add(element), *operation),
        };
        steps.push(LineStep {
            target,
            leaves,
            formula: step.formula.as_ref()?,
        });
    }
    let targets = steps.iter().filter_map(|step| match step.target {
        LineTarget::Register(_) => None,
        LineTarget::Store(target) | LineTarget::Update(target, _) => Some(target),
    });
    for target in targets {
        let array = elements[target].array;
        if written.iter().filter(|&&other| other == array).count() > 1 {
            continue;
        }
        for (element, place) in elements.iter_mut().zip(&places) {
            if is_behind(place, places[target], direction) {
                element.carried = Some(target);
            }
        }
    }
    Some(LineBlock {
        elements,
        steps,
        effort,
    })
}
