//! Tiles during the walk, and when each of them is used.

use super::policy::{Policy, Standing};
use crate::schedule::{TaskList, TileId};

pub(super) const NEVER: u64 = u64::MAX;

/// State of one tile during the walk.
#[derive(Clone, Copy, Default)]
pub(super) struct WalkedTile {
    pub resident: bool,
    /// Memory holds the only copy.
    pub dirty: bool,
    /// Scratch holds a copy.
    pub spilled: bool,
    /// Its output holds a copy, which can be read back.
    pub written: bool,
    /// Offered to the policy.
    pub candidate: bool,
    /// Clock's reference bit.
    pub referenced: bool,
    /// Has a place on the clock's ring.
    pub on_ring: bool,
    pub computed: bool,
    pub last_use: u32,
    /// Position in the list of uses.
    pub cursor: u32,
}

/// Uses of every tile, in task order.
pub(super) struct Uses {
    ends: Vec<u32>,
    tasks: Vec<u32>,
}

impl Uses {
    pub fn collect(tiles: usize, tasks: &TaskList) -> Uses {
        let mut ends = vec![0u32; tiles];
        let each = |visit: &mut dyn FnMut(TileId, u32)| {
            for task in 0..tasks.len() {
                tasks.inputs(task).iter().for_each(|&tile| visit(tile, task as u32));
                tasks
                    .outputs(task)
                    .iter()
                    .for_each(|output| visit(output.tile, task as u32));
            }
        };
        each(&mut |tile, _| ends[tile as usize] += 1);
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut list = vec![0u32; begin as usize];
        each(&mut |tile, task| {
            list[ends[tile as usize] as usize] = task;
            ends[tile as usize] += 1;
        });
        Uses { ends, tasks: list }
    }

    pub fn of(&self, tile: TileId) -> &[u32] {
        let begin = if tile == 0 { 0 } else { self.ends[tile as usize - 1] };
        &self.tasks[begin as usize..self.ends[tile as usize] as usize]
    }
}

/// The place of a next use in the order of eviction. Of tiles that are not used again those used longest ago go first:
/// what stays for the next program is then the end of the last sweep, where one in the other direction begins.
pub(super) fn farthest(next_use: u64, last_use: u32) -> u64 {
    match next_use {
        NEVER => NEVER - u64::from(last_use),
        _ => next_use,
    }
}

/// What an entry of the policy's order stands for now.
pub(super) fn standing(policy: Policy, tiles: &mut [WalkedTile], uses: &Uses, tile: TileId, key: u64) -> Standing {
    let state = &mut tiles[tile as usize];
    match policy {
        Policy::Clock if !state.resident => Standing::Gone,
        Policy::Clock if !state.candidate => Standing::Busy,
        Policy::Clock if std::mem::replace(&mut state.referenced, false) => Standing::SecondChance,
        Policy::Clock => Standing::Takeable,
        _ => {
            let current = match policy {
                Policy::NextUse => {
                    let next_use = uses.of(tile).get(state.cursor as usize);
                    farthest(next_use.map_or(NEVER, |&task| u64::from(task)), state.last_use)
                }
                _ => u64::from(state.last_use),
            };
            if state.candidate && current == key {
                Standing::Takeable
            } else {
                Standing::Gone
            }
        }
    }
}
