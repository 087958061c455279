//! Computations in stages: facts of one program make the next, and one turn lasts for all of them.

use std::sync::Arc;

use super::ladder::{Ladder, PlanRefusal, HALVES_LOOKING, HALVES_MAX};
use super::resume::{self, has_beside, Resuming};
use super::steps::{by_call, called, is_of_planning, lesser, need_of, Begun, ChainStep, StageTarget};
use crate::cancel::Watch;
use crate::expr::staged::Room;
use crate::expr::Expr;
use crate::ops::{has_staged, resolve, Waiting};
use crate::place::Traffic;
use crate::run::prepare::planning::{Asker, Asking, Now, Supposed};
use crate::run::prepare::program::{Beyond, PreparedProgram};
use crate::run::prepare::refusal::{Fit, Looking};
use crate::run::prepare::report::{list, quoted};
use crate::run::session::{Session, Target};
use crate::sort::restacked;
use crate::EngineError;
/// A program of more tasks is not planned again to see whether it would move less.
const TASKS_TO_COMPARE: u64 = 20_000;

/// The last stage, which makes what was asked for.
pub(super) const RESULTS: &str = "results";

/// A computation, planned: its first program exactly, those that follow from its facts by their bounds.
///
/// Invariants:
/// 1. Without staged operators it is one program, and its forecast is the outcome.
/// 2. The first stage is exact in any case; every later one moves at most what its bound says.
/// 3. Files of stages go with the last node that reads them: when it has run, whatever happened.
pub struct Chain {
    pub(super) session: Arc<Session>,
    pub(super) outputs: Vec<Expr>,
    pub(super) targets: Vec<Target>,
    pub(super) asking: Asking,
    /// The room in which the first operator with a stage was begun, and the files of that stage.
    pub(super) first: Option<(Room, Vec<StageTarget>)>,
    pub(super) resuming: Option<Arc<Resuming>>,
    pub(super) ladder: Ladder,
    /// The rooms of the operators before it, which were done at once.
    pub(super) at_once: Vec<Room>,
    /// How often the room was halved until all of it fitted.
    pub(super) halvings: usize,
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
    pub program: PreparedProgram,
    /// Most bytes that are looked up in its results before the next.
    pub lookup_bytes: u64,
    /// Bytes that the run may move beyond what the program does.
    beyond: Beyond,
}

impl PlannedStage {
    /// A stage whose program is that of the run, or is made of what is assumed.
    fn new(
        label: String,
        awaits: Option<String>,
        exact: bool,
        program: PreparedProgram,
        lookup_bytes: u64,
    ) -> PlannedStage {
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

/// A round of planning, in which each operator had half the room of the round before.
struct PlanningRound {
    halvings: usize,
    at_once: Vec<Room>,
    program: PreparedProgram,
    /// By all of its stages.
    moved_bytes: u64,
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
        watch: &mut Watch<'_>,
    ) -> Result<Chain, EngineError> {
        let refusal = match self.plan_as_it_is(outputs, targets, watch) {
            Err(refusal @ EngineError::Memory { .. }) if !is_of_planning(&refusal) => refusal,
            planned => return planned,
        };
        let Some(outputs) = restacked(outputs)? else {
            return Err(refusal);
        };
        let planned = self.plan_as_it_is(&outputs, targets, watch);
        let planned = planned.inspect(|chain| chain.ladder.follow(RESULTS, &refusal));
        planned.map_err(|error| lesser(Some(refusal), error))
    }

    fn plan_as_it_is(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        watch: &mut Watch<'_>,
    ) -> Result<Chain, EngineError> {
        self.check_usable()?;
        let (mut outputs, mut targets) = resume::hold_outputs(self, outputs, targets, watch)?;
        let is_staged = has_staged(&outputs);
        let resuming = match is_staged || has_beside(&outputs, &targets) {
            true => Resuming::hold(self, &outputs, &targets)?.map(Arc::new),
            false => None,
        };
        if let Some(resuming) = &resuming {
            resuming.hold_beside(self, (&mut outputs, &mut targets), watch)?;
        }
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
        watch: &mut Watch<'_>,
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
}

impl Chain {
    pub(super) fn new(session: &Arc<Session>, outputs: &[Expr], targets: &[Target], asking: Asking) -> Chain {
        Chain {
            session: session.clone(),
            outputs: outputs.to_vec(),
            targets: targets.to_vec(),
            asking,
            first: None,
            resuming: None,
            ladder: Ladder::default(),
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
            Supposed::Bytes(budget) | Supposed::Limit(budget) => budget,
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
    pub(super) fn planned(mut self, watch: &mut Watch<'_>) -> Result<Chain, EngineError> {
        self.check_results()?;
        let mut refusal = None;
        let mut last = None;
        let mut best: Option<PlanningRound> = None;
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
                    let may_go_on = self.ladder.refused(RESULTS, 1 << halvings, &error);
                    let repeats = last.replace(need).is_some_and(|last| need >= last);
                    let is_vain = is_of_planning(&error) || repeats || !may_go_on;
                    refusal = Some(lesser(refusal, error));
                    if is_vain {
                        break;
                    }
                    continue;
                }
                program => program?,
            };
            let before: u64 = self.stages.iter().map(|stage| stage.program.moved_bytes()).sum();
            let moved_bytes = before + program.moved_bytes();
            if best.as_ref().is_some_and(|best| moved_bytes >= best.moved_bytes) {
                break;
            }
            // With less room for each, more of what passes between them may stay in memory.
            let is_enough = !may_take_less || program.moves_least() || program.plan.tasks() > TASKS_TO_COMPARE;
            best = Some(PlanningRound {
                halvings,
                at_once: std::mem::take(&mut self.at_once),
                program,
                moved_bytes,
            });
            if is_enough {
                break;
            }
        }
        let Some(PlanningRound {
            halvings,
            at_once,
            program,
            ..
        }) = best
        else {
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
    fn assume(&mut self, waiting: &Waiting, watch: &mut Watch<'_>) -> Result<Vec<Expr>, EngineError> {
        self.assume_stages(waiting, watch)
            .map_err(|error| by_call(waiting, error))
    }

    fn assume_stages(&mut self, waiting: &Waiting, watch: &mut Watch<'_>) -> Result<Vec<Expr>, EngineError> {
        let session = self.session.clone();
        let asking = Asking {
            called: waiting.node.called(),
            ..self.asking_now()
        };
        // What is begun later is begun again when its turn comes, and then goes on with what there is.
        let resuming = self.resuming.clone().filter(|_| self.first.is_none());
        let (room, mut stages, mut step) = self.begin(waiting, resuming.as_deref(), asking, watch)?;
        for after in 1.. {
            let (label, awaits, kept, program) = match step {
                ChainStep::Done(results) => {
                    if self.first.is_none() {
                        self.at_once.push(room);
                    }
                    return Ok(results);
                }
                ChainStep::Stage {
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
            step = self.ladder.with_less(&called(waiting), room, |room| {
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
    pub(super) fn begin(
        &self,
        waiting: &Waiting,
        resuming: Option<&Resuming>,
        asking: Asking,
        watch: &mut Watch<'_>,
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
        // As the plans that come next will: operators are told of the memory that these have.
        session.yield_to_process();
        let mut room = session.stage_room(asking.memory);
        room.memory >>= self.halvings;
        let begun = self.ladder.with_less(&called(waiting), room, begin)?;
        if let (Some(resuming), (room, _, ChainStep::Stage { .. })) = (resuming, &begun) {
            resuming.note_room(node, *room)?;
        }
        Ok(begun)
    }

    /// What could not be gone on with, and what was, in words.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.resuming.as_ref().map_or(vec![], |resuming| resuming.notes());
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
        let of_stages = self.resuming.as_ref().map_or(0, |resuming| resuming.verified_bytes());
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

    /// The same computation, planned anew: tiles that the plan starts from are gone.
    ///
    /// # Errors
    /// As [`Session::plan_chain`].
    pub(super) fn renewed(&self, watch: &mut Watch<'_>) -> Result<Chain, EngineError> {
        let mut chain = Chain::new(&self.session, &self.outputs, &self.targets, self.asking);
        chain.resuming = self.resuming.clone();
        chain.planned(watch)
    }

    /// The forecast as JSON: that of the one program, or of every stage.
    pub fn to_json(&self) -> String {
        let refusals = self
            .ladder
            .refusals()
            .into_iter()
            .map(|PlanRefusal { of, parts, need }| {
                format!("{{\"of\":{},\"parts\":{parts},\"need\":{need}}}", quoted(&of))
            });
        let refusals = list(refusals);
        if self.first.is_none() {
            let program = self.stages[0].program.to_json();
            return format!("{{\"refusals\":{refusals},{}", &program[1..]);
        }
        let stages = self.stages.iter().map(|stage| {
            format!(
                "{{\"label\":{},\"awaits\":{},\"exact\":{},\"lookup_bytes\":{},\"beyond_read\":{},\"beyond_spilled\":{},\
                 \"program\":{}}}",
                quoted(&stage.label),
                stage.awaits.as_deref().map_or("null".into(), quoted),
                stage.exact && stage.program.is_exact(),
                stage.lookup_bytes,
                stage.beyond.read,
                stage.beyond.spilled,
                stage.program.to_json()
            )
        });
        format!("{{\"refusals\":{refusals},\"stages\":{}}}", list(stages))
    }

    /// The graphs of all stages, one behind the other.
    pub fn to_dot(&self) -> String {
        self.stages.iter().map(|stage| stage.program.to_dot()).collect()
    }
}
