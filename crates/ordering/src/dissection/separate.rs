//! Multilevel vertex separators.
//!
//! Hendrickson, Leland, "A multilevel algorithm for partitioning graphs", Supercomputing 1995, for vertex separators as
//! in Hendrickson, Rothberg 1998; whole separators are tried on a graph some levels coarser, and the best goes on.

use super::coarsen::{coarsen, Budget, CoarseLevel};
use super::refine::{Effort, Refiner, Separation, SeparatorCost, IMBALANCE_COST};
use crate::graph::View;
use crate::random::{mix, Random};
use crate::team::Team;
use crate::watch::{Patience, Stopped};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A graph of so many vertices is separated without a coarser one.
const COARSEST: usize = 40;
/// Separators tried on the coarsest graph.
const INITIAL_TRIES: usize = 4;
/// Graphs from this size on get several whole separators, tried on a graph some levels coarser.
const SEVERAL: usize = 5000;
const SEVERAL_LEVELS: usize = 4;
const SEVERAL_TRIES: usize = 6;
/// How much imbalance weighs in a search. Coarse separators are thick and rough, so that a lighter one by chance, far
/// from the middle, hides an even better one in it from a loose search; a strict one misses those that cut off corners.
const LOOSE: f64 = 0.2;
const STRICT: f64 = 1.0;
/// Coarse graphs from this size on are worth a helper.
const HELPED: usize = 1000;
/// A level that keeps more than this share of the vertices ends the coarsening, in percent.
const KEPT_PERCENT: usize = 95;
/// Separators of the first parts are looked for longest: each costs a large share of the factorization.
const TOP_DEPTHS: u32 = 2;
const TOP: Effort = Effort {
    passes: 3,
    quarter_moves: 6,
    moves_max: 10_000,
};
const LARGE: Effort = Effort {
    passes: 3,
    quarter_moves: 4,
    moves_max: 1000,
};
const SMALL: Effort = Effort {
    passes: 3,
    quarter_moves: 1,
    moves_max: 300,
};
/// Parts below this size are small.
const LARGE_MIN: usize = 1000;

/// A separation, and the number of the try that it is from.
struct Tried {
    cost: SeparatorCost,
    number: usize,
    separation: Separation,
}

impl Tried {
    /// By number among equals, whichever thread came first.
    fn is_before(&self, other: &Tried) -> bool {
        self.cost < other.cost || (self.cost == other.cost && self.number < other.number)
    }
}

/// How separators of one part are looked for.
pub(super) struct Search<'a> {
    pub(super) team: &'a Team<'a>,
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
    pub(super) seed: u64,
    pub(super) depth: u32,
}

impl Search<'_> {
    /// A light separator of about equal sides.
    pub(super) fn separate(
        &self,
        view: View<'_>,
        refiner: &mut Refiner,
        patience: &Patience<'_>,
    ) -> Result<Separation, Stopped> {
        let mut random = Random::new(mix(self.seed));
        let mut budget = Budget::of(view);
        if view.vertices() < SEVERAL {
            return self.separate_once(view, LOOSE, &mut budget, &mut random, refiner, patience);
        }
        let levels = coarsen_levels(
            view,
            view.vertices() / 30,
            SEVERAL_LEVELS,
            &mut budget,
            &mut random,
            patience,
        )?;
        let coarse = levels.last().map_or(view, |level| level.graph.view());
        let initial = match budget.of_one(SEVERAL_TRIES, coarse) {
            Some(of_try) => self.separate_several(coarse, of_try, refiner, patience)?,
            None => vec![self.separate_once(coarse, LOOSE, &mut budget, &mut random, refiner, patience)?],
        };
        self.project(view, levels, initial, refiner, patience)
    }

    /// The best separators of a loose and of a strict search, each of several tries, on as many threads as are free.
    fn separate_several(
        &self,
        view: View<'_>,
        budget: Budget,
        refiner: &mut Refiner,
        patience: &Patience<'_>,
    ) -> Result<Vec<Separation>, Stopped> {
        let next = AtomicUsize::new(0);
        let bests: [Mutex<Option<Tried>>; 2] = Default::default();
        let try_all = |refiner: &mut Refiner, patience: &Patience<'_>| loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= SEVERAL_TRIES {
                return Ok(());
            }
            let mut random = Random::new(mix(self.seed ^ mix(number as u64 + 1)));
            let imbalance_cost = [LOOSE, STRICT][number % 2];
            let separation = self.separate_once(
                view,
                imbalance_cost,
                &mut budget.clone(),
                &mut random,
                refiner,
                patience,
            )?;
            let tried = Tried {
                cost: separation.cost(),
                number,
                separation,
            };
            let mut best = bests[number % 2].lock().unwrap_or_else(PoisonError::into_inner);
            if best.as_ref().is_none_or(|best| tried.is_before(best)) {
                *best = Some(tried);
            }
        };
        std::thread::scope(|scope| {
            let mut helpers = Vec::new();
            while view.vertices() >= HELPED && helpers.len() + 1 < SEVERAL_TRIES && self.team.take() {
                helpers.push(scope.spawn(|| {
                    let done = try_all(&mut Refiner::default(), &Patience::new(self.stop));
                    self.team.give();
                    done
                }));
            }
            let done = try_all(refiner, patience);
            let join = |helper: std::thread::ScopedJoinHandle<'_, _>| {
                helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            helpers.into_iter().map(join).fold(done, Result::and)
        })?;
        let bests = bests
            .into_iter()
            .filter_map(|best| best.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(bests.map(|best| best.separation).collect())
    }

    fn separate_once(
        &self,
        view: View<'_>,
        imbalance_cost: f64,
        budget: &mut Budget,
        random: &mut Random,
        refiner: &mut Refiner,
        patience: &Patience<'_>,
    ) -> Result<Separation, Stopped> {
        let levels = coarsen_levels(view, COARSEST, usize::MAX, budget, random, patience)?;
        let coarsest = levels.last().map_or(view, |level| level.graph.view());
        let initial = self.separate_coarsest(coarsest, imbalance_cost, random, refiner, patience)?;
        self.project(view, levels, vec![initial], refiner, patience)
    }

    /// The best of some separations grown from vertices at random.
    fn separate_coarsest(
        &self,
        view: View<'_>,
        imbalance_cost: f64,
        random: &mut Random,
        refiner: &mut Refiner,
        patience: &Patience<'_>,
    ) -> Result<Separation, Stopped> {
        let mut best = Separation {
            imbalance_cost,
            ..Separation::default()
        };
        let mut tried = best.clone();
        for number in 0..INITIAL_TRIES {
            patience.work(2 * view.neighbours.len())?;
            refiner.grow(view, random.below(view.vertices()), &mut tried, patience)?;
            refiner.refine(view, &mut tried, self.effort(0), patience)?;
            if number == 0 || tried.cost() < best.cost() {
                std::mem::swap(&mut best, &mut tried);
            }
        }
        Ok(best)
    }

    /// Carries separations of the coarsest graph to the finest, refined on each; returns the best.
    fn project(
        &self,
        view: View<'_>,
        mut levels: Vec<CoarseLevel>,
        mut candidates: Vec<Separation>,
        refiner: &mut Refiner,
        patience: &Patience<'_>,
    ) -> Result<Separation, Stopped> {
        while let Some(CoarseLevel { map, graph }) = levels.pop() {
            drop(graph);
            let finer = levels.last().map_or(view, |level| level.graph.view());
            for at in &mut candidates {
                patience.work(finer.vertices())?;
                at.sides = map.iter().map(|&coarse| at.sides[coarse as usize]).collect();
                refiner.refine(finer, at, self.effort(view.vertices()), patience)?;
            }
        }
        let mut best = candidates.pop().unwrap_or_default();
        for other in candidates {
            if other.cost_with(IMBALANCE_COST) < best.cost_with(IMBALANCE_COST) {
                best = other;
            }
        }
        Ok(best)
    }

    fn effort(&self, vertices: usize) -> Effort {
        if self.depth < TOP_DEPTHS {
            TOP
        } else if vertices >= LARGE_MIN {
            LARGE
        } else {
            SMALL
        }
    }
}

/// Coarser and coarser graphs, the first one level coarser than the given one.
fn coarsen_levels(
    view: View<'_>,
    target: usize,
    levels_max: usize,
    budget: &mut Budget,
    random: &mut Random,
    patience: &Patience<'_>,
) -> Result<Vec<CoarseLevel>, Stopped> {
    let weight_max = (1.5 * f64::from(view.total_weight()) / target as f64) as u32 + 1;
    let mut levels: Vec<CoarseLevel> = Vec::new();
    while levels.len() < levels_max {
        let finer = levels.last().map_or(view, |level| level.graph.view());
        if finer.vertices() <= target {
            break;
        }
        let Some(level) = coarsen(finer, weight_max, budget, random, patience)? else {
            break;
        };
        let has_stalled = level.graph.vertex_weights.len() * 100 > finer.vertices() * KEPT_PERCENT;
        if has_stalled {
            break;
        }
        levels.push(level);
    }
    Ok(levels)
}
