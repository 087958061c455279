//! Dependences between the steps of a program: which iterations of loops must stay behind which.
//!
//! Two accesses of which one writes depend where they touch one element. Of each such pair, and each loop that carries it, the
//! distances along the loops lie in a box, found by elimination (Banerjee; Pugh, The Omega test, CACM 35 (1992)): boxes may be
//! wider than the distances are, never narrower.

use std::collections::{HashMap, HashSet};

use super::affine::{Affine, DEPTH_MAX};
use super::polyhedron::{Extremes, Polyhedron};
use super::program::{ArrayElement, LoopProgram, StepTarget};

/// A distance along a loop: its least and its largest value; nothing where it has no bound.
pub(super) type Distance = (Option<i128>, Option<i128>);

/// A step of a block, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StepPlace {
    pub block: usize,
    pub step: usize,
}

/// An access of a step.
#[derive(Clone, Copy, Debug)]
struct StepAccess<'a> {
    place: StepPlace,
    element: &'a ArrayElement,
    is_write: bool,
    /// Whether the element takes in values in any order.
    is_update: bool,
}

/// Iterations of a step that must come behind iterations of another.
#[derive(Clone, Debug)]
pub(super) struct Dependence {
    pub from: StepPlace,
    pub to: StepPlace,
    /// Distances along the loops that both share, the outermost first.
    pub distances: Vec<Distance>,
    /// Whether it stands between two updates of one element by one step, which a task may take in any order.
    pub is_between_updates: bool,
    /// Whether the earlier one reads what the later one writes.
    pub is_read_first: bool,
}

fn accesses(program: &LoopProgram, block: usize) -> Vec<StepAccess<'_>> {
    let mut all = vec![];
    for (step, of) in program.blocks[block].steps.iter().enumerate() {
        let place = StepPlace { block, step };
        let access = |element, is_write, is_update| StepAccess {
            place,
            element,
            is_write,
            is_update,
        };
        all.extend(of.reads().map(|element| access(element, false, false)));
        match &of.target {
            StepTarget::Register(_) => {}
            StepTarget::Store(element) => all.push(access(element, true, false)),
            StepTarget::Update(element, _, _) => all.push(access(element, true, true)),
        }
    }
    all
}

/// Dependences among blocks of iterations that agree in the counters of the first `equal` loops, of those that a loop carries.
pub(super) fn dependences(program: &LoopProgram, blocks: &[usize], equal: usize) -> Vec<Dependence> {
    let all: Vec<StepAccess<'_>> = blocks.iter().flat_map(|&block| accesses(program, block)).collect();
    let mut found = vec![];
    // Steps of a block often touch the same elements.
    let mut known = KnownDistances::new();
    for from in &all {
        for to in &all {
            if from.element.array == to.element.array && (from.is_write || to.is_write) {
                let key = [from, to].map(|access| (access.place.block, access.element.subscripts.as_slice()));
                let distances = known.entry(key).or_insert_with(|| distances(program, from, to, equal));
                found.extend(distances.iter().map(|distances| Dependence {
                    from: from.place,
                    to: to.place,
                    distances: distances.clone(),
                    is_between_updates: from.is_update && to.is_update && from.place == to.place,
                    is_read_first: !from.is_write,
                }));
            }
        }
    }
    found
}

/// Distances by the blocks and the subscripts of two accesses.
type KnownDistances<'a> = HashMap<[(usize, &'a [Affine]); 2], Vec<Vec<Distance>>>;

/// Distances between two accesses of one element, for each loop that carries some.
fn distances(program: &LoopProgram, from: &StepAccess<'_>, to: &StepAccess<'_>, equal: usize) -> Vec<Vec<Distance>> {
    let paths = [from, to].map(|access| &program.blocks[access.place.block].path);
    let shared = paths[0].iter().zip(paths[1]).take_while(|(a, b)| a == b).count();
    let of_carrier = |carrier: usize| {
        let system = conflict(program, from, to, carrier, Some(carrier));
        let along = |depth: usize| {
            let mut distance = vec![0; 2 * DEPTH_MAX];
            (distance[depth], distance[DEPTH_MAX + depth]) = (-1, 1);
            match system.extremes(&distance) {
                Extremes::Infeasible => None,
                Extremes::Between(low, high) => Some((low, high)),
            }
        };
        (0..shared).map(along).collect::<Option<Vec<Distance>>>()
    };
    (equal..shared).filter_map(of_carrier).collect()
}

/// Iterations of a block that must come behind iterations of another, with the system of their counters.
pub(super) struct DependentPair {
    pub from: usize,
    pub to: usize,
    pub system: Polyhedron,
}

/// Pairs of iterations that depend, of blocks that agree in the counters of the first `equal` loops.
pub(super) fn dependent_pairs(program: &LoopProgram, blocks: &[usize], equal: usize) -> Vec<DependentPair> {
    let all: Vec<StepAccess<'_>> = blocks.iter().flat_map(|&block| accesses(program, block)).collect();
    let mut pairs = vec![];
    let mut known = HashSet::new();
    for from in &all {
        for to in &all {
            let blocks = (from.place.block, to.place.block);
            let key = [from, to].map(|access| (access.place.block, access.element));
            let is_exempt = from.is_update && to.is_update && from.place == to.place;
            let depend = from.element.array == to.element.array && (from.is_write || to.is_write) && !is_exempt;
            if !depend || !known.insert(key) {
                continue;
            }
            let paths = [from, to].map(|access| &program.blocks[access.place.block].path);
            let shared = paths[0].iter().zip(paths[1]).take_while(|(a, b)| a == b).count();
            let mut add = |system: Polyhedron| {
                if !matches!(system.extremes(&[0; 2 * DEPTH_MAX]), Extremes::Infeasible) {
                    let (from, to) = blocks;
                    pairs.push(DependentPair { from, to, system });
                }
            };
            (equal..shared).for_each(|carrier| add(conflict(program, from, to, carrier, Some(carrier))));
            if blocks.0 < blocks.1 {
                add(conflict(program, from, to, shared, None));
            }
        }
    }
    pairs
}

/// Counters of both accesses that touch one element, equal in the first loops, so many, and with the loop `carrier` ahead in the
/// second.
fn conflict(
    program: &LoopProgram,
    from: &StepAccess<'_>,
    to: &StepAccess<'_>,
    equal: usize,
    carrier: Option<usize>,
) -> Polyhedron {
    let mut system = Polyhedron::of(2 * DEPTH_MAX);
    let of = |affine: &Affine, side: usize, sign: i128| {
        let mut coefficients = vec![0i128; 2 * DEPTH_MAX];
        for (depth, &by) in affine.coefficients.iter().enumerate() {
            coefficients[side * DEPTH_MAX + depth] = sign * i128::from(by);
        }
        coefficients
    };
    for (side, access) in [from, to].into_iter().enumerate() {
        let block = &program.blocks[access.place.block];
        for constraint in &block.constraints {
            system.at_least_zero(of(constraint, side, 1), constraint.constant.into());
        }
        for depth in block.path.len()..DEPTH_MAX {
            let mut counter = vec![0; 2 * DEPTH_MAX];
            counter[side * DEPTH_MAX + depth] = 1;
            system.zero(counter, 0);
        }
    }
    for (a, b) in from.element.subscripts.iter().zip(&to.element.subscripts) {
        let mut coefficients = of(a, 0, 1);
        for (sum, by) in coefficients.iter_mut().zip(of(b, 1, -1)) {
            *sum += by;
        }
        system.zero(coefficients, i128::from(a.constant) - i128::from(b.constant));
    }
    for depth in (0..equal).chain(carrier) {
        let mut distance = vec![0; 2 * DEPTH_MAX];
        (distance[depth], distance[DEPTH_MAX + depth]) = (-1, 1);
        if Some(depth) == carrier {
            system.at_least_zero(distance, -1);
        } else {
            system.zero(distance, 0);
        }
    }
    system
}
