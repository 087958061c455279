//! Cells in the order of the tiles they share: next comes the cell that is missing the fewest bytes.
//!
//! A greedy form of the locality sets of Kandemir, Son and Karakoy: work on the same tiles runs together. `A + A.T` reads
//! two tiles per cell, and the cell across the diagonal reads the same two.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::tasks::{cell_extent, InputFinder};
use super::tiles::{coordinates, TileId, TileTable};
use crate::cancel;
use crate::plan::{Pass, Plan, RootKind, StepKind};

/// Passes with more cells keep the plain orders: choosing must not cost more than it saves.
pub const CELLS_MAX: u64 = 20_000;
/// A tile that more cells share is near whatever is done; following it would cost the square of the cells.
const SHARERS_MAX: usize = 64;

/// Whether the order of a pass is free, and some of its tiles are shared by few cells.
pub fn may_share(pass: &Pass) -> bool {
    let gathers = pass
        .steps
        .iter()
        .filter(|step| matches!(step.kind, StepKind::Gather(_)));
    pass.roots.iter().all(|root| root.kind == RootKind::Map)
        && (2..=CELLS_MAX).contains(&pass.domain.cells())
        && gathers.count() > 1
}

/// The cells of a pass, greedily: `memory` bytes of the tiles touched last count as there.
pub fn shared_cells(plan: &Plan, tiles: &TileTable, pass: &Pass, memory: u64) -> Vec<u32> {
    let counts = pass.domain.counts();
    let mut finder = InputFinder::new(plan, tiles);
    let mut cell = Vec::new();
    let mut chooser = Chooser::new(memory);
    for index in 0..pass.domain.cells() {
        coordinates(&counts, index, &mut cell);
        let mut inputs = Vec::new();
        finder.find(pass, &cell_extent(pass, &cell), &mut inputs);
        chooser.add(
            inputs
                .into_iter()
                .map(|tile| (tile, tiles.weights[tile as usize].frame))
                .collect(),
        );
    }
    chooser.order()
}

/// Cells not yet chosen, by the bytes they miss.
struct Chooser {
    memory: u64,
    inputs: Vec<Vec<(TileId, u64)>>,
    sharers: HashMap<TileId, Vec<u32>>,
    missing: Vec<u64>,
    /// Missing bytes, bytes that are there (reversed), cell.
    waiting: BTreeSet<(u64, std::cmp::Reverse<u64>, u32)>,
    /// Tiles counted as there, the one touched longest ago first, and how often each is in the queue.
    recent: VecDeque<(TileId, u64)>,
    queued: HashMap<TileId, u32>,
    recent_bytes: u64,
}

impl Chooser {
    fn new(memory: u64) -> Chooser {
        Chooser {
            memory,
            inputs: vec![],
            sharers: HashMap::new(),
            missing: vec![],
            waiting: BTreeSet::new(),
            recent: VecDeque::new(),
            queued: HashMap::new(),
            recent_bytes: 0,
        }
    }

    fn add(&mut self, inputs: Vec<(TileId, u64)>) {
        let cell = self.inputs.len() as u32;
        for &(tile, _) in &inputs {
            self.sharers.entry(tile).or_default().push(cell);
        }
        let bytes = inputs.iter().map(|&(_, bytes)| bytes).sum();
        self.missing.push(bytes);
        self.waiting.insert((bytes, std::cmp::Reverse(0), cell));
        self.inputs.push(inputs);
    }

    fn key(&self, cell: u32) -> (u64, std::cmp::Reverse<u64>, u32) {
        let missing = self.missing[cell as usize];
        let all: u64 = self.inputs[cell as usize].iter().map(|&(_, bytes)| bytes).sum();
        (missing, std::cmp::Reverse(all - missing), cell)
    }

    /// A tile has come or gone: its sharers miss so many bytes less or more.
    fn change(&mut self, tile: TileId, bytes: u64, came: bool) {
        let sharers = std::mem::take(self.sharers.get_mut(&tile).expect("added with its cells"));
        if sharers.len() <= SHARERS_MAX {
            for &cell in &sharers {
                let waits = self.waiting.remove(&self.key(cell));
                let missing = &mut self.missing[cell as usize];
                *missing = if came { *missing - bytes } else { *missing + bytes };
                if waits {
                    self.waiting.insert(self.key(cell));
                }
            }
        }
        self.sharers.insert(tile, sharers);
    }

    fn touch(&mut self, tile: TileId, bytes: u64) {
        self.recent.push_back((tile, bytes));
        let queued = self.queued.entry(tile).or_insert(0);
        *queued += 1;
        if *queued == 1 {
            self.recent_bytes += bytes;
            self.change(tile, bytes, true);
        }
        while self.recent_bytes > self.memory {
            let Some((oldest, bytes)) = self.recent.pop_front() else {
                return;
            };
            let queued = self.queued.get_mut(&oldest).expect("in the queue");
            *queued -= 1;
            if *queued == 0 {
                self.recent_bytes -= bytes;
                self.change(oldest, bytes, false);
            }
        }
    }

    fn order(mut self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.inputs.len());
        while let Some((_, _, cell)) = self.waiting.pop_first() {
            cancel::check();
            order.push(cell);
            for (tile, bytes) in self.inputs[cell as usize].clone() {
                self.touch(tile, bytes);
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells of an `n × n` grid that read tiles (i, j) and (j, i), as `A + A.T` does.
    fn symmetric(n: u32, memory: u64) -> Vec<u32> {
        let mut chooser = Chooser::new(memory);
        for i in 0..n {
            for j in 0..n {
                let mut inputs = vec![(i * n + j, 1)];
                if i != j {
                    inputs.push((j * n + i, 1));
                }
                chooser.add(inputs);
            }
        }
        chooser.order()
    }

    #[test]
    fn the_cell_across_the_diagonal_follows_at_once() {
        let order = symmetric(5, 4);
        let place: HashMap<u32, usize> = order.iter().enumerate().map(|(at, &cell)| (cell, at)).collect();
        assert_eq!(place.len(), 25);
        for i in 0..5u32 {
            for j in 0..i {
                assert_eq!(place[&(i * 5 + j)].abs_diff(place[&(j * 5 + i)]), 1, "({i}, {j})");
            }
        }
    }
}
