//! Memory that planning itself takes.

use outcore_store::{return_freed_memory, Reservation, Turn};

use crate::cancel::Watch;
use crate::run::session::nesting;
use crate::run::session::{Session, POLL};
use crate::{cancel, EngineError};

/// What planning takes per operator at most, beside the program that comes of it: rewritten nodes, maps over them, and the
/// stack of whoever walks a chain as deep as it is long.
const BYTES_PER_OPERATOR: u64 = 2048;
/// Smaller plans are covered by the allowances beside the ledger.
const SMALL: u64 = 8 << 20;
/// A plan that needs no more than this beyond the limit is made all the same, to be refused with the limit that works: the
/// allowances for workers and products lie idle meanwhile.
const BEYOND: u64 = 16 << 20;

/// Who asks for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Asker {
    Caller,
    /// Somebody who works for a run: waiting for that run's turn to end would be waiting for itself.
    Nested,
    /// Whoever has the turn already.
    InTurn,
}

impl Asker {
    /// Who this thread works for.
    pub fn here() -> Asker {
        match nesting::is_inside() {
            true => Asker::Nested,
            false => Asker::Caller,
        }
    }
}

/// Whether a program finds what is in memory while it is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Now {
    IsThen,
    /// Others run before, and may displace it.
    MayPass,
}

/// For whom and for when a program is planned, and in how much memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Asking {
    pub asker: Asker,
    pub now: Now,
    pub memory: Supposed,
    /// The function that the caller called for what is planned, where its nodes do not know.
    pub called: Option<&'static str>,
}

/// The memory that a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Supposed {
    /// What there is. A refusal names the smallest limit that works.
    Nothing,
    /// What there is. Whoever asks looks for the limit that works by itself.
    Unnamed,
    /// So many bytes beside what is held, as a limit would leave that is looked for.
    Bytes(u64),
    /// So many bytes, as another limit would leave them to a session that keeps nothing yet.
    Limit(u64),
}

impl Asking {
    pub fn of(asker: Asker) -> Asking {
        Asking {
            asker,
            now: Now::IsThen,
            memory: Supposed::Nothing,
            called: None,
        }
    }
}

/// Memory reserved for a plan while it is made. A large one waits for its turn, as programs do: what it takes, kept tiles
/// and idle frames give up, of all sessions.
pub(in crate::run) struct PlanningMemory<'a> {
    session: &'a Session,
    asker: Asker,
    /// What it is for, by name.
    operator: &'static str,
    /// Whether that is a plan.
    planning: bool,
    claim: u64,
    /// How much more than the limit leaves is let pass, without a reservation.
    beyond: u64,
    reserved: Vec<Reservation>,
    turn: Option<Turn>,
}

impl<'a> PlanningMemory<'a> {
    pub fn new(session: &'a Session, asker: Asker) -> PlanningMemory<'a> {
        PlanningMemory {
            session,
            asker,
            operator: "planning",
            planning: true,
            claim: 0,
            beyond: BEYOND,
            reserved: vec![],
            turn: None,
        }
    }

    pub fn reserve_operators(&mut self, operators: usize) -> Result<(), EngineError> {
        self.reserve(operators as u64 * BYTES_PER_OPERATOR)
    }

    /// Takes so much more; what is there stays as it is where there is not so much.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), EngineError> {
        self.claim += bytes;
        self.reserve_wanted().inspect_err(|_| self.claim -= bytes)
    }

    fn reserve_wanted(&mut self) -> Result<(), EngineError> {
        if self.claim <= SMALL {
            return Ok(());
        }
        self.take_turn(&mut || Ok(()))?;
        let session = self.session;
        let ledger = session.ledger();
        let held = session.held();
        let need = held.here + self.claim;
        let limit = session.claim_room(need);
        if need > limit + self.beyond {
            return Err(EngineError::Memory {
                operator: self.operator.into(),
                need: self.claim,
                available: limit.saturating_sub(held.here),
                smallest: session.limit_for(self.claim, held),
                exact: false,
                detail: session.describe_limit(held),
                planning: self.planning,
            });
        }
        if need > limit {
            return Ok(());
        }
        session.give_way(limit - need);
        ledger.set_limit(limit as usize);
        let reserved: u64 = self.reserved.iter().map(|part| part.bytes() as u64).sum();
        let missing = (self.claim - reserved) as usize;
        self.reserved.push(ledger.reserve(missing, self.operator)?);
        Ok(())
    }

    fn take_turn(&mut self, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        if self.turn.is_some() || self.asker == Asker::InTurn {
            return Ok(());
        }
        if self.asker == Asker::Nested {
            return Err(EngineError::Plan(format!(
                "{}: so much memory was asked for inside a running computation (by a function over tiles or a progress \
                 callback)",
                self.operator
            )));
        }
        let turn = Turn::queue(self.session.ledger());
        while !turn.has_come(POLL) {
            nesting::check_welcome(&turn)?;
            cancel::check();
            watch()?;
        }
        self.turn = Some(turn);
        Ok(())
    }
}

/// Memory of the session's for work that is no program, and the turn to run where it is large; both until it is dropped.
pub struct SetAside<'a>(PlanningMemory<'a>);

impl SetAside<'_> {
    /// Waits for the turn, where so much memory is taken in a turn: what the session can spare is known then.
    ///
    /// # Errors
    /// The error of `watch`; it was asked for inside a running computation.
    pub fn wait_for_turn(&mut self, bytes: u64, watch: &mut Watch<'_>) -> Result<(), EngineError> {
        match bytes > SMALL {
            true => self.0.take_turn(watch),
            false => Ok(()),
        }
    }

    /// Takes so much more.
    ///
    /// # Errors
    /// There is not so much.
    pub fn grow(&mut self, bytes: u64) -> Result<(), EngineError> {
        self.0.reserve(bytes)
    }
}

impl Session {
    /// Takes memory for an operator that is no program: kept tiles make room as for one.
    ///
    /// # Errors
    /// There is not so much, or it was asked for inside a running computation.
    pub fn set_aside(&self, operator: &'static str, bytes: u64) -> Result<SetAside<'_>, EngineError> {
        let mut memory = PlanningMemory::new(self, Asker::here());
        (memory.operator, memory.planning, memory.beyond) = (operator, false, 0);
        memory.reserve(bytes)?;
        Ok(SetAside(memory))
    }

    /// Takes memory for what stays between programs and grows: kept tiles make room, and programs run in what is left. A
    /// few megabytes are covered by the allowances beside the ledger, for which nothing is taken.
    ///
    /// # Errors
    /// As [`Session::set_aside`].
    pub fn hold_beside(&self, operator: &'static str, bytes: u64) -> Result<Vec<Reservation>, EngineError> {
        let mut held = self.set_aside(operator, bytes)?;
        Ok(std::mem::take(&mut held.0.reserved))
    }
}

impl Drop for PlanningMemory<'_> {
    fn drop(&mut self) {
        drop(ReturnFreed::after(self.claim));
        self.reserved.clear();
    }
}

/// Has the allocator give its free pages back when dropped, where so much was freed that it matters.
pub(in crate::run) struct ReturnFreed {
    matters: bool,
}

impl ReturnFreed {
    pub fn after(bytes: u64) -> ReturnFreed {
        ReturnFreed { matters: bytes > SMALL }
    }
}

impl Drop for ReturnFreed {
    fn drop(&mut self) {
        if self.matters {
            return_freed_memory();
        }
    }
}
