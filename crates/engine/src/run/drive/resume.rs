//! Computations that can be gone on with: outputs with journals beside them, results of stages in a folder of their own.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use outcore_store::{
    agrees_with_sums, is_made_by, remove_with_sums, target_of, Annotations, Io, Look, Resumable, SinkPlan,
    StagesFolder, StoreError,
};

use crate::expr::digest::Encoding;
use crate::expr::lasting::Lasting;
use crate::expr::staged::Room;
use crate::expr::{Digest, Expr};
use crate::ops;
use crate::run::prepare::{in_chunks, sink_plan};
use crate::run::session::{locked, Session, Target, POLL};
use crate::EngineError;

const KEY: &str = "computation";

/// What goes on from one run of a computation to the next.
pub(super) struct Resuming {
    folder: StagesFolder,
    /// What is computed: what is in the folder belongs to it.
    key: String,
    /// What could not be gone on with, and why.
    notes: Mutex<Vec<String>>,
    /// Results of stages that were found to be what was written.
    believed: Mutex<HashSet<PathBuf>>,
    /// Results of stages that plans hold: a plan that is made anew holds them with the one that it is made for.
    held: Mutex<HashMap<PathBuf, Weak<Resumable>>>,
    verified_bytes: AtomicU64,
}

/// What is computed, in which tiles.
fn key_of(output: &Expr, plan: &SinkPlan, annotations: Option<&Annotations>, codecs: Option<&str>) -> Digest {
    let mut encoding = Encoding::default();
    encoding
        .text(&Lasting::of(output).digest.to_string())
        .words(plan.tile().iter().copied());
    encoding.text(plan.dtype().name());
    if let Some(own) = annotations {
        // The values are the same, and the file says another thing of them.
        encoding.text(&format!("{own:?}"));
    }
    if let Some(codecs) = codecs {
        encoding.text("codecs").text(codecs);
    }
    encoding.digest()
}

/// Whether what was begun or is there at a path is the output of this node; nothing where there is nothing.
///
/// # Errors
/// The errors of [`SinkPlan`]: a place that cannot be written in.
pub fn is_begun_for(node: &Expr, path: &Path) -> Result<Option<bool>, EngineError> {
    let plan = sink_plan(node, path, true, None, None)?;
    let key = key_of(node, &plan, None, None).0;
    Ok(Resumable::is_begun_for(&plan, &key))
}

/// Holds the outputs that may be gone on with. Gives the outputs as they will be stored, and their targets.
pub(super) fn hold_outputs(
    session: &Session,
    outputs: &[Expr],
    targets: &[Target],
    watch: &mut dyn FnMut() -> Result<(), EngineError>,
) -> Result<(Vec<Expr>, Vec<Target>), EngineError> {
    looking(watch, |look| hold_each(session, outputs, targets, look))
}

/// Has the store ask `watch` from time to time, and gives the error that ended it.
fn looking<T>(
    watch: &mut dyn FnMut() -> Result<(), EngineError>,
    hold: impl FnOnce(Look<'_>) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let (mut looked, mut ended) = (Instant::now(), None);
    let mut look = || {
        if ended.is_none() && looked.elapsed() >= POLL {
            looked = Instant::now();
            ended = watch().err();
        }
        let ended = ended.as_ref().map(ToString::to_string);
        ended.map_or(Ok(()), |reason| Err(StoreError::Invalid(reason)))
    };
    let held = hold(&mut look);
    match ended {
        // The store is only told that it was.
        Some(error) => Err(error),
        None => held,
    }
}

fn hold_each(
    session: &Session,
    outputs: &[Expr],
    targets: &[Target],
    look: Look<'_>,
) -> Result<(Vec<Expr>, Vec<Target>), EngineError> {
    let mut stored = Vec::new();
    let mut held = Vec::new();
    for (output, target) in outputs.iter().zip(targets) {
        let Target::Path {
            path,
            overwrite,
            resume: true,
            annotations,
            codecs,
            ..
        } = target
        else {
            stored.push(output.clone());
            held.push(target.clone());
            continue;
        };
        let output = in_chunks(output, target);
        let (annotations, codecs) = (annotations.as_deref(), codecs.as_deref());
        let plan_it = |overwrite| sink_plan(&output, path, overwrite, annotations, codecs);
        let plan = match plan_it(*overwrite) {
            Err(StoreError::Exists { .. }) => {
                let there = plan_it(true)?;
                let key = key_of(&output, &there, annotations, codecs).0;
                // Where that is not what the same call made, it is still in the way.
                if !Resumable::take_back(&there, &key, &session.io, look)? && is_made_by(there.target(), &key) {
                    held.push(Target::Resumed(Arc::new(Resumable::standing(there)?)));
                    stored.push(output);
                    continue;
                }
                plan_it(false).inspect_err(|_| remove_stages(session, targets))?
            }
            planned => planned?,
        };
        let key = key_of(&output, &plan, annotations, codecs);
        let resumable = Resumable::hold(plan, key.0, &session.io, look)?;
        let is_own = Lasting::of(&output).is_own;
        held.push(Target::Resumed(Arc::new(resumable.of_process(is_own))));
        stored.push(output);
    }
    Ok((stored, held))
}

/// The outputs, without the work for those that are durable as a whole and have only to be published.
pub(super) fn without_complete(outputs: Vec<Expr>, targets: &[Target]) -> Vec<Expr> {
    let complete = |target: &Target| matches!(target, Target::Resumed(output) if output.is_left_alone());
    let outputs = outputs.into_iter().zip(targets);
    outputs
        .map(|(output, target)| {
            if complete(target) {
                ops::stand_in(&output)
            } else {
                output
            }
        })
        .collect()
}

/// Whether there are results beside outputs that are gone on with. Where these are complete, a process that was killed may
/// have left them.
pub(super) fn has_beside(outputs: &[Expr], targets: &[Target]) -> bool {
    let mut pairs = outputs.iter().zip(targets);
    pairs.any(|(output, target)| matches!(target, Target::Resumed(_)) && output.beside().is_some())
}

/// The results beside outputs that are gone on with and not complete.
fn beside_of(outputs: &[Expr], targets: &[Target]) -> impl Iterator<Item = Expr> {
    let of = |(output, target): (&Expr, &Target)| match target {
        Target::Resumed(resumable) if !resumable.is_complete() => output.beside(),
        _ => None,
    };
    let beside: Vec<Expr> = outputs.iter().zip(targets).filter_map(of).collect();
    beside.into_iter()
}

/// Where all outputs are there, published by a process that was killed before it had cleaned up, its stages are left.
fn remove_stages(session: &Session, targets: &[Target]) {
    let places = targets.iter().filter_map(|target| match target {
        Target::Path { path, resume: true, .. } => Some(target_of(path)),
        _ => None,
    });
    let Ok(places) = places.collect::<Result<Vec<_>, _>>() else {
        return;
    };
    if let (Some(first), true) = (places.first(), places.iter().all(|place| place.exists())) {
        let name = name_of(places.iter().map(PathBuf::as_path));
        let held = StagesFolder::hold(&session.options.scratch, &name, first);
        // Held by another process it is not left at all.
        held.into_iter().for_each(|folder| folder.remove());
    }
}

/// The name of the folder for the stages of outputs at these places.
fn name_of<'a>(places: impl Iterator<Item = &'a Path>) -> String {
    let mut name = Encoding::default();
    places.for_each(|place| {
        name.text(&place.to_string_lossy());
    });
    name.digest().to_string()
}

impl Resuming {
    /// The folder for the stages of outputs that may be gone on with; nothing where none of them may.
    pub fn hold(session: &Session, outputs: &[Expr], targets: &[Target]) -> Result<Option<Resuming>, EngineError> {
        let resumed = targets.iter().filter_map(|target| match target {
            Target::Resumed(resumable) => Some(resumable.plan().target()),
            _ => None,
        });
        let places: Vec<&Path> = resumed.collect();
        let Some(first) = places.first() else { return Ok(None) };
        let name = name_of(places.iter().copied());
        let folder = StagesFolder::hold(&session.options.scratch, &name, first)?;
        let lasting: Vec<Lasting> = outputs.iter().map(Lasting::of).collect();
        if lasting.iter().any(|node| node.is_own) {
            folder.note_owner()?;
        }
        let mut encoding = Encoding::default();
        lasting.iter().for_each(|node| {
            encoding.text(&node.digest.to_string());
        });
        let resuming = Resuming {
            folder,
            key: encoding.digest().to_string(),
            notes: Mutex::default(),
            believed: Mutex::default(),
            held: Mutex::default(),
            verified_bytes: AtomicU64::new(0),
        };
        resuming.check_key()?;
        Ok(Some(resuming))
    }

    fn check_key(&self) -> Result<(), EngineError> {
        match std::fs::read_to_string(self.folder.path().join(KEY)) {
            Ok(found) if found == self.key => Ok(()),
            Ok(_) => self.begin_anew("the computation or its inputs changed"),
            Err(_) => self.empty(),
        }
    }

    fn empty(&self) -> Result<(), EngineError> {
        self.folder.empty()?;
        write(&self.folder.path().join(KEY), &self.key)
    }

    /// Removes what earlier runs left of stages.
    fn begin_anew(&self, why: &str) -> Result<(), EngineError> {
        locked(&self.notes).push(format!("stages begin anew: {why}"));
        self.empty()
    }

    /// The room in which an operator was begun, by the node that is its first result.
    pub fn room(&self, node: &Expr) -> Option<Room> {
        let text = std::fs::read_to_string(self.room_path(node)).ok()?;
        let mut words = text.split_whitespace().map(str::parse::<u64>);
        let (memory, threads) = (words.next()?.ok()?, words.next()?.ok()?);
        Some(Room {
            memory,
            threads: usize::try_from(threads).ok()?.clamp(1, 1024),
        })
    }

    fn room_path(&self, node: &Expr) -> PathBuf {
        self.folder.path().join(format!("{}.room", node.digest()))
    }

    pub fn note_room(&self, node: &Expr, room: Room) -> Result<(), EngineError> {
        write(&self.room_path(node), &format!("{} {}", room.memory, room.threads))
    }

    /// Begins anew, in the room that there is.
    pub fn forget_room(&self) -> Result<(), EngineError> {
        self.begin_anew("they do not fit into the memory that there is now")
    }

    /// Adds the results beside outputs that are not complete, which a run that goes on with this one finds.
    pub fn hold_beside(
        &self,
        session: &Session,
        (outputs, targets): (&mut Vec<Expr>, &mut Vec<Target>),
        watch: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        for (number, beside) in beside_of(outputs, targets).enumerate().collect::<Vec<_>>() {
            let path = self.folder.path().join(format!("beside-{number}.ocf"));
            let plan = sink_plan(&beside, &path, true, None, None)?;
            let key = key_of(&beside, &plan, None, None).0;
            let held = looking(watch, |look| {
                // Where it got its name, and what it is beside did not, its tiles are as good as before.
                if path.exists() {
                    Resumable::take_back(&plan, &key, &session.io, look)?;
                }
                Ok(Resumable::hold(plan, key, &session.io, look)?.beside())
            })?;
            outputs.push(beside);
            targets.push(Target::Resumed(Arc::new(held)));
        }
        Ok(())
    }

    /// Where a result of a stage is stored.
    pub fn path(&self, output: &Expr) -> PathBuf {
        self.folder.path().join(format!("{}.npy", output.digest()))
    }

    /// Whether a result of a stage is there and is what was written. One that is not is removed, to be made again.
    pub fn has(&self, path: &Path, io: &Io) -> bool {
        if !path.exists() {
            return false;
        }
        if locked(&self.believed).contains(path) {
            return true;
        }
        let io = io.scoped();
        let agrees = agrees_with_sums(path, &io);
        self.verified_bytes
            .fetch_add(io.counters().bytes_read, Ordering::Relaxed);
        if agrees {
            locked(&self.believed).insert(path.to_path_buf());
        } else {
            remove_with_sums(path);
            let note = "a result of a stage is made again: it is not what was written";
            locked(&self.notes).push(format!("{}: {note}", path.display()));
        }
        agrees
    }

    /// Bytes that were read to believe results of stages.
    pub fn verified_bytes(&self) -> u64 {
        self.verified_bytes.load(Ordering::Relaxed)
    }

    /// The target for a result that is not there yet.
    pub fn target(&self, session: &Session, output: &Expr) -> Result<Target, EngineError> {
        let path = self.path(output);
        if let Some(held) = locked(&self.held).get(&path).and_then(Weak::upgrade) {
            return Ok(Target::Resumed(held));
        }
        let plan = sink_plan(output, &path, false, None, None)?;
        let key = key_of(output, &plan, None, None);
        let held = Arc::new(Resumable::hold(plan, key.0, &session.io, &mut || Ok(()))?);
        locked(&self.held).insert(path, Arc::downgrade(&held));
        Ok(Target::Resumed(held))
    }

    pub fn notes(&self) -> Vec<String> {
        locked(&self.notes).clone()
    }

    /// The computation is done: nothing has to be gone on with.
    pub fn finish(&self) {
        self.folder.remove();
    }
}

/// Whole or not at all: a file that is read by the next process.
fn write(path: &Path, text: &str) -> Result<(), EngineError> {
    let error = |cause: std::io::Error| EngineError::Plan(format!("{}: cannot write: {cause}", path.display()));
    let new = path.with_extension("new");
    let write = || {
        std::fs::write(&new, text)?;
        std::fs::File::open(&new)?.sync_all()?;
        std::fs::rename(&new, path)
    };
    write().map_err(error)
}
