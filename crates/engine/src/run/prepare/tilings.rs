//! Plans with files in their own tiles, and in tiles for products: the one that moves less.

use std::sync::Arc;

use crate::expr::Expr;
use crate::plan::{self, Plan};
use crate::run::prepare::planning::Asking;
use crate::run::prepare::program::PreparedProgram;
use crate::run::prepare::remember::Request;
use crate::run::session::{Session, Target};
use crate::EngineError;

/// A function that makes a plan of outputs, or none.
pub(in crate::run) type Planner<'a> = dyn Fn(&[Expr]) -> Result<Option<Plan>, EngineError> + 'a;

impl Session {
    /// Plans and places what is asked for, and beside it what is worth remembering. A program that does not fit is
    /// refused with the smallest limit that works, where this is the `last` attempt; that takes a while to find.
    ///
    /// Where large products read files more than once, so does a plan with the files in tiles for products, and the one that moves less
    /// is taken.
    pub(in crate::run) fn prepare_request(
        self: &Arc<Session>,
        request: &Request,
        remember: bool,
        targets: &[Target],
        asking: Asking,
        last: bool,
    ) -> Result<PreparedProgram, EngineError> {
        let own = |outputs: &[Expr]| plan::plan(outputs, self.options.plan).map(Some);
        let program = self.prepare_plan(request, remember, targets, (asking, last), &own);
        let program = program.map(|program| program.expect("a plan in its own tiles"));
        let is_least = match &program {
            Ok(program) => program.moves_least(),
            Err(error) => !matches!(error, EngineError::Memory { .. }),
        };
        if is_least {
            return program;
        }
        let tiled = |outputs: &[Expr]| plan::plan_in_product_tiles(outputs, self.options.plan);
        let tiled = self.prepare_plan(request, remember, targets, (asking, false), &tiled);
        match (program, tiled) {
            (Ok(program), Ok(Some(tiled))) if tiled.moved_bytes() < program.moved_bytes() => Ok(tiled),
            (Err(EngineError::Memory { .. }), Ok(Some(tiled))) => Ok(tiled),
            (program, _) => program,
        }
    }
}
