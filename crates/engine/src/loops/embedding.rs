//! Blocks of an imperfect nest among the loops of the deepest block, so that all of them are cut together.
//!
//! Each block gets a place along each of these loops, one of its own counters, such that no iteration depends on one with a
//! later place: then all of the nest may go through the places tile by tile (code sinking and unimodular embedding: Ahmed,
//! Mateev, Pingali, Synthesizing transformations for locality enhancement of imperfectly-nested loop nests, ICS 2000).

use super::affine::{Affine, CounterRange, DEPTH_MAX};
use super::dependences::{dependent_pairs, DependentPair};
use super::polyhedron::Extremes;
use super::program::LoopProgram;

/// Loops that are cut together at most.
pub(super) const PLACES_MAX: usize = 3;
/// Pairs of accesses that are looked at.
const PAIRS_MAX: usize = 400;

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
    let has_places = blocks.iter().all(|block| depth(block) > exact);
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
    for place in 0..count {
        let mut chosen = vec![None; program.blocks.len()];
        chosen[main] = Some(counter(exact + place));
        let others: Vec<usize> = blocks.iter().copied().filter(|&block| block != main).collect();
        let is_cut = is_kept(&pairs, &chosen, main) && choose(program, &pairs, &others, exact, place, &mut chosen);
        for &block in blocks {
            embedding.places[block].push(chosen[block].unwrap_or_default());
        }
        embedding.is_cut.push(is_cut);
    }
    (embedding.is_cut.iter().filter(|&&is_cut| is_cut).count() >= 2).then_some(embedding)
}

/// Chooses a counter of each of some blocks; false where none will do.
fn choose(
    program: &LoopProgram,
    pairs: &[DependentPair],
    others: &[usize],
    exact: usize,
    place: usize,
    chosen: &mut Vec<Option<Affine>>,
) -> bool {
    let Some((&block, rest)) = others.split_first() else {
        return true;
    };
    // The loop at the same depth first.
    let mut depths: Vec<usize> = (exact..program.blocks[block].path.len()).collect();
    depths.sort_by_key(|&depth| (depth != exact + place, depth));
    for depth in depths {
        chosen[block] = Some(counter(depth));
        if is_kept(pairs, chosen, block) && choose(program, pairs, rest, exact, place, chosen) {
            return true;
        }
    }
    chosen[block] = None;
    false
}

/// Whether places keep all dependences of a block from and to blocks that have one.
fn is_kept(pairs: &[DependentPair], chosen: &[Option<Affine>], block: usize) -> bool {
    let of_block = pairs.iter().filter(|pair| pair.from == block || pair.to == block);
    of_block.into_iter().all(|pair| {
        let (Some(from), Some(to)) = (chosen[pair.from], chosen[pair.to]) else {
            return true;
        };
        let mut ahead = vec![0i128; 2 * DEPTH_MAX];
        for depth in 0..DEPTH_MAX {
            ahead[depth] -= i128::from(from.coefficients[depth]);
            ahead[DEPTH_MAX + depth] += i128::from(to.coefficients[depth]);
        }
        match pair.system.extremes(&ahead) {
            Extremes::Infeasible => true,
            Extremes::Between(low, _) => low.is_some_and(|low| low >= 0),
        }
    })
}
