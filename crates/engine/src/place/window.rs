//! How far tasks run ahead of each other (docs/placement.md, rule 10).

use crate::schedule::{TaskList, TileTable};

/// The tasks that may be at work or read ahead for, besides the task issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Tasks, at most.
    pub tasks: usize,
    /// Where tiles differ in size, what passes through is bounded in bytes too.
    pub bytes: Option<InBytes>,
}

/// A bound on the largest operands of the tasks in a window, of those that each does not share with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InBytes {
    pub most: u64,
    /// Tasks that may be at work whatever they take.
    pub tasks_min: usize,
}

impl Window {
    pub fn of_tasks(tasks: usize) -> Window {
        Window { tasks, bytes: None }
    }

    /// The same, of at most so many tasks.
    pub fn at_most(self, tasks: usize) -> Window {
        Window {
            tasks: self.tasks.min(tasks),
            ..self
        }
    }

    /// What it comes to for these tasks.
    pub fn over(self, tasks: &TaskList, tiles: &TileTable) -> Reach {
        let constant = Reach {
            tasks: self.tasks,
            oldest: vec![],
        };
        let Some(bytes) = self.bytes else {
            return constant;
        };
        let operands = |task: usize| {
            let outputs = tasks.outputs(task).iter().map(|output| output.tile);
            tasks.inputs(task).iter().copied().chain(outputs)
        };
        // What the task before has as well does not pass through: it is there once for all of them.
        let largest = |task: usize| {
            let stays = |tile: u32| task > 0 && operands(task - 1).any(|before| before == tile);
            operands(task).fold(0, |most, tile| {
                let frame = tiles.weights[tile as usize].frame;
                // Only a larger one is looked for, so that many operands of one size are gone through once.
                if frame > most && !stays(tile) {
                    frame
                } else {
                    most
                }
            })
        };
        let mut oldest = Vec::with_capacity(tasks.len());
        let (mut first, mut held) = (0, 0);
        for task in 0..tasks.len() {
            while task - first > self.tasks || (task - first > bytes.tasks_min && held > bytes.most) {
                held -= largest(first);
                first += 1;
            }
            oldest.push(first as u32);
            held += largest(task);
        }
        // Most programs have tiles of one size.
        let full = |(task, &first): (usize, &u32)| first as usize == task.saturating_sub(self.tasks);
        if oldest.iter().enumerate().all(full) {
            return constant;
        }
        Reach {
            tasks: self.tasks,
            oldest,
        }
    }
}

/// For every task the oldest that may still be at work when it is issued.
///
/// Invariants: it never goes back from one task to the next, and is at most `tasks` behind.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Most tasks that the window holds besides the one issued.
    pub tasks: usize,
    /// By task, where that is not simply `tasks` behind it.
    oldest: Vec<u32>,
}

impl Reach {
    pub fn oldest(&self, task: usize) -> u32 {
        let simply = || task.saturating_sub(self.tasks) as u32;
        self.oldest.get(task).copied().unwrap_or_else(simply)
    }

    /// Tasks that the window holds around a task, once it is full.
    pub fn around(&self, task: usize) -> u32 {
        let oldest = self.oldest.get(task);
        oldest.map_or(self.tasks as u32, |&oldest| task as u32 - oldest)
    }

    pub fn bytes(&self) -> usize {
        self.oldest.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tiles::TileWeight;

    /// Tasks that read a tile of their own each.
    fn reach(frames: &[u64], window: Window) -> Vec<u32> {
        let mut tasks = TaskList::default();
        let mut tiles = TileTable::default();
        for (tile, &frame) in frames.iter().enumerate() {
            tasks.pass.push(0);
            tasks.cell.push(tile as u32);
            tasks.inputs.push(tile as u32);
            tasks.input_ends.push(tile as u32 + 1);
            tasks.output_ends.push(0);
            tiles.weights.push(TileWeight { frame, read: frame });
        }
        let reach = window.over(&tasks, &tiles);
        (0..frames.len()).map(|task| task as u32 - reach.oldest(task)).collect()
    }

    fn window(tasks: usize, most: u64) -> Window {
        let tasks_min = 1;
        Window {
            tasks,
            bytes: Some(InBytes { most, tasks_min }),
        }
    }

    #[test]
    fn tiles_of_one_size_are_counted() {
        assert_eq!(reach(&[4; 6], window(9, 12)), [0, 1, 2, 3, 3, 3]);
        assert_eq!(reach(&[4; 6], window(2, 100)), [0, 1, 2, 2, 2, 2]);
        assert_eq!(reach(&[4; 6], Window::of_tasks(2)), [0, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn a_tile_that_stays_is_counted_once() {
        let mut tasks = TaskList::default();
        let mut tiles = TileTable::default();
        tiles.weights.push(TileWeight { frame: 50, read: 50 });
        for task in 0..6 {
            tasks.pass.push(0);
            tasks.cell.push(task);
            tasks.inputs.extend([0, task + 1]);
            tasks.input_ends.push(2 * (task + 1));
            tasks.output_ends.push(0);
            tiles.weights.push(TileWeight { frame: 4, read: 4 });
        }
        let reach = window(9, 12).over(&tasks, &tiles);
        let found: Vec<u32> = (0..6).map(|task| task as u32 - reach.oldest(task)).collect();
        assert_eq!(found, [0, 1, 1, 2, 3, 3]);
    }

    #[test]
    fn a_large_tile_shortens_the_window_while_it_is_in_it() {
        let found = reach(&[1, 1, 1, 1, 50, 1, 1, 1, 1], window(4, 4));
        assert_eq!(found, [0, 1, 2, 3, 4, 1, 1, 2, 3]);
    }

    #[test]
    fn some_tasks_are_always_at_work() {
        assert_eq!(reach(&[50; 4], window(4, 4)), [0, 1, 1, 1]);
    }
}
