//! Computations in stages: facts of one program make the next, and one turn lasts for all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_store::{open, AlignedBuffer, Held, Region, Turn, PAGE};

use super::resume::{self, Resuming};
use super::Outcome;
use crate::expr::staged::{Found, Keep, Next, Room, Stages};
use crate::expr::Expr;
use crate::ops::{has_staged, resolve, Waiting};
use crate::place::Traffic;
use crate::run::prepare::planning::{Asker, Asking, Now, Supposed};
use crate::run::prepare::program::{Beyond, Program};
use crate::run::prepare::refusal::{Fit, Looking};
use crate::run::prepare::report::{list, quoted};
use crate::run::session::progress::{Doing, Progress, ProgressReport, StageReport};
use crate::run::session::{nesting, Session, Target};
use crate::sort::restacked;
use crate::EngineError;

/// How often a step that does not fit is taken again with half the room.
const HALVES_MAX: usize = 5;
/// The same while a limit that works is looked for: every half makes larger programs, most of which do not fit either.
const HALVES_LOOKING: usize = 1;
/// A program of more tasks is not planned again to see whether it would move less.
const TASKS_TO_COMPARE: u64 = 20_000;

/// The last stage, which makes what was asked for.
const RESULTS: &str = "results";

type Watch<'a> = &'a mut dyn FnMut() -> Result<(), EngineError>;

/// A computation, planned: its first program exactly, those that follow from its facts by their bounds.
///
/// Invariants:
/// 1. Without staged operators it is one program, and its forecast is the outcome.
/// 2. The first stage is exact in any case; every later one moves at most what its bound says.
/// 3. Files of stages go with the last node that reads them: when it has run, whatever happened.
pub struct Chain {
    session: Arc<Session>,
    outputs: Vec<Expr>,
    targets: Vec<Target>,
    asking: Asking,
    /// The room in which the first operator with a stage was begun, and the files of that stage.
    first: Option<(Room, Vec<Kept>)>,
    resuming: Option<Resuming>,
    /// The rooms of the operators before it, which were done at once.
    at_once: Vec<Room>,
    /// How often the room was halved until all of it fitted.
    halvings: usize,
    pub stages: Vec<PlannedStage>,
}

/// What an earlier run left durable of the results.
#[derive(Clone, Copy, Debug)]
pub struct Resumed {
    pub tiles: u64,
    /// Bytes read to believe that.
    pub verified_bytes: u64,
}

/// One program of a chain.
pub struct PlannedStage {
    pub label: String,
    /// What the stages after it wait for.
    pub awaits: Option<String>,
    /// Its figures are those of the run; else the run stays below them.
    pub exact: bool,
    pub program: Program,
    /// Most bytes that are looked up in its results before the next.
    pub lookup_bytes: u64,
    /// Bytes that the run may move beyond what the program does.
    beyond: Beyond,
}

impl PlannedStage {
    /// A stage whose program is that of the run, or is made of what is assumed.
    fn new(label: String, awaits: Option<String>, exact: bool, program: Program, lookup_bytes: u64) -> PlannedStage {
        PlannedStage {
            beyond: match exact {
                true => Beyond::default(),
                false => program.may_move_beyond(),
            },
            label,
            awaits,
            exact,
            program,
            lookup_bytes,
        }
    }
}

/// Where a result of a stage goes.
#[derive(Clone)]
enum Kept {
    Fact,
    /// A file of scratch, or one that can be gone on with.
    File(PathBuf),
    /// A small result in a file that can be gone on with.
    FactFile(PathBuf),
}

/// The step that a staged operator is at.
enum Step {
    Stage {
        label: String,
        awaits: String,
        kept: Vec<Kept>,
        /// Nothing where an earlier run has done it all.
        program: Option<Box<Program>>,
    },
    Done(Vec<Expr>),
}

/// An operator that was begun: in which room, and what its first step is.
type Begun = (Room, Box<dyn Stages>, Step);

/// Bytes that a refusal says are needed; nothing for another error.
fn need_of(error: &EngineError) -> Option<u64> {
    match error {
        EngineError::Memory { need, .. } => Some(*need),
        _ => None,
    }
}

/// Whether the plan itself is too large, so that another must not be made beside it.
fn is_of_planning(error: &EngineError) -> bool {
    matches!(error, EngineError::Memory { planning: true, .. })
}

/// The refusal that needs less.
fn lesser(before: Option<EngineError>, now: EngineError) -> EngineError {
    match before {
        Some(before) if need_of(&before) <= need_of(&now) => before,
        _ => now,
    }
}

/// The refusal of an operator by the name of the function that the caller called for it.
fn by_call(waiting: &Waiting, mut error: EngineError) -> EngineError {
    if let (EngineError::Memory { operator, .. }, Some(called)) = (&mut error, waiting.node.called()) {
        if *operator == waiting.key.0.name() {
            *operator = called.into();
        }
    }
    error
}

/// Takes a step with all the room, and with less of it where that does not fit.
fn with_less<T>(mut room: Room, mut step: impl FnMut(Room) -> Result<T, EngineError>) -> Result<T, EngineError> {
    let refused = |result: &Result<T, EngineError>| matches!(result, Err(EngineError::Memory { .. }));
    let mut result = step(room);
    for _ in 0..HALVES_MAX {
        if !refused(&result) {
            break;
        }
        room.memory /= 2;
        let next = step(room);
        // The refusal that counts is that of all the room.
        if !refused(&next) {
            result = next;
        }
    }
    result
}

impl Session {
    /// Plans what `prepare` plans, also where it contains operators that are computed in stages, or does not fit the memory
    /// but in stages.
    ///
    /// # Errors
    /// As `prepare`: a refusal names a limit under which all stages were planned.
    pub fn plan_chain(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        watch: Watch<'_>,
    ) -> Result<Chain, EngineError> {
        let refusal = match self.plan_as_it_is(outputs, targets, watch) {
            Err(refusal @ EngineError::Memory { .. }) if !is_of_planning(&refusal) => refusal,
            planned => return planned,
        };
        match restacked(outputs)? {
            None => Err(refusal),
            Some(outputs) => {
                let planned = self.plan_as_it_is(&outputs, targets, watch);
                planned.map_err(|error| lesser(Some(refusal), error))
            }
        }
    }

    fn plan_as_it_is(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        watch: Watch<'_>,
    ) -> Result<Chain, EngineError> {
        self.check_usable()?;
        let (outputs, targets) = resume::hold_outputs(self, outputs, targets, watch)?;
        let is_staged = has_staged(&outputs);
        let resuming = match is_staged {
            true => Resuming::hold(self, &outputs, &targets)?,
            false => None,
        };
        let outputs = resume::without_complete(outputs, &targets);
        let asking = Asking {
            memory: match is_staged {
                true => Supposed::Unnamed,
                false => Supposed::Nothing,
            },
            ..Asking::of(Asker::here())
        };
        let mut chain = Chain::new(self, &outputs, &targets, asking);
        chain.resuming = resuming;
        match chain.planned(watch) {
            Err(refused @ EngineError::Memory { .. }) if is_staged => {
                Err(self.with_limit(refused, &outputs, &targets, asking, watch)?)
            }
            planned => planned,
        }
    }

    /// The refusal of stages with a limit under which all of them fit: found by planning them with more memory.
    fn with_limit(
        self: &Arc<Session>,
        mut refused: EngineError,
        outputs: &[Expr],
        targets: &[Target],
        asking: Asking,
        watch: Watch<'_>,
    ) -> Result<EngineError, EngineError> {
        let EngineError::Memory {
            smallest, exact, need, ..
        } = &mut refused
        else {
            return Ok(refused);
        };
        let held = self.held();
        let mut fits = |budget: u64| {
            let memory = Supposed::Bytes(budget);
            match Chain::new(self, outputs, targets, Asking { memory, ..asking }).planned(watch) {
                Ok(_) => Ok(Fit::Yes),
                Err(error) => need_of(&error).map(|need| Fit::No { need }).ok_or(error),
            }
        };
        let refused_with = self.budget_beside(held);
        let in_memory = outputs
            .iter()
            .zip(targets)
            .filter(|(_, target)| matches!(target, Target::Memory));
        let largest = in_memory.map(|(output, _)| output.nbytes()).max().unwrap_or(0);
        let looking = Looking {
            refused: refused_with,
            // What the first stage needs that fails says little of the others.
            need: (*need).clamp(refused_with, (2 * refused_with).max(largest)),
            needs_are_least: false,
            parts: 64,
        };
        if let Some(budget) = looking.find(|budget| self.fits_as_named(budget, held, &mut fits))? {
            (*smallest, *exact) = (self.limit_for(budget, held), true);
            // A stage that counts on all the room may do with less.
            *need = (*need).min(budget);
        }
        Ok(refused)
    }

    /// What a program of a stage may take for tiles.
    fn stage_room(&self, memory: Supposed) -> Room {
        let beside = self.budget_for(memory);
        Room {
            // Buffers of I/O threads, workspaces of passes and the program itself are beside them.
            memory: beside - beside / 16,
            threads: self.options.threads.max(1),
        }
    }

    /// Plans the program of a step.
    fn prepare_step(
        self: &Arc<Session>,
        next: Next,
        resuming: Option<&Resuming>,
        asking: Asking,
        watch: Watch<'_>,
    ) -> Result<Step, EngineError> {
        let (label, awaits, outputs) = match next {
            Next::Done(results) => return Ok(Step::Done(results)),
            Next::Stage { label, awaits, outputs } => (label, awaits, outputs),
        };
        let folder = self.folder()?;
        let kept: Vec<Kept> = outputs
            .iter()
            .map(|(output, keep)| match (keep, resuming) {
                (Keep::Fact, None) => Kept::Fact,
                (Keep::Stored, None) => Kept::File(folder.unused()),
                (Keep::Fact, Some(resuming)) => Kept::FactFile(resuming.path(output)),
                (Keep::Stored, Some(resuming)) => Kept::File(resuming.path(output)),
            })
            .collect();
        let mut missing = Vec::new();
        let mut targets = Vec::new();
        for ((output, _), kept) in outputs.into_iter().zip(&kept) {
            match (kept, resuming) {
                (Kept::File(path) | Kept::FactFile(path), Some(resuming)) => {
                    if resuming.has(path, &self.io) {
                        continue;
                    }
                    targets.push(resuming.target(self, &output)?);
                }
                _ => targets.push(kept.target()),
            }
            missing.push(output);
        }
        let program = match missing.is_empty() {
            true => None,
            false => Some(Box::new(self.prepare_for(asking, &missing, &targets, watch)?)),
        };
        Ok(Step::Stage {
            label,
            awaits,
            kept,
            program,
        })
    }
}

impl Kept {
    fn target(&self) -> Target {
        match self {
            Kept::Fact => Target::Memory,
            Kept::File(path) | Kept::FactFile(path) => Target::Path {
                path: path.clone(),
                overwrite: false,
                chunks: None,
                resume: false,
            },
        }
    }
}

impl Chain {
    fn new(session: &Arc<Session>, outputs: &[Expr], targets: &[Target], asking: Asking) -> Chain {
        Chain {
            session: session.clone(),
            outputs: outputs.to_vec(),
            targets: targets.to_vec(),
            asking,
            first: None,
            resuming: None,
            at_once: vec![],
            halvings: 0,
            stages: vec![],
        }
    }

    /// A result in memory that is larger than all of the memory needs no plan to be refused.
    ///
    /// # Errors
    /// There is one.
    fn check_results(&self) -> Result<(), EngineError> {
        let session = &self.session;
        let available = match self.asking.memory {
            Supposed::Bytes(budget) => budget,
            // One that the caller has may be there already.
            _ => session.budget(),
        };
        let too_large = |(output, target): &(&Expr, &Target)| {
            matches!(target, Target::Memory) && output.nbytes() > available && has_staged(&[(*output).clone()])
        };
        let Some((output, _)) = self.outputs.iter().zip(&self.targets).find(too_large) else {
            return Ok(());
        };
        let held = session.held();
        Err(EngineError::Memory {
            operator: output.called().map_or_else(|| output.label(), Into::into),
            need: output.nbytes(),
            available,
            smallest: session.limit_for(output.nbytes(), held),
            exact: false,
            detail: session.describe_limit(held),
            planning: false,
        })
    }

    /// Plans all stages.
    fn planned(mut self, watch: Watch<'_>) -> Result<Chain, EngineError> {
        self.check_results()?;
        let mut refusal = None;
        let mut last = None;
        let mut best: Option<(usize, Vec<Room>, Program)> = None;
        let outputs = self.outputs.clone();
        let halvings_max = match self.asking.memory {
            Supposed::Bytes(_) => HALVES_LOOKING,
            _ => HALVES_MAX,
        };
        for halvings in 0..=halvings_max {
            self.halvings = halvings;
            self.at_once.clear();
            let nodes = match resolve(&outputs, &mut |waiting| self.assume(waiting, watch)) {
                Err(EngineError::Memory { .. }) if best.is_some() => break,
                nodes => nodes?,
            };
            let is_one_program = self.stages.is_empty();
            let may_take_less = is_one_program && !self.at_once.is_empty();
            let program = match self
                .session
                .prepare_for(self.asking_now(), &nodes, &self.targets, watch)
            {
                Err(EngineError::Memory { .. }) if best.is_some() => break,
                // Operators of one program that each count on all of the room may do with less.
                Err(error @ EngineError::Memory { .. }) if may_take_less => {
                    // Where half of the room needs as much as all of it, a quarter does too.
                    let need = need_of(&error);
                    let is_vain = is_of_planning(&error) || last.replace(need).is_some_and(|last| need >= last);
                    refusal = Some(lesser(refusal, error));
                    if is_vain {
                        break;
                    }
                    continue;
                }
                program => program?,
            };
            let saves = |(_, _, before): &(_, _, Program)| program.moved_bytes() < before.moved_bytes();
            if !best.as_ref().is_none_or(saves) {
                break;
            }
            // With less room for each, more of what passes between them may stay in memory.
            let is_enough = !may_take_less || program.moves_least() || program.plan.tasks() > TASKS_TO_COMPARE;
            best = Some((halvings, std::mem::take(&mut self.at_once), program));
            if is_enough {
                break;
            }
        }
        let Some((halvings, at_once, program)) = best else {
            return Err(refusal.expect("every round that plans nothing is refused"));
        };
        if halvings < self.halvings {
            // The rounds after it may have begun stages; a round that others follow is one program.
            (self.first, self.stages) = (None, vec![]);
        }
        (self.halvings, self.at_once) = (halvings, at_once);
        let exact = self.stages.is_empty();
        self.stages
            .push(PlannedStage::new(RESULTS.into(), None, exact, program, 0));
        Ok(self)
    }

    /// Plans the stages of an operator as far as can be told, and gives nodes that stand for its results.
    fn assume(&mut self, waiting: &Waiting, watch: Watch<'_>) -> Result<Vec<Expr>, EngineError> {
        self.assume_stages(waiting, watch)
            .map_err(|error| by_call(waiting, error))
    }

    fn assume_stages(&mut self, waiting: &Waiting, watch: Watch<'_>) -> Result<Vec<Expr>, EngineError> {
        let session = self.session.clone();
        let asking = Asking {
            called: waiting.node.called(),
            ..self.asking_now()
        };
        // What is begun later is begun again when its turn comes, and then goes on with what there is.
        let resuming = self.resuming.as_ref().filter(|_| self.first.is_none());
        let (room, mut stages, mut step) = self.begin(waiting, resuming, asking, watch)?;
        for after in 1.. {
            let (label, awaits, kept, program) = match step {
                Step::Done(results) => {
                    if self.first.is_none() {
                        self.at_once.push(room);
                    }
                    return Ok(results);
                }
                Step::Stage {
                    label,
                    awaits,
                    kept,
                    program,
                } => (label, awaits, kept, program),
            };
            if self.first.is_none() {
                self.first = Some((room, if program.is_some() { kept } else { vec![] }));
            }
            if let Some(program) = program {
                let (exact, lookup) = (self.stages.is_empty(), stages.lookup_bytes());
                self.stages
                    .push(PlannedStage::new(label, Some(awaits), exact, *program, lookup));
            }
            let asking = Asking {
                now: Now::MayPass,
                ..asking
            };
            step = with_less(room, |room| {
                session.prepare_step(stages.assume(after, room)?, None, asking, watch)
            })?;
        }
        unreachable!("stages end")
    }

    /// How the next program is to be planned: what is in memory now may have passed when others have run before.
    fn asking_now(&self) -> Asking {
        let is_first = self.stages.is_empty() && !matches!(self.asking.memory, Supposed::Bytes(_));
        Asking {
            now: if is_first { Now::IsThen } else { Now::MayPass },
            ..self.asking
        }
    }

    /// Begins an operator, in the room in which an earlier run did where there was one.
    fn begin(
        &self,
        waiting: &Waiting,
        resuming: Option<&Resuming>,
        asking: Asking,
        watch: Watch<'_>,
    ) -> Result<Begun, EngineError> {
        let session = &self.session;
        let mut begin = |room: Room| {
            let mut stages = waiting.key.0.begin(&waiting.inputs, room)?;
            let next = stages.next(&[], room, &session.io)?;
            Ok((room, stages, session.prepare_step(next, resuming, asking, watch)?))
        };
        let node = &waiting.node;
        if let Some(resuming) = resuming {
            match resuming.room(node).map(&mut begin) {
                Some(Err(EngineError::Memory { .. })) => resuming.forget_room()?,
                Some(begun) => return begun,
                None => {}
            }
        }
        let mut room = session.stage_room(asking.memory);
        room.memory >>= self.halvings;
        let begun = with_less(room, begin)?;
        if let (Some(resuming), (room, _, Step::Stage { .. })) = (resuming, &begun) {
            resuming.note_room(node, *room)?;
        }
        Ok(begun)
    }

    /// What could not be gone on with, and what was, in words.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.resuming.as_ref().map_or(vec![], Resuming::notes);
        for target in &self.targets {
            if let Target::Resumed(resumable) = target {
                let path = resumable.plan().path().display();
                notes.extend(resumable.anew.as_ref().map(|why| format!("{path} begins anew: {why}")));
            }
        }
        notes
    }

    /// What an earlier run left durable.
    pub fn resumed(&self) -> Resumed {
        let resumed = self.targets.iter().filter_map(|target| match target {
            Target::Resumed(resumable) => Some((resumable.done().len() as u64, resumable.verified_bytes)),
            _ => None,
        });
        let of_stages = self.resuming.as_ref().map_or(0, Resuming::verified_bytes);
        let none = Resumed {
            tiles: 0,
            verified_bytes: of_stages,
        };
        resumed.fold(none, |sum, (tiles, bytes)| Resumed {
            tiles: sum.tiles + tiles,
            verified_bytes: sum.verified_bytes + bytes,
        })
    }

    /// Most bytes that are read, and that are written.
    pub fn traffic(&self) -> Traffic {
        let stages = self.stages.iter();
        stages.fold(Traffic::default(), |sum, stage| Traffic {
            read: sum.read + stage.program.read_bytes() + stage.lookup_bytes + stage.beyond.read,
            written: sum.written + stage.program.written_bytes() + stage.beyond.spilled,
        })
    }

    /// The forecast as JSON: that of the one program, or of every stage.
    pub fn to_json(&self) -> String {
        if self.first.is_none() {
            return self.stages[0].program.to_json();
        }
        let stages = self.stages.iter().map(|stage| {
            format!(
                "{{\"label\":{},\"awaits\":{},\"exact\":{},\"lookup_bytes\":{},\"beyond_read\":{},\"beyond_spilled\":{},\
                 \"program\":{}}}",
                quoted(&stage.label),
                stage.awaits.as_deref().map_or("null".into(), quoted),
                stage.exact,
                stage.lookup_bytes,
                stage.beyond.read,
                stage.beyond.spilled,
                stage.program.to_json()
            )
        });
        format!("{{\"stages\":{}}}", list(stages))
    }

    /// The graphs of all stages, one behind the other.
    pub fn to_dot(&self) -> String {
        self.stages.iter().map(|stage| stage.program.to_dot()).collect()
    }

    /// Runs all stages once. Outputs appear under their names when everything is complete and synced.
    ///
    /// # Errors
    /// As a program's; nothing is left behind then.
    pub fn run(&self, tracing: bool, progress: Progress<'_>) -> Result<Outcome, EngineError> {
        let session = &self.session;
        if self.first.is_none() {
            let outcome = self.stages[0].program.run(tracing, progress)?;
            self.finish();
            return Ok(outcome);
        }
        session.check_usable()?;
        nesting::check_outside()?;
        let turn = session.wait_for_turn(progress)?;
        let mut run = Running {
            chain: self,
            turn: &turn,
            tracing,
            total: Outcome::default(),
            bytes: self.traffic().read + self.traffic().written,
            ran: 0,
        };
        let mut at_once = self.at_once.iter();
        let outputs = resolve(&self.outputs, &mut |waiting| match at_once.next() {
            Some(room) => run.at_once(waiting, *room),
            None => run.operator(waiting, progress).map_err(|error| by_call(waiting, error)),
        })?;
        let program = session.prepare_for(Asking::of(Asker::InTurn), &outputs, &self.targets, &mut || {
            progress(&run.planning())
        })?;
        let results = run.program(&program, RESULTS, progress)?.results;
        self.finish();
        Ok(Outcome { results, ..run.total })
    }

    /// Nothing has to be gone on with.
    fn finish(&self) {
        if let Some(resuming) = &self.resuming {
            resuming.finish();
        }
    }
}

/// A chain that runs.
struct Running<'a> {
    chain: &'a Chain,
    turn: &'a Turn,
    tracing: bool,
    /// What the stages before did.
    total: Outcome,
    bytes: u64,
    ran: usize,
}

impl Running<'_> {
    /// The results of an operator that was done at once when it was planned.
    fn at_once(&self, waiting: &Waiting, room: Room) -> Result<Vec<Expr>, EngineError> {
        let mut stages = waiting.key.0.begin(&waiting.inputs, room)?;
        match stages.next(&[], room, &self.chain.session.io)? {
            Next::Done(results) => Ok(results),
            Next::Stage { .. } => Err(EngineError::Internal(
                "an operator takes another way than planned".into(),
            )),
        }
    }

    /// Runs the stages of an operator. Their stored results live as long as the nodes that read them.
    fn operator(&mut self, waiting: &Waiting, progress: Progress<'_>) -> Result<Vec<Expr>, EngineError> {
        let session = &self.chain.session;
        let asking = Asking {
            called: waiting.node.called(),
            ..Asking::of(Asker::InTurn)
        };
        let (mut room, mut stages, mut step) = match &self.chain.first {
            // As the first stage was planned.
            Some((room, kept)) if self.ran == 0 && !kept.is_empty() => {
                let mut stages = waiting.key.0.begin(&waiting.inputs, *room)?;
                stages.next(&[], *room, &session.io)?;
                (*room, stages, Err(kept.clone()))
            }
            _ => {
                let resuming = self.chain.resuming.as_ref();
                let planning = self.planning();
                let mut watch = || progress(&planning);
                let (room, stages, step) = self.chain.begin(waiting, resuming, asking, &mut watch)?;
                (room, stages, Ok(step))
            }
        };
        loop {
            let (kept, outcome) = match step {
                Err(kept) => {
                    let first = &self.chain.stages[0];
                    let outcome = self.program(&first.program, &first.label, progress)?;
                    (kept, outcome)
                }
                Ok(Step::Done(results)) => return Ok(results),
                Ok(Step::Stage {
                    label, kept, program, ..
                }) => {
                    let outcome = match program {
                        Some(program) => self.program(&program, &label, progress)?,
                        None => Outcome::default(),
                    };
                    (kept, outcome)
                }
            };
            let found = find(session, &kept, outcome, self.chain.resuming.is_some())?;
            room = Room {
                memory: room.memory.max(session.stage_room(Supposed::Nothing).memory),
                ..room
            };
            let verified = || self.chain.resuming.as_ref().map_or(0, Resuming::verified_bytes);
            let (before, verified_before) = (session.io.counters(), verified());
            let planning = self.planning();
            let next = with_less(room, |room| {
                let next = stages.next(&found, room, &session.io)?;
                let resuming = self.chain.resuming.as_ref();
                session.prepare_step(next, resuming, asking, &mut || progress(&planning))
            })?;
            // What is read to believe files of an earlier run is no part of the work.
            let read = session.io.counters().since(&before).bytes_read;
            self.total.read_bytes += read.saturating_sub(verified() - verified_before);
            step = Ok(next);
        }
    }

    /// What is told while the next stage is planned.
    fn planning(&self) -> ProgressReport {
        let of = self.chain.stages.len();
        let (bytes_done, bytes_total) = (self.total.read_bytes + self.total.written_bytes, self.bytes);
        let mut report = ProgressReport {
            stage: Some(StageReport {
                number: self.ran + 1,
                of: of.max(self.ran + 1),
                label: "".into(),
            }),
            bytes_done,
            bytes_total,
            ..ProgressReport::of(Doing::Planning)
        };
        report.estimate.fraction = (bytes_done as f64 / bytes_total.max(1) as f64).min(1.0);
        report
    }

    fn program(&mut self, program: &Program, label: &str, progress: Progress<'_>) -> Result<Outcome, EngineError> {
        let mut stage = self.planning().stage;
        if let Some(stage) = &mut stage {
            stage.label = label.into();
        }
        let is_last = label == RESULTS;
        let done = self.total.read_bytes + self.total.written_bytes;
        let all = self.bytes;
        let mut told = |report: &ProgressReport| {
            let share = program.read_bytes() + program.written_bytes();
            let mut report = report.clone();
            report.stage.clone_from(&stage);
            let of_all = |part: f64| if all > 0 { part / all as f64 } else { 0.0 };
            // Stages move less than their bounds say.
            if !is_last || report.estimate.fraction < 1.0 {
                report.estimate.fraction = of_all(done as f64 + share as f64 * report.estimate.fraction).min(1.0);
            }
            report.bytes_done += done;
            report.bytes_total = all;
            progress(&report)
        };
        let outcome = program.run_in(self.turn, self.tracing, &mut told)?;
        self.ran += 1;
        self.total.add(&outcome);
        Ok(outcome)
    }
}

/// The results of a stage as the next step finds them.
fn find(session: &Arc<Session>, kept: &[Kept], outcome: Outcome, stays: bool) -> Result<Vec<Found>, EngineError> {
    let folder = session.folder()?;
    let mut results = outcome.results;
    results.resize_with(kept.len(), || None);
    kept.iter()
        .zip(results)
        .map(|(kept, result)| match (kept, result) {
            (Kept::FactFile(path), _) => Ok(Found::Fact(read_whole(session, path)?)),
            (Kept::File(path), _) if stays => Ok(Found::Stored(open(path, &session.io)?.source)),
            (Kept::File(path), _) => Ok(Found::Stored(Arc::new(Held::open(folder.clone(), path, &session.io)?))),
            (Kept::Fact, Some(frame)) => Ok(Found::Fact(frame.to_vec())),
            (Kept::Fact, None) => Err(EngineError::Internal("a stage did not give its facts".into())),
        })
        .collect()
}

/// All of a small stored array.
fn read_whole(session: &Session, path: &Path) -> Result<Vec<u8>, EngineError> {
    let array = open(path, &session.io)?.source;
    let region = Region {
        start: vec![0; array.shape().len()],
        shape: array.shape().to_vec(),
    };
    let cost = array.cost(&region, &session.io)?;
    let memory = AlignedBuffer::new(cost.frame_bytes.max(1).next_multiple_of(PAGE));
    let mut frame = memory.map_err(|cause| EngineError::Plan(format!("no memory for {}: {cause}", path.display())))?;
    let offset = array.read(&region, &mut frame, &session.io)?;
    let bytes = region.elements() as usize * array.dtype().size();
    Ok(frame[offset..offset + bytes].to_vec())
}
