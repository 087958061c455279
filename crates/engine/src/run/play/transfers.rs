//! What the issuer hands to the threads that read and write.

use std::ops::Range;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use outcore_store::{watch_unwanted, Frame};

use crate::plan::ArrayKind;
use crate::run::compute::value::TileMemory;
use crate::run::play::player::Issuer;
use crate::run::play::stage::Stage;
use crate::run::play::state::{stopped, RunState, SharedState, TileState};
use crate::run::play::trace::{Subject, WorkKind, WorkMark};
use crate::run::session::locked;
use crate::schedule::tiles::tile_region;
use crate::schedule::TileId;
use crate::EngineError;

impl Issuer<'_, '_> {
    /// Reads a tile from its source, or back from scratch.
    pub(in crate::run) fn read(&mut self, tile: TileId) -> Result<(), EngineError> {
        let stage = self.stage;
        let (array, index) = stage.tiles.locate(tile);
        let info = &stage.plan.arrays[array as usize];
        let region = tile_region(stage.plan, array, index);
        let source = match &info.kind {
            ArrayKind::Source(source) => Some(source.clone()),
            _ => None,
        };
        let slot = self.slots.get(&tile).cloned();
        if let Some(left) = self.read_backs.get_mut(&tile) {
            *left -= 1;
        }
        let (io, scratch) = (stage.io_of_array(array), stage.scratch.cloned());
        self.submit_read(tile..tile + 1, move |frames| match (&source, slot, scratch) {
            (Some(source), _, _) => Ok(source.read(&region, &mut frames[0], &io)?),
            (None, Some(slot), Some(scratch)) => {
                scratch.read(&slot, &mut frames[0], &io)?;
                Ok(0)
            }
            _ => Err(EngineError::Internal(
                "a tile is read back that was never spilled".into(),
            )),
        })
    }

    /// Reads a tile that was written back from its output.
    pub(in crate::run) fn read_back(&mut self, tile: TileId) -> Result<(), EngineError> {
        let stage = self.stage;
        let (array, index) = stage.tiles.locate(tile);
        let output = stage.tiles.read_back[array as usize]
            .ok_or_else(|| EngineError::Internal("a tile is read back from no output".into()))?;
        let (sink, io) = (stage.sinks[output].clone(), stage.io_of_array(array));
        let region = tile_region(stage.plan, array, index);
        self.submit_read(tile..tile + 1, move |frames| {
            sink.read_back(&region, &mut frames[0], &io)?;
            Ok(0)
        })
    }

    /// Reads neighbouring tiles of a source in one go.
    pub(in crate::run) fn read_group(&mut self, first: TileId, count: u16) -> Result<(), EngineError> {
        let stage = self.stage;
        let (array, index) = stage.tiles.locate(first);
        let source = stage.plan.arrays[array as usize]
            .grouped_source()
            .cloned()
            .ok_or_else(|| EngineError::Internal("tiles are read together that lie in no rows".into()))?;
        let regions: Vec<_> = (0..u64::from(count))
            .map(|at| tile_region(stage.plan, array, index + at))
            .collect();
        let (io, staging) = (stage.io_of_array(array), stage.staging.clone());
        self.submit_read(first..first + TileId::from(count), move |frames| {
            let mut buffer = locked(&staging).pop().expect("one for each reading thread");
            let result = source.read_group(&regions, frames, &mut buffer, &io);
            locked(&staging).push(buffer);
            Ok(result.map(|()| 0)?)
        })
    }

    /// Reserves a frame for each tile and has `work` fill them; it returns where data begins in them.
    fn submit_read(
        &mut self,
        tiles: Range<TileId>,
        work: impl FnOnce(&mut [Frame]) -> Result<usize, EngineError> + Send + 'static,
    ) -> Result<(), EngineError> {
        let stage = self.stage;
        let mut frames = tiles
            .clone()
            .map(|tile| {
                let bytes = stage.tiles.weights[tile as usize].frame as usize;
                stage.pool.allocate(bytes, "tile")
            })
            .collect::<Result<Vec<_>, _>>()?;
        let shared = stage.shared.clone();
        let subject = Subject {
            of: stage.tiles.locate(tiles.start).0,
            part: tiles.start,
        };
        {
            let mut state = shared.lock();
            for tile in tiles.clone() {
                state.tiles.insert(tile, TileState::default());
            }
            state.transfers += 1;
        }
        let untouched = frames.iter().any(Frame::is_untouched);
        let read = move |mut frames: Vec<Frame>| {
            let begin = Instant::now();
            let begun = shared.begin(WorkKind::Read);
            let result = if shared.lock().stopping {
                Err(EngineError::Cancelled)
            } else {
                // Requests to a store may wait for long: a run that ends does not wait for them.
                let _watched = watch_unwanted(&shared.unwanted);
                guarded(|| work(&mut frames))
            };
            let mut state = shared.lock();
            state.end(begun, subject, Instant::now());
            state.busy.read_ns += begin.elapsed().as_nanos() as u64;
            state.transfers -= 1;
            match result {
                Ok(offset) => {
                    for (tile, frame) in tiles.zip(frames) {
                        state.arrive(tile, TileMemory::Frame { frame, offset });
                    }
                }
                Err(error) => {
                    drop(frames);
                    state.fail(error);
                }
            }
            drop(state);
            shared.notify();
        };
        if untouched {
            let (reads, shared) = (stage.io_pools.reads.queue().clone(), stage.shared.clone());
            stage.io_pools.touches.submit(Box::new(move || {
                let begun = shared.begin(WorkKind::Touch);
                frames.iter_mut().for_each(Frame::touch);
                shared.end(begun, subject);
                reads.submit(Box::new(move || read(frames)));
            }));
        } else {
            stage.io_pools.reads.submit(Box::new(move || read(frames)));
        }
        Ok(())
    }

    /// Writes a temporary to scratch, behind the tasks that follow.
    pub(in crate::run) fn spill(&mut self, tile: TileId) -> Result<(), EngineError> {
        self.wait_until(|state| {
            let resident = state.tile(tile);
            resident.is_unused() && resident.memory.is_some()
        })?;
        let stage = self.stage;
        let scratch = stage
            .scratch
            .cloned()
            .ok_or_else(|| EngineError::Internal("a program that spills has no scratch".into()))?;
        let slot = match self.slots.get(&tile) {
            Some(slot) => slot.clone(),
            None => Arc::new(scratch.slot(stage.tiles.weights[tile as usize].frame as usize)?),
        };
        self.slots.insert(tile, slot.clone());
        let (array, _) = stage.tiles.locate(tile);
        let mut state = stage.shared.lock();
        let memory = state.tile(tile).memory.clone().expect("waited for");
        state.tile(tile).writes += 1;
        state.transfers += 1;
        drop(state);
        let (shared, io) = (stage.shared.clone(), stage.io.clone());
        stage.io_pools.writes.submit(Box::new(move || {
            let transfer = shared.begin_transfer(WorkKind::Spill, tile, array);
            let result = guarded(|| Ok(scratch.write(&slot, memory.padded(), &io)?));
            drop(memory);
            if result.is_ok() {
                shared.lock().spilled_bytes += slot.bytes();
            }
            finish_write(&shared, transfer, result);
        }));
        Ok(())
    }
}

/// A transfer that panics ends the run like one that fails: whoever counts transfers would wait for it for ever.
fn guarded<T>(transfer: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(transfer)).unwrap_or_else(|panic| Err(stopped("a transfer", panic)))
}

/// A tile that is being written.
struct TileWrite {
    tile: TileId,
    array: u32,
    begin: Instant,
    begun: Option<WorkMark>,
}

impl SharedState {
    fn begin_transfer(&self, kind: WorkKind, tile: TileId, array: u32) -> TileWrite {
        TileWrite {
            tile,
            array,
            begin: Instant::now(),
            begun: self.begin(kind),
        }
    }
}

fn finish_write(shared: &SharedState, transfer: TileWrite, result: Result<(), EngineError>) {
    let end = Instant::now();
    let mut state: MutexGuard<'_, RunState> = shared.lock();
    state.busy.write_ns += (end - transfer.begin).as_nanos() as u64;
    let subject = Subject {
        of: transfer.array,
        part: transfer.tile,
    };
    state.end(transfer.begun, subject, end);
    state.transfers -= 1;
    if let Some(resident) = state.tiles.get_mut(&transfer.tile) {
        resident.writes -= 1;
    }
    if let Err(error) = result {
        state.fail(error);
    }
    drop(state);
    shared.notify();
}

impl Stage<'_> {
    /// Submits the writes of a finished output tile, when the program has asked for them.
    pub fn start_writes(&self, state: &mut RunState, tile: TileId) {
        let resident = state.tile(tile);
        if !resident.is_ready() || !std::mem::take(&mut resident.write_when_ready) {
            return;
        }
        let memory = resident.memory.clone().expect("ready tiles have memory");
        let (array, index) = self.tiles.locate(tile);
        let region = tile_region(self.plan, array, index);
        for &output in &self.plan.arrays[array as usize].outputs {
            if matches!(*memory, TileMemory::Claimed(_)) {
                // Computed in place: the one result buffer holds it already.
                continue;
            }
            let sink = self.sinks[output].clone();
            state.tile(tile).writes += 1;
            state.transfers += 1;
            let (memory, io, shared, region) = (
                memory.clone(),
                self.io_of_output(output),
                self.shared.clone(),
                region.clone(),
            );
            self.io_pools.writes.submit(Box::new(move || {
                let transfer = shared.begin_transfer(WorkKind::Write, tile, array);
                let result = if shared.lock().stopping {
                    Err(EngineError::Cancelled)
                } else {
                    guarded(|| Ok(sink.write(&region, memory.padded(), &io)?))
                };
                drop(memory);
                finish_write(&shared, transfer, result);
            }));
        }
    }
}
