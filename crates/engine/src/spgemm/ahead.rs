//! Tiles that are read before they are needed: one thread reads them in the order in which they were asked for, while the
//! others multiply.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use outcore_store::Io;

use super::operands::{ProductOperand, SparseProduct};
use crate::sparse::TileBytes;
use crate::EngineError;

/// A tile of an operand.
pub(super) type OperandTile = (ProductOperand, usize);

/// Invariant: tiles that are due, being read or ready have no more than `memory` bytes together.
pub(super) struct ReadAhead<'a> {
    what: &'a SparseProduct<'a>,
    io: &'a Io,
    memory: u64,
    state: Mutex<AheadState>,
    changed: Condvar,
}

#[derive(Default)]
struct AheadState {
    due: VecDeque<OperandTile>,
    reading: Option<OperandTile>,
    ready: BTreeMap<OperandTile, Result<TileBytes, EngineError>>,
    bytes: u64,
    is_over: bool,
}

impl<'a> ReadAhead<'a> {
    pub fn new(what: &'a SparseProduct<'a>, io: &'a Io, memory: u64) -> ReadAhead<'a> {
        ReadAhead {
            what,
            io,
            memory,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, AheadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'b>(&self, state: MutexGuard<'b, AheadState>) -> MutexGuard<'b, AheadState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self, (operand, tile): OperandTile) -> u64 {
        self.what.matrix(operand).file.tile_bytes(tile)
    }

    /// Has tiles be read in their order, as many as there is room for.
    pub fn ask(&self, tiles: impl Iterator<Item = OperandTile>) {
        let mut state = self.state();
        for tile in tiles {
            if state.knows(tile) {
                continue;
            }
            let bytes = self.bytes(tile);
            if state.bytes + bytes > self.memory {
                break;
            }
            state.bytes += bytes;
            state.due.push_back(tile);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A tile, read ahead or now.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn take(&self, tile: OperandTile) -> Result<TileBytes, EngineError> {
        let mut state = self.state();
        while state.reading == Some(tile) {
            state = self.wait(state);
        }
        let found = state.ready.remove(&tile);
        let is_due = state.due.iter().position(|due| *due == tile);
        if let Some(place) = is_due {
            state.due.remove(place);
        }
        if found.is_some() || is_due.is_some() {
            state.bytes -= self.bytes(tile);
        }
        drop(state);
        found.unwrap_or_else(|| self.what.matrix(tile.0).read_tile(tile.1, self.io))
    }

    /// Reads what is due until all is over.
    pub fn work(&self) {
        let mut state = self.state();
        while !state.is_over {
            let Some(tile) = state.due.pop_front() else {
                state = self.wait(state);
                continue;
            };
            state.reading = Some(tile);
            drop(state);
            // Nobody waits for a tile whose reading panics: who takes it reads it.
            let done = ReadingEnd(self);
            let read = self.what.matrix(tile.0).read_tile(tile.1, self.io);
            self.state().ready.insert(tile, read);
            drop(done);
            state = self.state();
        }
    }

    /// Ends the reading when it is dropped.
    pub fn until_dropped(&self) -> AheadEnd<'_, 'a> {
        AheadEnd(self)
    }
}

impl AheadState {
    fn knows(&self, tile: OperandTile) -> bool {
        self.reading == Some(tile) || self.ready.contains_key(&tile) || self.due.contains(&tile)
    }
}

/// Says that no tile is being read when it is dropped.
struct ReadingEnd<'b, 'a>(&'b ReadAhead<'a>);

impl Drop for ReadingEnd<'_, '_> {
    fn drop(&mut self) {
        self.0.state().reading = None;
        self.0.changed.notify_all();
    }
}

pub(super) struct AheadEnd<'b, 'a>(&'b ReadAhead<'a>);

impl Drop for AheadEnd<'_, '_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_all();
    }
}
