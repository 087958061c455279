//! The tiles that a task writes or adds to.

use super::tasks::root_tile;
use super::tiles::{coordinates, TileId, TileTable};
use crate::plan::{Plan, Producer};
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

/// Calls `each` with every tile that a task, by its producer and number, contributes to.
pub fn each_written(plan: &Plan, tiles: &TileTable, (producer, task): (u32, u32), mut each: impl FnMut(TileId)) {
    let pass = match &plan.producers[producer as usize] {
        Producer::Pass(pass) => pass,
        Producer::Work(step) => {
            step.operands(u64::from(task), &mut |array, index, access| {
                if access != Access::Read {
                    each(tiles.id(array, index));
                }
            });
            return;
        }
    };
    let counts = pass.domain.counts();
    let mut cell = Vec::new();
    coordinates(&counts, u64::from(task), &mut cell);
    for root in &pass.roots {
        each(tiles.id(root.array, root_tile(&root.kept_dims(), &counts, &cell)));
    }
}
