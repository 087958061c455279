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

/// A chain of loops, from the depth `first` on, with nothing but blocks in its last: they have the same lines.
pub(super) struct BlockChain {
    pub first: usize,
    pub depth: usize,
    pub blocks: Vec<usize>,
}

/// The longest chain around a block of which no loop is among the first so many; nothing where other loops are beside it.
pub(super) fn chain_of(program: &LoopProgram, number: usize, exact: usize) -> Option<BlockChain> {
    let path = &program.blocks[number].path;
    let below = |at: &usize| blocks_alone_below(program, LoopItem::Loop(path[*at]));
    let first = (exact..path.len()).rev().take_while(|at| below(at).is_some()).last()?;
    Some(BlockChain {
        first,
        depth: path.len(),
        blocks: below(&first)?,
    })
}

/// The lines of the blocks of a chain: those of least cost that keep dependences. With `compiled`, each block takes the iterations
/// of a line one after the other, and a line in the order of the loops is better than one that is scattered.
pub(super) fn lines_of(
    program: &LoopProgram,
    chain: &BlockChain,
    found: &[Dependence],
    lengths: &[f64],
    compiled: bool,
) -> SweepLines {
    let BlockChain { first, depth, .. } = *chain;
    let mut tried: Vec<SweepLines> = (first..depth)
        .filter(|&along| {
            keeps(found, |dependence| {
                let beside = (first..depth).filter(|&at| at != along);
                beside.map(|at| dependence.distances[at].0).collect()
            })
        })
        .map(SweepLines::Along)
        .collect();
    if depth - first >= 2 && !compiled {
        let ahead = (1..=AHEAD_MAX).find(|&ahead| {
            keeps(found, |dependence| {
                let [outer, inner] = [depth - 2, depth - 1].map(|at| dependence.distances[at].0);
                let sum = outer.zip(inner).map(|(outer, inner)| i128::from(ahead) * outer + inner);
                let before = (first..depth - 2).map(|at| dependence.distances[at].0);
                before.chain([sum]).collect()
            })
        });
        tried.extend(ahead.map(SweepLines::Across));
    }
    if compiled && !tried.contains(&SweepLines::Along(depth - 1)) && keeps_block_by_block(found, depth - 1) {
        tried.push(SweepLines::Along(depth - 1));
    }
    let cost = |lines: &SweepLines| {
        chain
            .blocks
            .iter()
            .map(|&block| cost(program, block, *lines, lengths))
            .sum::<f64>()
    };
    let least = tried.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    least.unwrap_or(SweepLines::Single)
}

/// Whether each block may go through all iterations of the last loop, in order, before the next block does.
fn keeps_block_by_block(found: &[Dependence], last: usize) -> bool {
    let is_of_line = |dependence: &Dependence| {
        dependence.distances[..last]
            .iter()
            .all(|&(low, high)| low.is_none_or(|low| low <= 0) && high.is_none_or(|high| high >= 0))
    };
    let turned = |dependence: &&Dependence| dependence.from.block > dependence.to.block;
    !found.iter().filter(turned).any(is_of_line)
}

/// Dependences among the blocks of a chain, within its loops.
pub(super) fn dependences_of(program: &LoopProgram, chain: &BlockChain) -> Vec<Dependence> {
    dependences(program, &chain.blocks, chain.first)
}

/// The cost of all iterations of a block, in elements.
pub(super) fn effort(program: &LoopProgram, number: usize, lines: SweepLines, lengths: &[f64]) -> f64 {
    let depth = program.blocks[number].path.len();
    lengths[..depth].iter().product::<f64>() * cost(program, number, lines, lengths)
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
