//! What a refusal says: which operator needs how much, and a limit under which the whole works.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use outcore_store::show_size as show;

use crate::place::Shortage;
use crate::plan::{ArrayId, Plan, Producer};
use crate::run::session::overhead::STEP;
use crate::run::session::Session;
use crate::EngineError;

/// A limit that works is narrowed down for so long at most.
const NARROWING: Duration = Duration::from_millis(500);
/// Memory that is told apart from less.
const GRAIN: u64 = 64 << 10;
/// More than any machine has, and small enough that sums of a few do not wrap.
const BYTES_MAX: u64 = 1 << 60;

/// Bytes that results take which the caller still has, of this session and of the process's others.
#[derive(Clone, Copy)]
pub(in crate::run) struct HeldBytes {
    pub(in crate::run) here: u64,
    pub(in crate::run) elsewhere: u64,
}

/// Whether a computation fits.
pub(in crate::run) enum Fit {
    Yes,
    No { need: u64 },
}

/// How a limit that works is looked for.
#[derive(Clone, Copy)]
pub(in crate::run) struct Looking {
    /// What was refused, and what that needed.
    pub refused: u64,
    pub need: u64,
    /// Whether whatever is refused needs at least what it says, also with more memory.
    pub needs_are_least: bool,
    /// Memory is told apart from so much less of it, in parts.
    pub parts: u64,
}

impl Looking {
    /// The least memory that `fits`: one that does is found first, then narrowed down while that takes little time. Nothing
    /// where none does.
    ///
    /// # Errors
    /// Those of `fits`.
    pub fn find(self, mut fits: impl FnMut(u64) -> Result<Fit, EngineError>) -> Result<Option<u64>, EngineError> {
        let begin = Instant::now();
        let (mut low, mut high) = (self.refused, self.need.max(self.refused + GRAIN));
        while let Fit::No { need } = fits(high)? {
            low = high;
            // Plans that take long are made for few budgets.
            let more = if begin.elapsed() < NARROWING { high / 4 } else { high };
            high = need.max(high + more);
            if high > BYTES_MAX {
                return Ok(None);
            }
        }
        while high - low > GRAIN.max(high / self.parts) && begin.elapsed() < NARROWING {
            let middle = low + (high - low) / 2;
            match fits(middle)? {
                Fit::Yes => high = middle,
                Fit::No { need } if self.needs_are_least => low = middle.max(need.min(high) - 1),
                Fit::No { .. } => low = middle,
            }
        }
        Ok(Some(high))
    }
}

impl Session {
    /// Bytes of results that the caller still has.
    pub(in crate::run) fn held(&self) -> HeldBytes {
        HeldBytes {
            here: self.ledger().held() as u64,
            elsewhere: self.ledger().held_by_others() as u64,
        }
    }

    /// Whether it is the pool that `budget` bytes beside what is held do not fit into, rather than the process.
    fn pool_binds(&self, budget: u64, held: HeldBytes) -> bool {
        self.options.pool_limit.is_some_and(|pool| budget + held.here > pool)
    }

    /// The limit under which `budget` bytes are there beside what is held: of the pool where that is what binds, else of
    /// the process. That may be larger when it is measured again.
    pub(in crate::run) fn limit_for(&self, budget: u64, held: HeldBytes) -> u64 {
        match self.pool_binds(budget, held) {
            true => budget + held.here,
            false => budget + held.here + held.elsewhere + self.overhead() + STEP,
        }
    }

    /// The limit under which so many bytes are there beside what is held now.
    pub fn limit_that_leaves(&self, bytes: u64) -> u64 {
        self.limit_for(bytes, self.held())
    }

    /// Asks whether `fits` for every budget that there may be under the limit named for `budget`.
    pub(in crate::run) fn fits_as_named(
        &self,
        budget: u64,
        held: HeldBytes,
        fits: &mut dyn FnMut(u64) -> Result<Fit, EngineError>,
    ) -> Result<Fit, EngineError> {
        match fits(budget)? {
            Fit::Yes if !self.pool_binds(budget, held) => fits(budget + STEP),
            fit => Ok(fit),
        }
    }

    /// Where the limit's bytes are.
    pub(in crate::run) fn describe_limit(&self, held: HeldBytes) -> String {
        let HeldBytes { here, elsewhere } = held;
        let mut parts = vec![format!("{} are the process itself", show(self.overhead()))];
        for (bytes, of) in [(here, "earlier results"), (elsewhere, "results of other sessions")] {
            if bytes > 0 {
                parts.push(format!("{} are held by {of}", show(bytes)));
            }
        }
        let limit = show(self.options.memory_limit);
        let pool = self
            .options
            .pool_limit
            .map(|pool| format!(", pool_limit {}", show(pool)));
        format!(
            "memory_limit {limit}, of which {}{}",
            parts.join(" and "),
            pool.unwrap_or_default()
        )
    }

    /// The error for a plan that does not fit, where `smallest` bytes beside what is held are the least that would do, if
    /// that is known. `name` is the function that the caller called, where the plan's nodes do not know.
    pub(in crate::run) fn refuse(
        &self,
        plan: &Plan,
        name: Option<&'static str>,
        shortage: &Shortage,
        held: HeldBytes,
        smallest: Option<u64>,
    ) -> EngineError {
        let producer = shortage.pass as usize;
        let label = plan.producers.get(producer).map_or("", Producer::label);
        let operator = called(plan, producer).or(name).unwrap_or(label);
        let detail = self.describe_limit(held);
        EngineError::Memory {
            operator: operator.into(),
            need: shortage.need,
            available: shortage.available,
            smallest: self.limit_for(smallest.unwrap_or(shortage.need), held),
            exact: smallest.is_some(),
            detail: match operator == label {
                true => detail,
                false => format!("at {label}; {detail}"),
            },
            planning: false,
        }
    }
}

/// The function that the caller called for what a producer makes, or for what is made of that.
fn called(plan: &Plan, producer: usize) -> Option<&'static str> {
    let mut takers: HashMap<ArrayId, Vec<usize>> = HashMap::new();
    for (index, producer) in plan.producers.iter().enumerate() {
        for array in producer.reads() {
            takers.entry(array).or_default().push(index);
        }
    }
    let mut seen = vec![false; plan.producers.len()];
    let mut due = VecDeque::from([producer]);
    while let Some(index) = due.pop_front() {
        if index >= seen.len() || std::mem::replace(&mut seen[index], true) {
            continue;
        }
        let made = plan.producers[index].writes();
        let nodes = made.iter().map(|&array| &plan.arrays[array as usize].node);
        if let Some(name) = nodes.filter_map(|node| node.called()).next() {
            return Some(name);
        }
        due.extend(made.iter().filter_map(|array| takers.get(array)).flatten());
    }
    None
}
