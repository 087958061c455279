//! Loops of a task parted between the statements in them, so that lines reach through all loops around a statement.
//!
//! `for j: { s[j] = 0; for k: s[j] += a[j, k] }` runs as `for j: s[j] = 0`, then `for j: for k: s[j] += a[j, k]`, where no
//! iteration of what comes later needs what comes before it in a later iteration (loop distribution: Allen, Kennedy, Automatic
//! translation of Fortran programs to vector form, TOPLAS 9 (1987)). Tiles stay what they are: only the order within a task changes.

use super::dependences::{dependences, Dependence};
use super::program::{LoopItem, LoopProgram};

/// Parts loops of an item below so many that have one iteration a task; the items that take its place.
pub(super) fn distribute(program: &mut LoopProgram, item: LoopItem, exact: usize) -> Vec<LoopItem> {
    if !has_mixed_loop(program, item) {
        return vec![item];
    }
    let found = dependences(program, &program.blocks_below(item), exact);
    parted(program, item, exact, &found)
}

/// Whether a loop has statements beside other loops.
fn is_mixed(program: &LoopProgram, of: usize) -> bool {
    let is_block = |item: &LoopItem| matches!(item, LoopItem::Block(_));
    let items = &program.loops[of].items;
    items.iter().any(is_block) && !items.iter().all(is_block)
}

fn has_mixed_loop(program: &LoopProgram, item: LoopItem) -> bool {
    match item {
        LoopItem::Block(_) => false,
        LoopItem::Loop(of) => {
            let mut items = program.loops[of].items.iter();
            is_mixed(program, of) || items.any(|&item| has_mixed_loop(program, item))
        }
    }
}

fn parted(program: &mut LoopProgram, item: LoopItem, exact: usize, found: &[Dependence]) -> Vec<LoopItem> {
    let LoopItem::Loop(of) = item else {
        return vec![item];
    };
    let is_mixed = is_mixed(program, of);
    let mut items = vec![];
    for below in program.loops[of].items.clone() {
        items.extend(parted(program, below, exact, found));
    }
    let depth = program.loops[of].depth;
    let groups = match is_mixed {
        true => groups(program, &items, depth, exact, found),
        false => vec![items],
    };
    let mut loops = vec![];
    for (place, items) in groups.into_iter().enumerate() {
        let number = if place == 0 { of } else { program.loops.len() };
        if place > 0 {
            program.loops.push(program.loops[of].clone());
        }
        let blocks: Vec<usize> = items.iter().flat_map(|&item| program.blocks_below(item)).collect();
        for block in blocks {
            program.blocks[block].path[depth] = number;
        }
        program.loops[number].items = items;
        loops.push(LoopItem::Loop(number));
    }
    loops
}

/// Items of a loop in groups that may each go through all iterations before the next does.
fn groups(
    program: &LoopProgram,
    items: &[LoopItem],
    depth: usize,
    exact: usize,
    found: &[Dependence],
) -> Vec<Vec<LoopItem>> {
    let blocks: Vec<Vec<usize>> = items.iter().map(|&item| program.blocks_below(item)).collect();
    let place = |block: usize| blocks.iter().position(|blocks| blocks.contains(&block));
    // Whether an iteration of a later item comes before one of an earlier item, in one iteration of the loops around.
    let is_turned = |dependence: &&Dependence| {
        let around = &dependence.distances[exact.min(depth)..depth];
        let may_be_none = around
            .iter()
            .all(|&(low, high)| low.is_none_or(|low| low <= 0) && high.is_none_or(|high| high >= 0));
        may_be_none && dependence.distances[depth].1.is_none_or(|high| high > 0)
    };
    // The last item that each must stay with.
    let mut last: Vec<usize> = (0..items.len()).collect();
    for dependence in found {
        let (Some(from), Some(to)) = (place(dependence.from.block), place(dependence.to.block)) else {
            continue;
        };
        if from > to && is_turned(&dependence) {
            last[to] = last[to].max(from);
        }
    }
    let mut groups: Vec<Vec<LoopItem>> = vec![];
    let mut reach = None;
    for (at, &item) in items.iter().enumerate() {
        match groups.last_mut().filter(|_| reach.is_some_and(|reach| at <= reach)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
        reach = reach.max(Some(last[at]));
    }
    groups
}
