//! Multilevel vertex separators.

use super::coarsen::{coarsen, Level};
use super::refine::{Refiner, Separation};
use crate::graph::View;
use crate::random::Random;
use crate::watch::{Patience, Stopped};

/// A graph of so many vertices is separated without a coarser one.
const COARSEST: usize = 100;
/// Separators tried on the coarsest graph.
const INITIAL_TRIES: usize = 5;
/// Graphs from this size on get several whole separators, tried on a graph some levels coarser.
const SEVERAL: usize = 5000;
const SEVERAL_LEVELS: usize = 4;
const SEVERAL_TRIES: usize = 5;
const PASSES: usize = 8;
/// A level that keeps more than this share of the vertices ends the coarsening, in percent.
const KEPT_PERCENT: usize = 95;

/// A light separator of about equal sides.
pub(super) fn separate(
    view: View<'_>,
    random: &mut Random,
    refiner: &mut Refiner,
    patience: &Patience<'_>,
) -> Result<Separation, Stopped> {
    if view.vertices() < SEVERAL {
        return separate_once(view, random, refiner, patience);
    }
    let levels = coarsen_levels(view, view.vertices() / 30, SEVERAL_LEVELS, random, patience)?;
    let coarse = levels.last().map_or(view, |level| level.graph.view());
    let mut best: Option<Separation> = None;
    for _ in 0..SEVERAL_TRIES {
        let tried = separate_once(coarse, random, refiner, patience)?;
        let side_max = tried.side_max();
        if best
            .as_ref()
            .is_none_or(|best| tried.cost(side_max) < best.cost(side_max))
        {
            best = Some(tried);
        }
    }
    project(view, &levels, best.unwrap_or_default(), refiner, patience)
}

fn separate_once(
    view: View<'_>,
    random: &mut Random,
    refiner: &mut Refiner,
    patience: &Patience<'_>,
) -> Result<Separation, Stopped> {
    let levels = coarsen_levels(view, COARSEST, usize::MAX, random, patience)?;
    let coarsest = levels.last().map_or(view, |level| level.graph.view());
    let initial = separate_coarsest(coarsest, random, refiner, patience)?;
    project(view, &levels, initial, refiner, patience)
}

/// Coarser and coarser graphs, the first one level coarser than the given one.
fn coarsen_levels(
    view: View<'_>,
    target: usize,
    levels_max: usize,
    random: &mut Random,
    patience: &Patience<'_>,
) -> Result<Vec<Level>, Stopped> {
    let weight_max = (1.5 * f64::from(view.total_weight()) / target as f64) as u32 + 1;
    let mut levels: Vec<Level> = Vec::new();
    while levels.len() < levels_max {
        let finer = levels.last().map_or(view, |level| level.graph.view());
        if finer.vertices() <= target {
            break;
        }
        let level = coarsen(finer, weight_max, random, patience)?;
        let has_stalled = level.graph.vertex_weights.len() * 100 > finer.vertices() * KEPT_PERCENT;
        if has_stalled {
            break;
        }
        levels.push(level);
    }
    Ok(levels)
}

/// The best of some separations grown from vertices at random.
fn separate_coarsest(
    view: View<'_>,
    random: &mut Random,
    refiner: &mut Refiner,
    patience: &Patience<'_>,
) -> Result<Separation, Stopped> {
    let mut best = Separation::default();
    let mut tried = Separation::default();
    for number in 0..INITIAL_TRIES {
        patience.work(2 * view.neighbours.len())?;
        refiner.grow(view, random.below(view.vertices()), &mut tried);
        refiner.refine(view, &mut tried, PASSES, patience)?;
        let side_max = tried.side_max();
        if number == 0 || tried.cost(side_max) < best.cost(side_max) {
            std::mem::swap(&mut best, &mut tried);
        }
    }
    Ok(best)
}

/// Carries a separation of the coarsest graph to the finest, refined on each.
fn project(
    view: View<'_>,
    levels: &[Level],
    mut at: Separation,
    refiner: &mut Refiner,
    patience: &Patience<'_>,
) -> Result<Separation, Stopped> {
    for number in (0..levels.len()).rev() {
        let finer = number.checked_sub(1).map_or(view, |above| levels[above].graph.view());
        patience.work(finer.vertices())?;
        at.sides = levels[number]
            .map
            .iter()
            .map(|&coarse| at.sides[coarse as usize])
            .collect();
        refiner.refine(finer, &mut at, PASSES, patience)?;
    }
    Ok(at)
}
