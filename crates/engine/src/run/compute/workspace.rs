//! The memory that a worker computes in.

use outcore_store::{Frame, FramePool, StoreError};

use crate::plan::Plan;
use crate::strips::{Buffers, REGISTER_BYTES};

/// The memory of one worker: slots for block values and registers for strips. Reserved when a program starts.
pub struct Workspace {
    pub(in crate::run) slots: Buffers<Frame>,
    pub(in crate::run) registers: Buffers<Frame>,
}

/// Bytes of each slot, and registers, that any pass of a plan needs.
fn workspace_shape(plan: &Plan) -> (Vec<usize>, usize) {
    let mut slots: Vec<usize> = Vec::new();
    for pass in plan.passes() {
        for (index, &bytes) in pass.slots.iter().enumerate() {
            if index == slots.len() {
                slots.push(0);
            }
            slots[index] = slots[index].max(bytes);
        }
    }
    (slots, plan.passes().map(|pass| pass.registers).max().unwrap_or(0))
}

/// Bytes that one worker's workspace is charged.
pub fn workspace_bytes(plan: &Plan) -> u64 {
    let (slots, registers) = workspace_shape(plan);
    let frames: usize = slots.iter().map(|&bytes| FramePool::frame_bytes(bytes)).sum();
    (frames + registers * FramePool::frame_bytes(REGISTER_BYTES)) as u64
}

impl Workspace {
    /// # Errors
    /// When the ledger refuses, which a placed program never meets.
    pub fn new(plan: &Plan, pool: &FramePool) -> Result<Workspace, StoreError> {
        let (slots, registers) = workspace_shape(plan);
        let allocate = |bytes: usize| pool.allocate(bytes, "workspace of a worker");
        Ok(Workspace {
            slots: slots.into_iter().map(allocate).collect::<Result<_, _>>()?,
            registers: (0..registers)
                .map(|_| allocate(REGISTER_BYTES))
                .collect::<Result<_, _>>()?,
        })
    }
}
