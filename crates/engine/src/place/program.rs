//! What the runner plays.

use std::collections::{HashMap, HashSet};

use super::window::Reach;
use crate::schedule::TileId;

/// One step of a program, in issue order. The runner never decides; it holds each instruction until its operands are
/// there and its bytes are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Reserve the partial results of a pass.
    OpenPass(u32),
    /// Give them back, when every task of the pass is complete.
    ClosePass(u32),
    /// Reserve the workspace of a task.
    OpenTask(u32),
    /// Give it back, when the task is complete.
    CloseTask(u32),
    /// Reserve a frame and read the tile into it, from its source or from scratch.
    Read(TileId),
    /// Reserve a frame and read a tile that was written back from its output.
    ReadBack(TileId),
    /// Reserve frames for neighbouring tiles of a source and read them in one go: the first, and how many.
    ReadGroup(TileId, u16),
    /// Reserve a frame for a tile about to be computed.
    Allocate(TileId),
    Run(u32),
    /// Write a finished output tile to its outputs.
    Write(TileId),
    /// Write a temporary to scratch, so that it can be dropped.
    Spill(TileId),
    /// Drop the frame once its last user and its writes are complete.
    Free(TileId),
}

/// Bytes that are read, and that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub read: u64,
    pub written: u64,
}

/// Exact figures of a program: they are the forecast, and they are the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub read_bytes: u64,
    /// Outputs and spills.
    pub written_bytes: u64,
    pub spilled_bytes: u64,
    /// Most bytes of scratch taken at once.
    pub scratch_bytes: u64,
    /// Bytes of temporaries computed, dead or alive.
    pub temporary_bytes: u64,
    /// Bytes of temporaries dropped after their last use without ever being written.
    pub discarded_bytes: u64,
    /// Most bytes of frames and partial results reserved at once.
    pub peak_bytes: u64,
    /// Per pass, while its tasks were issued.
    pub per_pass: Vec<Traffic>,
}

impl Totals {
    pub fn moved_bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes
    }
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub instructions: Vec<Instruction>,
    pub totals: Totals,
    /// How far tasks run ahead of each other.
    pub reach: Reach,
    /// Clean source tiles still resident at the end, which the next program may start from.
    pub left: Vec<TileId>,
}

impl Program {
    /// Whether some tiles are read together.
    pub fn reads_groups(&self) -> bool {
        self.instructions
            .iter()
            .any(|instruction| matches!(instruction, Instruction::ReadGroup(..)))
    }

    /// How often each tile that is spilled is read back. Its place in scratch is free when it is freed after the last time.
    pub fn read_backs(&self) -> HashMap<TileId, u32> {
        let mut counts = HashMap::new();
        if self.totals.spilled_bytes == 0 {
            return counts;
        }
        for instruction in &self.instructions {
            match instruction {
                Instruction::Spill(tile) => drop(counts.entry(*tile).or_insert(0)),
                Instruction::Read(tile) => drop(counts.get_mut(tile).map(|count| *count += 1)),
                _ => {}
            }
        }
        counts
    }

    /// Most bytes of scratch that the program takes at once, with `bytes_of` a tile.
    pub fn scratch_peak(&self, bytes_of: impl Fn(TileId) -> u64) -> u64 {
        let mut left = self.read_backs();
        let mut places = HashSet::new();
        let (mut taken, mut peak) = (0, 0);
        if left.is_empty() {
            return 0;
        }
        for &instruction in &self.instructions {
            match instruction {
                Instruction::Spill(tile) if places.insert(tile) => {
                    taken += bytes_of(tile);
                    peak = peak.max(taken);
                }
                Instruction::Read(tile) => drop(left.get_mut(&tile).map(|count| *count -= 1)),
                Instruction::Free(tile) if left.get(&tile) == Some(&0) && places.remove(&tile) => {
                    taken -= bytes_of(tile);
                }
                _ => {}
            }
        }
        peak
    }

    pub fn bytes(&self) -> usize {
        self.instructions.capacity() * std::mem::size_of::<Instruction>() + self.reach.bytes()
    }
}
