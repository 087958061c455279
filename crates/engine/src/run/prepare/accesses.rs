//! What the tasks of a prepared program touch, for those who judge or replay an order.

use super::PreparedProgram;
use crate::plan::ArrayKind;
use crate::schedule::Role;

/// A tile of a program.
#[derive(Clone, Copy, Debug)]
pub struct TileFacts {
    /// The array, by its number in the program.
    pub array: u32,
    /// Bytes of its frame in memory.
    pub frame_bytes: u64,
    /// Bytes that reading it transfers.
    pub read_bytes: u64,
    /// Bytes that its write to a result transfers; 0 of other tiles.
    pub result_bytes: u64,
    /// Whether it is there before the program.
    pub is_there: bool,
}

/// Tiles that a task touches, by their numbers in the program.
#[derive(Clone, Debug, Default)]
pub struct TaskTiles {
    pub producer: u32,
    /// The number of the task among those of its producer; of works, in the order of their text.
    pub number: u32,
    /// The nest of loops that it is part of, and the sweep, where the work says so.
    pub nest: Option<u32>,
    pub sweep: Option<u32>,
    pub read: Vec<u32>,
    pub created: Vec<u32>,
    pub updated: Vec<u32>,
}

impl PreparedProgram {
    /// All tiles, by their numbers.
    pub fn tile_facts(&self) -> Vec<TileFacts> {
        let weights = self.tiles.weights.iter().zip(&self.tiles.writes).enumerate();
        let tiles = weights.map(|(tile, (weight, &result_bytes))| {
            let (array, _) = self.tiles.locate(tile as u32);
            TileFacts {
                array,
                frame_bytes: weight.frame,
                read_bytes: weight.read,
                result_bytes,
                is_there: !matches!(self.plan.arrays[array as usize].kind, ArrayKind::Computed),
            }
        });
        tiles.collect()
    }

    /// What each task touches, in the order in which they run.
    pub fn task_tiles(&self) -> Vec<TaskTiles> {
        let list = &self.placed.tasks;
        let tasks = (0..list.len()).map(|task| {
            let (producer, number) = (list.pass[task], list.cell[task]);
            let work = self.plan.producers[producer as usize].work().map(|step| &step.work);
            let mut tiles = TaskTiles {
                producer,
                number,
                nest: work.and_then(|work| Some(work.nest_place(number.into())?.nest)),
                sweep: work.and_then(|work| Some(work.sweep_place(number.into())?.sweep)),
                read: list.inputs(task).to_vec(),
                ..TaskTiles::default()
            };
            for output in list.outputs(task) {
                match output.role {
                    Role::Accumulate { first: false, .. } | Role::Closing => tiles.updated.push(output.tile),
                    Role::Whole | Role::Accumulate { first: true, .. } => tiles.created.push(output.tile),
                }
            }
            tiles
        });
        tasks.collect()
    }
}
