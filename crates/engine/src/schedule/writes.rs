//! The tiles that a task writes or adds to.

use super::tiles::{TileId, TileTable};
use crate::plan::{ArrayId, Pass, Plan, Producer};
use crate::task::Access;

/// Calls `each` with every tile that a task of a work updates: what is in it before counts.
pub fn each_updated(plan: &Plan, tiles: &TileTable, (producer, task): (u32, u32), mut each: impl FnMut(TileId)) {
    if let Producer::Work(step) = &plan.producers[producer as usize] {
        step.operands(u64::from(task), &mut |array, index, access| {
            if access == Access::Update {
                each(tiles.id(array, index));
            }
        });
    }
}

/// The tiles that tasks contribute to; what the cells of passes have in common is worked out once.
pub struct WrittenTiles<'a> {
    plan: &'a Plan,
    tiles: &'a TileTable,
    /// By producer, of each root the array and the dimensions that number its tiles.
    roots: Vec<Vec<(ArrayId, Vec<KeptDim>)>>,
}

/// A dimension of a pass: cells that follow each other along it are `stride` apart.
struct KeptDim {
    stride: u64,
    count: u64,
}

impl<'a> WrittenTiles<'a> {
    pub fn new(plan: &'a Plan, tiles: &'a TileTable) -> WrittenTiles<'a> {
        let of_pass = |pass: &Pass| {
            let counts = pass.domain.counts();
            let kept = |dim: usize| KeptDim {
                stride: counts[dim + 1..].iter().product(),
                count: counts[dim],
            };
            let roots = pass.roots.iter();
            roots
                .map(|root| (root.array, root.kept_dims().into_iter().map(kept).collect()))
                .collect()
        };
        let roots = plan
            .producers
            .iter()
            .map(|producer| producer.pass().map_or(vec![], of_pass));
        WrittenTiles {
            plan,
            tiles,
            roots: roots.collect(),
        }
    }

    /// Calls `each` with every tile that a task, by its producer and number, contributes to.
    pub fn each(&self, (producer, task): (u32, u32), mut each: impl FnMut(TileId)) {
        if let Producer::Work(step) = &self.plan.producers[producer as usize] {
            step.operands(u64::from(task), &mut |array, index, access| {
                if access != Access::Read {
                    each(self.tiles.id(array, index));
                }
            });
        }
        for (array, dims) in &self.roots[producer as usize] {
            let along = |dim: &KeptDim| u64::from(task) / dim.stride % dim.count;
            let index = dims.iter().fold(0, |index, dim| index * dim.count + along(dim));
            each(self.tiles.id(*array, index));
        }
    }
}
