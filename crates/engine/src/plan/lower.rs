//! Algorithm nodes become works over the plan's arrays.

use std::sync::Arc;

use super::{ArrayId, ArrayTable, Producer};
use crate::expr::{AlgorithmKey, Expr, Node, Op};
use crate::task::{Access, Grid, Work};

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

/// The works of the algorithm that `node` is a result of. Results that nobody asked for are temporaries.
pub fn lower(key: &AlgorithmKey, node: &Expr, table: &mut ArrayTable, producers: &mut Vec<Producer>) {
    let grids: Vec<Grid> = node.inputs.iter().map(|input| input.grid()).collect();
    let is_source = |input: &Expr| matches!(input.op, Op::Source(_));
    let mut sets: Vec<ArrayId> = node
        .inputs
        .iter()
        .map(|input| table.id(input, !is_source(input)))
        .collect();
    for (index, grid) in key.0.results().iter().enumerate() {
        let op = Op::Algorithm(key.clone(), index);
        let (shape, tile) = (grid.shape.clone(), grid.tile.clone());
        let result = Node::intern(op, node.inputs.clone(), shape, grid.dtype, tile);
        sets.push(table.id(&result, true));
    }
    producers.extend(key.0.works(&grids).into_iter().map(|work| {
        Producer::Work(WorkStep {
            label: work.label(),
            work,
            sets: sets.clone(),
        })
    }));
}
