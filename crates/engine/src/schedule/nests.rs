//! Blocks of nests: which are worth simulating, by the tiles that they hold together.

use std::collections::HashMap;

use crate::cancel;
use crate::plan::{ArrayId, Plan, WorkStep};
use crate::task::NestPlace;

/// Blocks that are simulated at most.
const SIMULATED_MAX: usize = 12;
/// The same of cubes.
const CUBES_MAX: usize = 5;

/// Blocks of a nest of up to three loops: within a block the pieces of one loop come one after the other, each with all
/// pieces of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestBlocks {
    pub streamed: usize,
    /// Pieces of the other loops in a block.
    pub sides: [u32; 2],
}

/// Loops beside the one that is streamed.
fn beside(streamed: usize) -> [usize; 2] {
    [[1, 2], [0, 2], [0, 1]][streamed]
}

/// A tile at the corner of a nest, and the least piece of each loop at which it is touched.
type CornerTiles = HashMap<(ArrayId, u64), Vec<[u32; 2]>>;

/// Blocks that are worth trying where tiles have so much memory: those that fill it, along each loop, with sides of all proportions.
pub fn blocks(plan: &Plan, memory: u64, most: usize) -> Vec<NestBlocks> {
    let mut found = vec![];
    for step in plan.works() {
        let places = (0..step.work.tasks()).filter_map(|task| Some((task, step.work.nest_place(task)?)));
        let places: Vec<(u64, NestPlace)> = places.collect();
        let Some(nest) = places.first().map(|(_, place)| place.nest) else {
            continue;
        };
        // The first nest decides; sides that are right for it are tried for all.
        let places: Vec<(u64, NestPlace)> = places.into_iter().filter(|(_, place)| place.nest == nest).collect();
        for streamed in 0..3 {
            found.extend(blocks_along(plan, step, &places, streamed, memory));
        }
    }
    // By what they may move, since there is time for some of them.
    found.sort_by_key(|(moved, _)| *moved);
    found
        .into_iter()
        .map(|(_, blocks)| blocks)
        .take(most.min(SIMULATED_MAX))
        .collect()
}

/// Sides of cubes that are worth trying where tiles have so much memory: those whose face may fill it, and shorter ones.
pub fn cubes(plan: &Plan, memory: u64, most: usize) -> Vec<u32> {
    let mut sides = vec![];
    for step in plan.works() {
        let places = (0..step.work.tasks()).filter_map(|task| Some((task, step.work.nest_place(task)?)));
        let (mut longest, mut face) = ([0; 3], 0);
        for (task, place) in places {
            cancel::check();
            longest = std::array::from_fn(|at| longest[at].max(place.pieces[at] + 1));
            if face == 0 {
                // One of the tiles of a task is held for each place in the face.
                step.operands(task, &mut |array, _, _| face = face.max(tile_bytes(plan, array)));
            }
        }
        let shortest = longest.into_iter().min().unwrap_or(0);
        let fitting = (memory / face.max(1)).isqrt().min(shortest.into()) as u32;
        let fewer = |side: &u32| (*side > 2).then(|| (side * 3 / 4).max(2));
        let first = (fitting > 1 && shortest > 2).then_some(fitting);
        sides.extend(std::iter::successors(first, fewer).take(CUBES_MAX));
    }
    sides.sort_unstable_by(|a, b| b.cmp(a));
    sides.dedup();
    sides.truncate(most);
    sides
}

fn tile_bytes(plan: &Plan, array: ArrayId) -> u64 {
    let grid = plan.arrays[array as usize].node.grid();
    grid.tile.iter().product::<u64>() * grid.dtype.size() as u64
}

fn touch(tiles: &mut CornerTiles, array: ArrayId, tile: u64, at: [u32; 2]) {
    let known = tiles.entry((array, tile)).or_default();
    if !known.iter().any(|least| least[0] <= at[0] && least[1] <= at[1]) {
        known.push(at);
    }
}

/// Blocks along a loop, and the bytes that they may move: for each number of pieces of one of the others, as many of the other as there is memory for.
fn blocks_along(
    plan: &Plan,
    step: &WorkStep,
    places: &[(u64, NestPlace)],
    streamed: usize,
    memory: u64,
) -> Vec<(u64, NestBlocks)> {
    let pieces = |at: usize| places.iter().map(move |(_, place)| place.pieces[at]);
    let first = pieces(streamed).min().unwrap_or(0);
    if pieces(streamed).max() == Some(first) {
        return vec![];
    }
    let [rows, columns] = beside(streamed);
    let begins = [rows, columns].map(|at| pieces(at).min().unwrap_or(0));
    let counts = [(rows, begins[0]), (columns, begins[1])].map(|(at, begin)| pieces(at).max().unwrap_or(0) - begin + 1);
    // Tiles of two steps along the loop, which are held together, and those of all.
    let (mut held, mut all): (CornerTiles, CornerTiles) = Default::default();
    for (task, place) in places {
        cancel::check();
        let at = [place.pieces[rows] - begins[0], place.pieces[columns] - begins[1]];
        step.operands(*task, &mut |array, tile, _| {
            touch(&mut all, array, tile, at);
            if place.pieces[streamed] <= first + 1 {
                touch(&mut held, array, tile, at);
            }
        });
    }
    let bytes = |tiles: &CornerTiles, [p, q]: [u32; 2]| {
        let inside = tiles
            .iter()
            .filter(|(_, least)| least.iter().any(|at| at[0] < p && at[1] < q));
        inside.map(|(&(array, _), _)| tile_bytes(plan, array)).sum::<u64>()
    };
    let more = |side: &u32| (*side < counts[0]).then(|| (side + 1).max(side.saturating_mul(3) / 2).min(counts[0]));
    let sides = std::iter::successors(Some(1), more);
    let mut found: Vec<(u64, NestBlocks)> = vec![];
    for p in sides {
        // Some memory is for what is read ahead.
        cancel::check();
        let fitting = (1..=counts[1])
            .take_while(|&q| bytes(&held, [p, q]) <= memory / 10 * 9)
            .last();
        let Some(q) = fitting else { break };
        for q in [q, q.div_ceil(2)] {
            let blocks = NestBlocks {
                streamed,
                sides: [p, q],
            };
            let count = u64::from(counts[0].div_ceil(p)) * u64::from(counts[1].div_ceil(q));
            let moved = count * bytes(&all, [p, q]);
            if !found.contains(&(moved, blocks)) {
                found.push((moved, blocks));
            }
        }
    }
    found
}
