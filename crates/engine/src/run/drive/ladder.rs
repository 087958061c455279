//! The ladder of re-planning: a plan that does not fit is made again with less of the memory, a plan that is out of date anew.
//! Each rung has a bound, all rungs of a computation have one together, and refusals on the way are part of its explanation.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::steps::need_of;
use crate::expr::staged::Room;
use crate::EngineError;

/// How often the room is halved, of a step or of all operators of one program.
pub(super) const HALVES_MAX: usize = 5;
/// How often while a limit that works is looked for: every half makes larger programs, most of which do not fit either.
pub(super) const HALVES_LOOKING: usize = 1;
/// How often a plan is made anew that other threads took kept tiles from.
pub(super) const RENEWALS_MAX: usize = 7;
/// Refusals of one computation, over all of its operators.
const REFUSALS_MAX: usize = 64;

/// A plan that did not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanRefusal {
    /// The operator.
    pub of: String,
    /// It had one of so many parts of the room.
    pub parts: u64,
    /// Bytes that it needs.
    pub need: u64,
}

/// The rungs that a computation has taken.
#[derive(Debug, Default)]
pub(super) struct Ladder(Mutex<Vec<PlanRefusal>>);

impl Ladder {
    fn lock(&self) -> MutexGuard<'_, Vec<PlanRefusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn refusals(&self) -> Vec<PlanRefusal> {
        self.lock().clone()
    }

    /// Notes the refusal, with all the room, of a plan that was given up for this one.
    pub fn follow(&self, of: &str, error: &EngineError) {
        let (of, parts) = (of.into(), 1);
        let refusal = need_of(error).map(|need| PlanRefusal { of, parts, need });
        self.lock().splice(0..0, refusal);
    }

    /// Notes the refusal of an operator's plan in one of so many parts of the room; whether there may be another.
    pub fn refused(&self, of: &str, parts: u64, error: &EngineError) -> bool {
        let Some(need) = need_of(error) else { return false };
        let mut refusals = self.lock();
        let of = of.into();
        refusals.push(PlanRefusal { of, parts, need });
        refusals.len() < REFUSALS_MAX
    }

    /// Takes a step of an operator with all the room, and with less of it where that does not fit.
    ///
    /// # Errors
    /// The refusal of all the room where no rung fits; other errors of the step.
    pub fn with_less<T>(
        &self,
        of: &str,
        mut room: Room,
        mut step: impl FnMut(Room) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut first = None;
        for halves in 0..=HALVES_MAX {
            let refused = match step(room) {
                Err(error @ EngineError::Memory { .. }) => error,
                done => return done,
            };
            let may_go_on = self.refused(of, 1 << halves, &refused);
            let first = first.get_or_insert(refused);
            if !may_go_on || halves == HALVES_MAX {
                return Err(std::mem::replace(first, EngineError::Cancelled));
            }
            room.memory /= 2;
        }
        unreachable!("the last rung gives its refusal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(need: u64) -> EngineError {
        EngineError::Memory {
            operator: "sort".into(),
            need,
            available: 0,
            smallest: need,
            exact: true,
            detail: String::new(),
            planning: false,
        }
    }

    const ROOM: Room = Room {
        memory: 1024,
        threads: 1,
    };

    #[test]
    fn less_is_taken_until_it_fits() {
        let ladder = Ladder::default();
        let fits = ladder.with_less("sort", ROOM, |room| match room.memory {
            ..300 => Ok(room.memory),
            memory => Err(refusal(memory)),
        });
        assert_eq!(fits.ok(), Some(256));
        let parts: Vec<_> = ladder.refusals().iter().map(|one| (one.parts, one.need)).collect();
        assert_eq!(parts, [(1, 1024), (2, 512)]);
    }

    #[test]
    fn the_refusal_of_all_the_room_is_given() {
        let ladder = Ladder::default();
        let found: Result<(), _> = ladder.with_less("sort", ROOM, |room| Err(refusal(room.memory)));
        assert_eq!(found.err().as_ref().and_then(need_of), Some(1024));
        assert_eq!(ladder.refusals().len(), HALVES_MAX + 1);
    }

    #[test]
    fn other_errors_end_it() {
        let ladder = Ladder::default();
        let found: Result<(), _> = ladder.with_less("sort", ROOM, |_| Err(EngineError::Cancelled));
        assert!(matches!(found, Err(EngineError::Cancelled)));
        assert!(ladder.refusals().is_empty());
    }

    #[test]
    fn all_rungs_have_a_bound() {
        let ladder = Ladder::default();
        let mut steps = 0;
        for _ in 0..100 {
            let _: Result<(), _> = ladder.with_less("sort", ROOM, |_| {
                steps += 1;
                Err(refusal(1))
            });
        }
        assert!(steps <= REFUSALS_MAX + 100, "{steps}");
    }
}
