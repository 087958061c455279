//! What a run works with.

use std::sync::{Arc, Mutex};

use outcore_store::{Frame, FramePool, Io, Scratch, Sink, Turn};

use crate::place::slabs::Slab;
use crate::place::Program;
use crate::plan::{Plan, Producer};
use crate::run::play::state::SharedState;
use crate::run::session::progress::IoPools;
use crate::schedule::{TaskList, TileTable};

/// Everything a run works with.
pub struct Stage<'a> {
    pub plan: &'a Plan,
    pub tiles: &'a TileTable,
    pub tasks: &'a TaskList,
    pub program: &'a Program,
    pub slabs: &'a [Vec<Slab>],
    pub sinks: &'a [Arc<dyn Sink>],
    pub pool: &'a FramePool,
    pub io: &'a Io,
    /// Where the run is traced.
    pub accounts: Option<&'a IoAccounts>,
    pub io_pools: &'a IoPools,
    pub scratch: Option<&'a Scratch>,
    /// One buffer per reading thread, when neighbouring tiles are read together.
    pub staging: Arc<Mutex<Vec<Frame>>>,
    pub shared: Arc<SharedState>,
    pub bytes_before: u64,
    pub io_threads: usize,
    pub turn: &'a Turn,
}

/// Counters of the reads of each array and the writes of each output.
pub struct IoAccounts {
    arrays: Vec<Io>,
    outputs: Vec<Io>,
}

impl IoAccounts {
    /// Counters within `io`, which counts all of their bytes.
    pub fn within(io: &Io, arrays: usize, outputs: usize) -> IoAccounts {
        let scopes = |count: usize| (0..count).map(|_| io.scoped()).collect();
        IoAccounts {
            arrays: scopes(arrays),
            outputs: scopes(outputs),
        }
    }

    /// Bytes that were read, by array, and written, by output.
    pub fn bytes(&self) -> (Vec<u64>, Vec<u64>) {
        let read = self.arrays.iter().map(|io| io.counters().bytes_read);
        let written = self.outputs.iter().map(|io| io.counters().bytes_written);
        (read.collect(), written.collect())
    }
}

/// A program of no more tasks, whose tiles have no more bytes together, is computed in its caller's thread.
const LITTLE_TASKS: usize = 4;
const LITTLE_BYTES: u64 = 1 << 20;

impl Stage<'_> {
    /// Whether the program is over before threads for it would have begun: a few fused passes over little, in which no
    /// function of the user is called.
    pub fn is_little_work(&self) -> bool {
        let is_pass = |producer: &Producer| producer.pass().is_some() && !producer.calls_functions();
        self.tasks.len() <= LITTLE_TASKS
            && self.plan.producers.iter().all(is_pass)
            && self.plan.arrays.iter().map(|array| array.node.nbytes()).sum::<u64>() <= LITTLE_BYTES
    }

    /// The way of an array's reads to the disks.
    pub fn io_of_array(&self, array: u32) -> Io {
        let account = self.accounts.map(|accounts| &accounts.arrays[array as usize]);
        account.unwrap_or(self.io).clone()
    }

    /// The way of an output's writes to the disks.
    pub fn io_of_output(&self, output: usize) -> Io {
        let account = self.accounts.map(|accounts| &accounts.outputs[output]);
        account.unwrap_or(self.io).clone()
    }
}
