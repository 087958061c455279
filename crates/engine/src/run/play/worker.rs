//! Worker threads: they take tasks whose operands are there, run them, and hand on what they made.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use outcore_store::Frame;

use crate::place::slabs::{leaf, leaves};
use crate::plan::{Accumulation, Pass, PassRoot, Producer, RootKind, WorkStep};

use crate::run::compute::product::add_partials;
use crate::run::compute::task::{Task, TaskBuffer};
use crate::run::compute::tree::{Tree, TreeStep};
use crate::run::compute::value::{Inputs, TileMemory};
use crate::run::compute::workspace::Workspace;
use crate::run::play::stage::Stage;
use crate::run::play::state::{stopped, RunState, RunningTask, TreeKey};
use crate::run::play::trace::{Subject, WorkKind};
use crate::schedule::tasks::root_tile;
use crate::schedule::tiles::{coordinates, tile_region};
use crate::schedule::{Role, TileId};
use crate::strips::Buffers;
use crate::task::Bound;
use crate::{cancel, EngineError};

/// Takes tasks until the program stops.
pub fn work(stage: &Stage<'_>, mut workspace: Workspace) {
    let _inside = crate::run::session::nesting::enter();
    let mut guard = stage.shared.lock();
    loop {
        if guard.stopping {
            return;
        }
        guard = match guard.ready.pop_first() {
            Some(task) => run_task(stage, guard, task, &mut workspace),
            None => stage.shared.wait(guard),
        };
    }
}

/// Runs a task that was ready, without the lock meanwhile.
pub fn run_task<'a>(
    stage: &'a Stage<'_>,
    mut guard: MutexGuard<'a, RunState>,
    task: u32,
    workspace: &mut Workspace,
) -> MutexGuard<'a, RunState> {
    let begin = Instant::now();
    let pass = stage.tasks.pass[task as usize] as usize;
    let producer = &stage.plan.producers[pass];
    let calls = u32::from(producer.calls_functions());
    let running = RunningTask {
        pass: pass as u32,
        begin,
    };
    guard.running.push(running);
    guard.in_functions += calls;
    let begun = guard.begin(WorkKind::Compute, begin);
    // A worker that panics ends the run like one that fails: its task would be waited for for ever.
    let taken = catch_unwind(AssertUnwindSafe(|| take(stage, &mut guard, task)));
    drop(guard);
    let work = |job| {
        catch_unwind(AssertUnwindSafe(|| match producer {
            Producer::Pass(pass) => run(stage, pass, job, workspace),
            Producer::Work(step) => run_work(stage, step, job),
        }))
    };
    let result = taken.and_then(work);
    let end = Instant::now();
    let elapsed = (end - begin).as_nanos() as u64;
    guard = stage.shared.lock();
    let subject = Subject {
        of: pass as u32,
        part: stage.tasks.cell[task as usize],
    };
    guard.end(begun, subject, end);
    guard.busy.compute_ns += elapsed;
    if let Some(place) = guard.running.iter().position(|task| *task == running) {
        guard.running.swap_remove(place);
    }
    guard.in_functions -= calls;
    match result {
        Ok(Ok(())) => {
            guard.done[pass].tasks += 1;
            guard.done[pass].compute_ns += elapsed;
            guard.mark_complete(task);
        }
        Ok(Err(error)) => guard.fail(error),
        Err(panic) => guard.fail(stopped("a worker", panic)),
    }
    stage.shared.notify();
    guard
}

/// A task with the memory it works on.
struct Job {
    task: u32,
    inputs: Inputs,
    outputs: Buffers<TaskBuffer>,
    /// That of a task of an algorithm.
    workspace: Option<Frame>,
}

/// Collects a task's operands; called with the lock held, so that chains and slabs are consistent.
fn take(stage: &Stage<'_>, state: &mut RunState, task: u32) -> Job {
    let index = task as usize;
    let pass_index = stage.tasks.pass[index];
    let roots = stage.plan.pass(pass_index).map_or(&[][..], |pass| &pass.roots);
    let written = stage.tasks.outputs(index);
    let mut inputs: Vec<(TileId, Arc<TileMemory>)> = stage
        .tasks
        .inputs(index)
        .iter()
        .map(|&tile| (tile, state.tile(tile).memory.clone().expect("ready tiles have memory")))
        .collect();
    if stage.plan.pass(pass_index).is_some() {
        inputs.sort_unstable_by_key(|&(tile, _)| tile);
    }
    let mut outputs = Buffers::places(roots.len().max(written.len()));
    for output in written {
        if output.role == Role::Closing {
            continue;
        }
        let tile = state.tile(output.tile);
        let memory = tile
            .memory
            .take()
            .and_then(Arc::into_inner)
            .expect("outputs belong to one task at a time");
        let buffer = TaskBuffer {
            memory,
            started: tile.started,
        };
        outputs.put(output.root as usize, buffer);
    }
    for (root_index, root) in roots.iter().enumerate() {
        if matches!(root.kind, RootKind::Reduce | RootKind::Contraction) {
            let key = (pass_index, root_index as u32);
            let frame = state
                .slabs
                .get_mut(&key)
                .and_then(Vec::pop)
                .expect("partial results are reserved for the window");
            let buffer = TaskBuffer {
                memory: TileMemory::Frame { frame, offset: 0 },
                started: false,
            };
            outputs.put(root_index, buffer);
        }
    }
    Job {
        task,
        inputs: Inputs(inputs),
        outputs,
        workspace: state.workspaces.remove(&task),
    }
}

/// A task of an algorithm.
fn run_work(stage: &Stage<'_>, step: &WorkStep, job: Job) -> Result<(), EngineError> {
    let index = job.task as usize;
    let number = u64::from(stage.tasks.cell[index]);
    let mut outputs = job.outputs;
    let mut workspace = job.workspace;
    let mut bound = Bound::default();
    let bytes = |tile: TileId| {
        let (array, at) = stage.tiles.locate(tile);
        let region = tile_region(stage.plan, array, at);
        stage.plan.arrays[array as usize].tile_bytes(at, &region) as usize
    };
    bound.reads = job
        .inputs
        .0
        .iter()
        .map(|(tile, memory)| &memory.bytes()[..bytes(*tile)])
        .collect();
    for (output, buffer) in stage.tasks.outputs(index).iter().zip(outputs.iter_mut().flatten()) {
        bound.writes.push(&mut buffer.memory.bytes_mut()[..bytes(output.tile)]);
    }
    let space = step.work.workspace_bytes(number) as usize;
    let result = cancel::until(&stage.shared.unwanted, || match &mut workspace {
        Some(frame) => step.work.run(number, &mut bound, &mut frame[..space]),
        None => step.work.run(number, &mut bound, &mut []),
    });
    drop(bound);
    drop(job.inputs);
    if let Some(frame) = workspace {
        // It is given back where the program says so.
        stage.shared.lock().workspaces.insert(job.task, frame);
    }
    result?;
    publish(stage, job.task, outputs);
    Ok(())
}

fn run(stage: &Stage<'_>, pass: &Pass, job: Job, workspace: &mut Workspace) -> Result<(), EngineError> {
    let Job {
        task,
        inputs,
        mut outputs,
        ..
    } = job;
    let index = task as usize;
    let pass_index = stage.tasks.pass[index];
    let mut cell = Vec::new();
    let counts = pass.domain.counts();
    coordinates(&counts, u64::from(stage.tasks.cell[index]), &mut cell);
    let work = Task {
        plan: stage.plan,
        tiles: stage.tiles,
        pass,
        cell: &cell,
        inputs: &inputs,
    };
    work.run(&mut outputs, workspace)?;
    drop(inputs);
    for (root_index, root) in pass.roots.iter().enumerate() {
        if matches!(root.kind, RootKind::Reduce | RootKind::Contraction) {
            let TileMemory::Frame { frame, .. } = outputs.take(root_index).memory else {
                unreachable!("partials are frames")
            };
            let kept = root.kept_dims();
            let key = (pass_index, root_index as u32, root_tile(&kept, &counts, &cell));
            join(
                stage,
                root,
                key,
                frame,
                leaf(&kept, &counts, &cell),
                leaves(&kept, &counts),
            );
        }
    }
    publish(stage, task, outputs);
    Ok(())
}

/// Gives finished tiles to their consumers and lets go of the inputs.
fn publish(stage: &Stage<'_>, task: u32, mut outputs: Buffers<TaskBuffer>) {
    let mut state = stage.shared.lock();
    let index = task as usize;
    for output in stage.tasks.outputs(index) {
        if let Role::Whole | Role::Accumulate { .. } = output.role {
            let buffer = outputs.take(output.root as usize);
            let tile = state.tile(output.tile);
            tile.memory = Some(Arc::new(buffer.memory));
            tile.started = true;
            // A tree's tile stays in use until the tree is complete, which another task may bring about.
            state.leave(output.tile, task);
            if !matches!(output.role, Role::Accumulate { last: false, .. }) {
                stage.start_writes(&mut state, output.tile);
            }
        }
    }
    for &tile in stage.tasks.inputs(index) {
        state.leave(tile, task);
    }
    let open = state
        .open_tasks
        .get_mut(&stage.tasks.pass[index])
        .expect("counted when issued");
    *open -= 1;
}

/// Puts a partial result into its tree, joining as far as siblings are there.
fn join(stage: &Stage<'_>, root: &PassRoot, key: TreeKey, partial: Frame, leaf: u64, leaves: u64) {
    let (mut value, mut level, mut index) = (partial, 0, leaf);
    loop {
        let step = {
            let mut state = stage.shared.lock();
            state
                .trees
                .entry(key)
                .or_insert_with(|| Tree::new(leaves))
                .put(value, level, index)
        };
        match step {
            TreeStep::Wait => return,
            TreeStep::Join {
                left,
                right,
                level: at,
                index: position,
            } => {
                let mut left = left;
                combine(root, &mut left, &right);
                stage.shared.lock().slabs.entry((key.0, key.1)).or_default().push(right);
                (value, level, index) = (left, at, position);
            }
            TreeStep::Done(whole) => {
                let mut state = stage.shared.lock();
                state.trees.remove(&key);
                state.finished_trees.insert(key, whole);
                finish_tree(stage, &mut state, key);
                return;
            }
        }
    }
}

fn combine(root: &PassRoot, left: &mut [u8], right: &[u8]) {
    match &root.accumulation {
        Some(Accumulation::Reduce { reducer, .. }) => reducer.combine(left, right),
        Some(Accumulation::Product) => add_partials(root.node.dtype, left, right),
        None => unreachable!("only accumulated roots have partial results"),
    }
}

/// Turns a complete tree into its tile, once both are there.
pub fn finish_tree(stage: &Stage<'_>, state: &mut RunState, key: TreeKey) {
    let root = &stage.plan.pass(key.0).expect("trees belong to passes").roots[key.1 as usize];
    let tile = stage.tiles.first[root.array as usize] + key.2 as TileId;
    if !state.tiles.contains_key(&tile) {
        return;
    }
    let Some(partial) = state.finished_trees.remove(&key) else {
        return;
    };
    let mut memory = state
        .tile(tile)
        .memory
        .take()
        .and_then(Arc::into_inner)
        .expect("an issued result has its own memory");
    let region = crate::schedule::tiles::tile_region(stage.plan, root.array, key.2);
    let elements = region.shape.iter().product::<u64>() as usize;
    let bytes = elements * root.node.dtype.size();
    match &root.accumulation {
        Some(Accumulation::Reduce { reducer, finish, .. }) => {
            let accumulators = elements * reducer.op.accumulator_size(reducer.input);
            reducer.finish(&partial[..accumulators], *finish, &mut memory.bytes_mut()[..bytes]);
        }
        _ => memory.bytes_mut()[..bytes].copy_from_slice(&partial[..bytes]),
    }
    state.slabs.entry((key.0, key.1)).or_default().push(partial);
    state.tile(tile).memory = Some(Arc::new(memory));
    state.leave_first(tile);
    stage.start_writes(state, tile);
}
