//! A work in a plan: an algorithm's tasks over arrays.

use std::sync::Arc;

use super::gather::ArrayId;
use crate::task::{Access, Work};

/// A work of an algorithm, with the arrays that its tile sets are.
#[derive(Debug)]
pub struct WorkStep {
    pub label: String,
    pub work: Arc<dyn Work>,
    pub sets: Vec<ArrayId>,
}

impl WorkStep {
    /// Calls `each` with the array, the tile's position in its grid and the access of every operand of a task.
    pub fn operands(&self, task: u64, each: &mut dyn FnMut(ArrayId, u64, Access)) {
        self.work
            .operands(task, &mut |set, tile, access| each(self.sets[set], tile, access));
    }
}

impl WorkStep {
    /// The arrays that its tasks touch in certain ways, each once.
    pub fn accessed(&self, wanted: impl Fn(Access) -> bool) -> Vec<ArrayId> {
        let mut arrays = Vec::new();
        for task in 0..self.work.tasks() {
            self.operands(task, &mut |array, _, access| {
                if wanted(access) && !arrays.contains(&array) {
                    arrays.push(array);
                }
            });
        }
        arrays
    }
}
