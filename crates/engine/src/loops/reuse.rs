//! How often the nests of a program can use an element while it is in memory.

use super::affine::{LoopCounters, DEPTH_MAX};
use super::program::{ArrayElement, LoopBlock, LoopProgram};
use crate::task::{NestReuse, NestUse};

/// Iterations of outer loops that are gone through to count those of inner ones, at most.
const COUNTED_MAX: u32 = 1 << 16;

/// The uses of arrays in each block. Blocks with guards are passed over, since their iterations are not counted, and calls of
/// functions with slices, which are no iterations.
pub(super) fn nest_reuses(program: &LoopProgram) -> Vec<NestReuse> {
    let of = |block: &LoopBlock| {
        let has_guards = block.constraints.len() > 2 * block.path.len();
        let iterations = if has_guards || block.call.is_some() {
            None
        } else {
            iterations(program, block)
        }?;
        let elements = || block.steps.iter().flat_map(|step| step.reads().chain(step.written()));
        let mut uses: Vec<NestUse> = elements()
            .filter_map(|element| {
                Some(NestUse {
                    array: element.array,
                    loops: loops_of(element)?,
                })
            })
            .collect();
        uses.sort_unstable();
        uses.dedup();
        let bound = uses.iter().fold(0, |bound, by| bound | by.loops);
        let item = elements()
            .map(|element| program.arrays[element.array].dtype.size())
            .min()?;
        (bound == (1 << block.path.len()) - 1).then_some(NestReuse {
            iterations,
            uses,
            item: item as u64,
        })
    };
    program.blocks.iter().filter_map(of).collect()
}

/// The loops of an element's subscripts, as bits; nothing where one follows several.
fn loops_of(element: &ArrayElement) -> Option<u32> {
    element.subscripts.iter().try_fold(0, |loops, subscript| {
        let mut depths = (0..DEPTH_MAX).filter(|&depth| subscript.coefficients[depth] != 0);
        let own = depths.next().map_or(0, |depth| 1 << depth);
        depths.next().is_none().then_some(loops | own)
    })
}

/// The iterations of a block without guards, if they are counted fast enough.
fn iterations(program: &LoopProgram, block: &LoopBlock) -> Option<f64> {
    let mut counted = 0;
    from_depth(program, &block.path, &mut [0; DEPTH_MAX], &mut counted)
}

fn from_depth(program: &LoopProgram, path: &[usize], counters: &mut LoopCounters, counted: &mut u32) -> Option<f64> {
    let Some((&first, inner)) = path.split_first() else {
        return Some(1.0);
    };
    let of = &program.loops[first];
    let (low, by) = (of.first.at(counters), -of.bound.coefficients[of.depth]);
    counters[of.depth] = 0;
    let high = of.bound.at(counters).div_euclid(by);
    let is_seen = inner.iter().any(|&inner| {
        let inner = &program.loops[inner];
        inner.first.coefficients[of.depth] != 0 || inner.bound.coefficients[of.depth] != 0
    });
    if high < low {
        return Some(0.0);
    }
    if !is_seen {
        return Some((high - low + 1) as f64 * from_depth(program, inner, counters, counted)?);
    }
    let mut sum = 0.0;
    for counter in low..=high {
        *counted += 1;
        if *counted > COUNTED_MAX {
            return None;
        }
        counters[of.depth] = counter;
        sum += from_depth(program, inner, counters, counted)?;
    }
    counters[of.depth] = 0;
    Some(sum)
}
