//! How a task goes through the iterations of a block: lines of iterations that no dependence joins are taken at once.

use super::affine::{LoopCounters, DEPTH_MAX};
use super::dependences::{dependences, Dependence};
use super::program::{ArrayElement, LoopItem, LoopProgram};

/// Cost of a line beside its iterations, in elements.
const LINE_COST: f64 = 150.0;
/// Cost of an element that does not lie beside the one before, against one that does.
const FAR_COST: f64 = 4.0;
/// Steps ahead that lines across two loops are tried with.
const AHEAD_MAX: i64 = 3;

/// The lines of a block. Loops from `first` on, which are around this block and its neighbours alone, are gone through in another order than their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockSweep {
    pub first: usize,
    pub lines: SweepLines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SweepLines {
    /// Iterations one by one, in the order of the loops.
    Single,
    /// All iterations of the loop at this depth.
    Along(usize),
    /// Iterations of the last two loops that have the same sum of the last counter and so many times the one before
    /// (Lamport, The parallel execution of DO loops, CACM 17 (1974)).
    Across(i64),
}

impl SweepLines {
    /// The step from an iteration of a line to the next, among loops of which the last is at `depth - 1`.
    pub fn direction(self, depth: usize) -> LoopCounters {
        let mut direction = [0; DEPTH_MAX];
        match self {
            SweepLines::Single => {}
            SweepLines::Along(along) => direction[along] = 1,
            SweepLines::Across(ahead) => {
                direction[depth - 2] = 1;
                direction[depth - 1] = -ahead;
            }
        }
        direction
    }
}

/// Whether steps of a line keep a dependence that no loop beside the line's carries: the earlier step has gone through the whole
/// line before the later one begins.
fn is_kept_by_steps(dependence: &Dependence) -> bool {
    let is_same = dependence.from == dependence.to;
    dependence.from < dependence.to || is_same && (dependence.is_read_first || dependence.is_between_updates)
}

/// Whether lines keep all dependences; `of` gives distances along what is gone through one after the other, outermost first.
fn keeps(found: &[Dependence], of: impl Fn(&Dependence) -> Vec<Option<i128>>) -> bool {
    found.iter().all(|dependence| {
        for least in of(dependence) {
            match least {
                Some(least) if least > 0 => return true,
                Some(0) => {}
                _ => return false,
            }
        }
        is_kept_by_steps(dependence)
    })
}

/// The blocks of a chain of loops with nothing but blocks in the last.
pub(super) fn blocks_alone_below(program: &LoopProgram, item: LoopItem) -> Option<Vec<usize>> {
    let of = match item {
        LoopItem::Block(block) => return Some(vec![block]),
        LoopItem::Loop(of) => of,
    };
    match program.loops[of].items[..] {
        [next @ LoopItem::Loop(_)] => blocks_alone_below(program, next),
        ref items => items
            .iter()
            .map(|item| match item {
                LoopItem::Block(block) => Some(*block),
                LoopItem::Loop(_) => None,
            })
            .collect(),
    }
}

/// The lines of a block whose first loops, up to `exact`, are gone through one iteration at a time. Blocks beside it in its last loop
/// have the same.
pub(super) fn sweep(program: &LoopProgram, number: usize, exact: usize, lengths: &[f64]) -> BlockSweep {
    let path = &program.blocks[number].path;
    let depth = path.len();
    // The longest chain of loops in which there is nothing but blocks of the last.
    let is_alone = |at: &usize| blocks_alone_below(program, LoopItem::Loop(path[*at])).is_some();
    let first = (exact..depth).rev().take_while(is_alone).last().unwrap_or(depth);
    let single = BlockSweep {
        first: depth,
        lines: SweepLines::Single,
    };
    if first == depth {
        return single;
    }
    let Some(blocks) = blocks_alone_below(program, LoopItem::Loop(path[first])) else {
        return single;
    };
    let found = dependences(program, &blocks, first);
    let mut tried: Vec<SweepLines> = (first..depth)
        .filter(|&along| {
            keeps(&found, |dependence| {
                let beside = (first..depth).filter(|&at| at != along);
                beside.map(|at| dependence.distances[at].0).collect()
            })
        })
        .map(SweepLines::Along)
        .collect();
    if depth - first >= 2 {
        let ahead = (1..=AHEAD_MAX).find(|&ahead| {
            keeps(&found, |dependence| {
                let [outer, inner] = [depth - 2, depth - 1].map(|at| dependence.distances[at].0);
                let sum = outer.zip(inner).map(|(outer, inner)| i128::from(ahead) * outer + inner);
                let before = (first..depth - 2).map(|at| dependence.distances[at].0);
                before.chain([sum]).collect()
            })
        });
        tried.extend(ahead.map(SweepLines::Across));
    }
    let cost = |lines: &SweepLines| {
        blocks
            .iter()
            .map(|&block| cost(program, block, *lines, lengths))
            .sum::<f64>()
    };
    let least = tried.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    BlockSweep {
        first,
        lines: least.unwrap_or(SweepLines::Single),
    }
}

/// The cost of an iteration, in elements.
fn cost(program: &LoopProgram, number: usize, lines: SweepLines, lengths: &[f64]) -> f64 {
    let block = &program.blocks[number];
    let depth = block.path.len();
    let direction = lines.direction(depth);
    let length = match lines {
        SweepLines::Single => 1.0,
        SweepLines::Along(along) => lengths[along],
        SweepLines::Across(ahead) => lengths[depth - 2].min(lengths[depth - 1] / ahead as f64),
    };
    let of = |element: &ArrayElement| match stride(program, element, &direction) {
        0 => 0.0,
        1 | -1 => 1.0,
        _ => FAR_COST,
    };
    let steps = block.steps.iter();
    let elements = steps.flat_map(|step| step.reads().chain(step.written()));
    elements.map(of).sum::<f64>() + LINE_COST * block.steps.len() as f64 / length.max(1.0)
}

/// Elements between those of an iteration of a line and of the next, within a tile.
pub(super) fn stride(program: &LoopProgram, element: &ArrayElement, direction: &LoopCounters) -> i64 {
    let tile = &program.arrays[element.array].tile;
    let mut stride = 0;
    let mut row = 1;
    for (subscript, &length) in element.subscripts.iter().zip(tile).rev() {
        stride += subscript.along(direction) * row;
        row *= length as i64;
    }
    stride
}
