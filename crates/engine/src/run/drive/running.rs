//! Running a chain: one turn for all of its stages.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use outcore_store::{
    hold_factor, hold_sparse, open, open_factor, open_sparse, AlignedBuffer, Held, Io, Region, Turn, PAGE,
};

use super::chain::{Chain, RESULTS};
use super::ladder::RENEWALS_MAX;
use super::steps::{by_call, called, ChainStep, StageTarget};
use super::Outcome;
use crate::expr::staged::{Next, Room, StageResult};
use crate::expr::Expr;
use crate::ops::{resolve, Waiting};
use crate::run::play::player::{Player, ThreadPlayer};
use crate::run::play::trace::TraceLevel;
use crate::run::prepare::planning::{Asker, Asking, Supposed};
use crate::run::prepare::program::PreparedProgram;
use crate::run::session::estimate::{Estimate, Pace, PassWork, TimeBand};
use crate::run::session::progress::{Doing, Progress, ProgressReport, StageReport};
use crate::run::session::{locked, nesting, Session};
use crate::EngineError;

impl Chain {
    /// Runs all stages once. Outputs appear under their names when everything is complete and synced. Where other threads took
    /// kept tiles that the plan starts from, the computation is planned anew, and starts without such.
    ///
    /// # Errors
    /// As a program's; nothing is left behind then. Stale, where that happens time after time.
    pub fn run(&self, level: TraceLevel, progress: Progress<'_>) -> Result<Outcome, EngineError> {
        self.run_by(&ThreadPlayer, level, progress)
    }

    /// As `run`, by a player.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_by(
        &self,
        player: &dyn Player,
        level: TraceLevel,
        progress: Progress<'_>,
    ) -> Result<Outcome, EngineError> {
        let mut outcome = self.run_as_planned(player, level, progress);
        if outcome.as_ref().is_err_and(EngineError::is_of_values) {
            self.finish();
        }
        for _ in 0..RENEWALS_MAX {
            if !matches!(outcome, Err(EngineError::Stale(_))) {
                break;
            }
            self.session.clear();
            let chain = self.renewed(&mut || progress(&ProgressReport::of(Doing::Planning)))?;
            outcome = chain.run_as_planned(player, level, progress);
        }
        outcome
    }

    fn run_as_planned(
        &self,
        player: &dyn Player,
        level: TraceLevel,
        progress: Progress<'_>,
    ) -> Result<Outcome, EngineError> {
        let session = &self.session;
        if self.first.is_none() {
            let outcome = self.stages[0].program.run_by(player, level, progress)?;
            self.finish();
            return Ok(outcome);
        }
        session.check_usable()?;
        nesting::check_outside()?;
        let turn = session.wait_for_turn(progress)?;
        let mut run = Running {
            chain: self,
            player,
            turn: &turn,
            level,
            total: Outcome::default(),
            bytes: self.traffic().read + self.traffic().written,
            began: Instant::now(),
            pace: Pace::default(),
            fraction: 0.0,
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

    /// The time that it takes by the rates of the session's earlier runs.
    pub fn time(&self) -> Option<TimeBand> {
        let work: Vec<PassWork> = self.stages.iter().flat_map(|stage| stage.program.work()).collect();
        locked(&self.session.paces).time_of(&work)
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
    player: &'a dyn Player,
    turn: &'a Turn,
    level: TraceLevel,
    /// The sums of the stages before, and their pace.
    total: Outcome,
    pace: Pace,
    bytes: u64,
    began: Instant,
    /// The largest share of the time that was told.
    fraction: f64,
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
                let resuming = self.chain.resuming.as_deref();
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
                Ok(ChainStep::Done(results)) => return Ok(results),
                Ok(ChainStep::Stage {
                    label, kept, program, ..
                }) => {
                    let outcome = match program {
                        Some(program) => self.program(&program, &label, progress)?,
                        None => Outcome::default(),
                    };
                    (kept, outcome)
                }
            };
            // Reads that check files of an earlier run are no part of the work.
            let io = session.io.scoped();
            let results = find(session, &kept, outcome, (self.chain.resuming.is_some(), &io))?;
            room = Room {
                memory: room.memory.max(session.stage_room(Supposed::Nothing).memory),
                ..room
            };
            let planning = self.planning();
            let next = self.chain.ladder.with_less(&called(waiting), room, |room| {
                let next = stages.next(&results, room, &io)?;
                let resuming = self.chain.resuming.as_deref();
                session.prepare_step(next, resuming, asking, &mut || progress(&planning))
            })?;
            self.total.read_bytes += io.counters().bytes_read;
            step = Ok(next);
        }
    }

    /// The report while the next stage is planned.
    fn planning(&self) -> ProgressReport {
        let of = self.chain.stages.len();
        let mut report = ProgressReport {
            stage: Some(StageReport {
                number: self.ran + 1,
                of: of.max(self.ran + 1),
                label: "".into(),
            }),
            bytes_done: self.total.read_bytes + self.total.written_bytes,
            bytes_total: self.bytes,
            ..ProgressReport::of(Doing::Planning)
        };
        let left = self.pace.seconds_of(&self.work_from(self.ran));
        report.estimate = self.estimate(left);
        report
    }

    /// The planned work of the stages from one on: an upper bound where they follow from facts.
    fn work_from(&self, stage: usize) -> Vec<PassWork> {
        let stages = self.chain.stages.iter().skip(stage);
        stages.flat_map(|stage| stage.program.work()).collect()
    }

    /// The share of the time, where so much is left; it never falls, though stages may turn out longer than it seemed.
    fn estimate(&self, seconds_left: Option<f64>) -> Estimate {
        let past = self.began.elapsed().as_secs_f64();
        let fraction = seconds_left.map_or(0.0, |left| past / (past + left).max(f64::MIN_POSITIVE));
        Estimate {
            fraction: fraction.max(self.fraction),
            seconds_left,
        }
    }

    fn program(
        &mut self,
        program: &PreparedProgram,
        label: &str,
        progress: Progress<'_>,
    ) -> Result<Outcome, EngineError> {
        let mut stage = self.planning().stage;
        if let Some(stage) = &mut stage {
            stage.label = label.into();
        }
        let is_last = label == RESULTS;
        let done = self.total.read_bytes + self.total.written_bytes;
        let work = program.work();
        let later = self.work_from(self.ran + 1);
        let mut pace = Pace::default();
        let mut outcome = program.run_in(self.player, self.turn, self.level, &mut |report| {
            let mut report = report.clone();
            report.stage.clone_from(&stage);
            if report.doing == Doing::Running {
                pace = report.pace;
            }
            // Before its first task tells, a stage is judged by the others.
            let of_this = match report.doing {
                Doing::Finishing => Some(0.0),
                _ => report.estimate.seconds_left.or_else(|| self.pace.seconds_of(&work)),
            };
            let all = self.pace.with(&pace);
            let left = of_this.and_then(|left| Some(left + all.seconds_of(&later)?));
            if !is_last || report.estimate.fraction < 1.0 {
                report.estimate = self.estimate(left);
            }
            self.fraction = report.estimate.fraction;
            report.bytes_done += done;
            report.bytes_total = self.bytes;
            progress(&report)
        })?;
        self.pace = self.pace.with(&pace);
        self.ran += 1;
        outcome.traces.iter_mut().for_each(|trace| trace.label = label.into());
        self.total.add(&mut outcome);
        Ok(outcome)
    }
}

/// The results of a stage as the next step finds them.
fn find(
    session: &Arc<Session>,
    kept: &[StageTarget],
    outcome: Outcome,
    (stays, io): (bool, &Io),
) -> Result<Vec<StageResult>, EngineError> {
    let folder = session.folder()?;
    let mut results = outcome.results;
    results.resize_with(kept.len(), || None);
    kept.iter()
        .zip(results)
        .map(|(kept, result)| match (kept, result) {
            (StageTarget::FactFile(path), _) => Ok(StageResult::Fact(read_whole(session, path)?)),
            (StageTarget::File(path), _) if stays => Ok(StageResult::Stored(open(path, &session.io)?.source)),
            (StageTarget::File(path), _) => Ok(StageResult::Stored(Arc::new(Held::open(
                folder.clone(),
                path,
                &session.io,
            )?))),
            (StageTarget::Matrix(path), _) => {
                let file = open_sparse(path, io)?;
                Ok(StageResult::Stored(hold_sparse(folder.clone(), &file)))
            }
            (StageTarget::Factor(path), _) => {
                let file = open_factor(path, io)?;
                Ok(StageResult::Stored(hold_factor(folder.clone(), file)))
            }
            (StageTarget::Fact, Some(frame)) => Ok(StageResult::Fact(frame.to_vec())),
            (StageTarget::Fact, None) => Err(EngineError::Internal("a stage did not give its facts".into())),
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
