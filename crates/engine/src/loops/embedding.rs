//! Blocks of an imperfect nest among the loops of the deepest block, so that all of them are cut together.
//!
//! Each block gets a place along each of these loops, one of its own counters, such that no iteration depends on one with a
//! later place: then all of the nest may go through the places tile by tile (code sinking and unimodular embedding: Ahmed,
//! Mateev, Pingali, Synthesizing transformations for locality enhancement of imperfectly-nested loop nests, ICS 2000).

use std::collections::HashMap;

use super::affine::{Affine, CounterRange};
use super::dependences::{dependent_pairs, DependentPair};
use super::polyhedron::Extremes;
use super::program::LoopProgram;
use crate::cancel;

/// Loops that are cut together at most.
pub(super) const PLACES_MAX: usize = 3;
/// Pairs of accesses that are looked at.
const PAIRS_MAX: usize = 400;
/// Counters of blocks that are tried for a loop.
const TRIED_MAX: usize = 2000;

/// The places of blocks.
#[derive(Clone, Debug)]
pub(super) struct Embedding {
    /// The deepest block, whose counters are its places.
    pub main: usize,
    /// The depth of the first of its loops that are cut.
    pub first: usize,
    /// By block of the program: its place along each loop that is cut; none of other blocks.
    pub places: Vec<Vec<Affine>>,
    /// Whether the places along a loop may be cut.
    pub is_cut: Vec<bool>,
}

/// Ranges of places; those of loops that are not cut do not matter.
pub(super) type PlaceRanges = [CounterRange; PLACES_MAX];

impl Embedding {
    /// Constraints on the counters of a block whose places are in these ranges.
    pub fn within(&self, block: usize, ranges: &PlaceRanges) -> Vec<Affine> {
        let places = self.places[block].iter().zip(ranges).zip(&self.is_cut);
        let cut = places.filter(|(_, is_cut)| **is_cut);
        cut.flat_map(|((place, range), _)| {
            let low = Affine {
                constant: place.constant - range.low,
                ..*place
            };
            let high = Affine {
                constant: range.high - place.constant,
                coefficients: place.coefficients.map(|by| -by),
            };
            [low, high]
        })
        .collect()
    }
}

fn counter(depth: usize) -> Affine {
    let mut counter = Affine::default();
    counter.coefficients[depth] = 1;
    counter
}

/// Places for blocks below so many loops that have one iteration a task; nothing where fewer than two loops may be cut.
pub(super) fn embed(program: &LoopProgram, blocks: &[usize], exact: usize) -> Option<Embedding> {
    let depth = |&block: &usize| program.blocks[block].path.len();
    let main = blocks.iter().copied().max_by_key(depth)?;
    let count = depth(&main).checked_sub(exact)?.min(PLACES_MAX);
    let has_places = blocks
        .iter()
        .all(|block| depth(block) > exact && program.blocks[*block].call.is_none());
    if blocks.len() < 2 || count < 2 || !has_places {
        return None;
    }
    let pairs = dependent_pairs(program, blocks, exact);
    if pairs.len() > PAIRS_MAX {
        return None;
    }
    let mut embedding = Embedding {
        main,
        first: exact,
        places: vec![vec![]; program.blocks.len()],
        is_cut: vec![],
    };
    let others: Vec<usize> = blocks.iter().copied().filter(|&block| block != main).collect();
    let mut search = PlaceSearch {
        program,
        pairs: &pairs,
        known: HashMap::new(),
        exact,
        main,
        chosen: vec![],
        tried: 0,
    };
    for place in 0..count {
        let is_cut = search.is_found(exact + place, &others);
        for &block in blocks {
            embedding.places[block].push(search.chosen[block].unwrap_or_default());
        }
        embedding.is_cut.push(is_cut);
    }
    (embedding.is_cut.iter().filter(|&&is_cut| is_cut).count() >= 2).then_some(embedding)
}

/// A search for a counter of each block as its place along a loop of the main one.
struct PlaceSearch<'a> {
    program: &'a LoopProgram,
    pairs: &'a [DependentPair],
    /// By pair and its two places: whether it is kept.
    known: HashMap<(usize, [Affine; 2]), bool>,
    /// Loops that have one iteration a task.
    exact: usize,
    main: usize,
    /// By block: its place along a loop.
    chosen: Vec<Option<Affine>>,
    tried: usize,
}

impl PlaceSearch<'_> {
    /// Finds places along the loop at a depth of the main block; false where none keep all dependences.
    fn is_found(&mut self, at: usize, others: &[usize]) -> bool {
        self.chosen = vec![None; self.program.blocks.len()];
        self.chosen[self.main] = Some(counter(at));
        self.tried = 0;
        self.is_kept(self.main) && self.choose(at, others)
    }

    fn choose(&mut self, at: usize, others: &[usize]) -> bool {
        let Some((&block, rest)) = others.split_first() else {
            return true;
        };
        cancel::check();
        for place in self.candidates(block, at) {
            self.tried += 1;
            self.chosen[block] = Some(place);
            if self.tried <= TRIED_MAX && self.is_kept(block) && self.choose(at, rest) {
                return true;
            }
        }
        self.chosen[block] = None;
        false
    }

    /// Places that a block may have along the loop at a depth of the main one. First the same loop, then one that goes along the
    /// same axis of an array, then the first and the last iteration, for what stands before and after it; then other loops.
    fn candidates(&self, block: usize, at: usize) -> Vec<Affine> {
        let program = self.program;
        let [path, main] = [block, self.main].map(|block| &program.blocks[block].path);
        let is_same = |depth: usize| depth == at && path[at] == main[at];
        let goes_along = |depth: usize| goes_along(program, (block, depth), (self.main, at));
        let mut depths: Vec<usize> = (self.exact..path.len()).collect();
        depths.sort_by_key(|&depth| (!is_same(depth), !goes_along(depth), depth != at, depth));
        let like = depths
            .iter()
            .take_while(|&&depth| is_same(depth) || goes_along(depth))
            .count();
        let mut places: Vec<Affine> = depths.into_iter().map(counter).collect();
        let shared = path.iter().zip(main).take_while(|(own, its)| own == its).count();
        let ends = program.loops[main[at]].ends();
        let of_shared = |end: &Affine| end.coefficients[shared..].iter().all(|&by| by == 0);
        places.splice(like..like, ends.into_iter().flatten().filter(of_shared));
        places
    }

    /// Whether places keep all dependences of a block from and to blocks that have one.
    fn is_kept(&mut self, block: usize) -> bool {
        let pairs = self.pairs.iter().enumerate();
        let mut of_block = pairs.filter(|(_, pair)| pair.from == block || pair.to == block);
        of_block.all(|(number, pair)| {
            let (Some(from), Some(to)) = (self.chosen[pair.from], self.chosen[pair.to]) else {
                return true;
            };
            let known = self.known.entry((number, [from, to]));
            *known.or_insert_with(|| {
                let mut ahead: Vec<i128> = from.coefficients.iter().map(|&by| -i128::from(by)).collect();
                ahead.extend(to.coefficients.iter().map(|&by| i128::from(by)));
                let needed = i128::from(from.constant) - i128::from(to.constant);
                match pair.system.extremes(&ahead) {
                    Extremes::Infeasible => true,
                    Extremes::Between(low, _) => low.is_some_and(|low| low >= needed),
                }
            })
        })
    }
}

/// Whether the loops at depths of two blocks go along the same axis of an array.
fn goes_along(program: &LoopProgram, of: (usize, usize), other: (usize, usize)) -> bool {
    let elements = |block: usize| {
        program.blocks[block]
            .steps
            .iter()
            .flat_map(|step| step.reads().chain(step.written()))
    };
    elements(of.0).any(|element| {
        let others = elements(other.0).filter(|other| other.array == element.array);
        others
            .flat_map(|other| element.subscripts.iter().zip(&other.subscripts))
            .any(|(own, its)| own.single_loop() == Some(of.1) && its.single_loop() == Some(other.1))
    })
}
