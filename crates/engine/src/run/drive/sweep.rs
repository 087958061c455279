//! A sweep: what one computation would move under other memory limits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;

use super::chain::Chain;
use super::steps::need_of;
use crate::cancel::Watch;
use crate::expr::Expr;
use crate::ops::has_staged;
use crate::run::prepare::planning::{Asker, Asking, Supposed};
use crate::run::session::{Session, Target, POLL};
use crate::EngineError;

/// The forecast of a computation under one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepPoint {
    pub memory_limit: u64,
    /// Nothing where the computation does not fit.
    pub forecast: Option<SweepForecast>,
    /// Bytes that it needs beside the process, where it does not fit.
    pub need: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepForecast {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub spilled_bytes: u64,
    pub peak_bytes: u64,
    /// Whether these are the run's; else bounds.
    pub is_exact: bool,
}

impl Chain {
    /// Bytes moved beyond reading each stored tile once and writing each result, by the stages that are planned; 0 where
    /// the first starts from tiles or values that are kept, which no other session has.
    pub fn bytes_beyond_once(&self) -> u64 {
        let first = &self.stages[0].program;
        if first.starts_from().0 > 0 || first.knows().0 > 0 {
            return 0;
        }
        let beyond = self.stages.iter().map(|stage| {
            let once = stage.program.tiles.source_bytes(&stage.program.plan);
            let spilled = stage.program.placed.program.totals.spilled_bytes;
            spilled + stage.program.read_bytes().saturating_sub(once)
        });
        beyond.sum()
    }

    /// The same computation under other limits, see [`Session::sweep`].
    ///
    /// # Errors
    /// As [`Session::sweep`].
    pub fn sweep(&self, limits: &[u64], watch: &mut Watch<'_>) -> Result<Vec<SweepPoint>, EngineError> {
        self.session.sweep(&self.outputs, &self.targets, limits, watch)
    }
}

impl Session {
    /// Plans a computation under each of some limits, for a process as large as this one is, which holds the results that
    /// it holds and keeps nothing else. Nothing is created and no data is read.
    ///
    /// # Errors
    /// The error of `watch`, and errors of a plan but the refusal of one that does not fit.
    pub fn sweep(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        limits: &[u64],
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SweepPoint>, EngineError> {
        self.check_usable()?;
        self.settle_ahead();
        let (next, unwanted) = (&AtomicUsize::new(0), &AtomicBool::new(false));
        let asker = Asker::here();
        let mut points = vec![None; limits.len()];
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            for _ in 0..self.options.threads.clamp(1, limits.len().max(1)) {
                let sender = sender.clone();
                scope.spawn(move || loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&limit) = limits.get(place) else { break };
                    let mut look = || match unwanted.load(Ordering::Relaxed) {
                        true => Err(EngineError::Cancelled),
                        false => Ok(()),
                    };
                    let point = self.sweep_point(outputs, targets, (limit, asker), &mut look);
                    // Nobody takes it when the caller has gone.
                    let _ = sender.send((place, point));
                });
            }
            drop(sender);
            let mut collect = || -> Result<(), EngineError> {
                loop {
                    watch()?;
                    match receiver.recv_timeout(POLL) {
                        Ok((place, point)) => points[place] = Some(point?),
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    }
                }
            };
            collect().inspect_err(|_| unwanted.store(true, Ordering::Relaxed))
        })?;
        Ok(points.into_iter().flatten().collect())
    }

    fn sweep_point(
        self: &Arc<Session>,
        outputs: &[Expr],
        targets: &[Target],
        (memory_limit, asker): (u64, Asker),
        watch: &mut Watch<'_>,
    ) -> Result<SweepPoint, EngineError> {
        let held = self.held();
        let room = memory_limit.saturating_sub(self.overhead() + held.elsewhere);
        let pool = self.options.pool_limit.unwrap_or(u64::MAX);
        let asking = Asking {
            memory: Supposed::Limit(room.min(pool).saturating_sub(held.here)),
            ..Asking::of(asker)
        };
        let chain = match Chain::new(self, outputs, targets, asking).planned(watch) {
            Ok(chain) => chain,
            Err(error) => {
                let need = need_of(&error).ok_or(error)?;
                return Ok(SweepPoint {
                    memory_limit,
                    forecast: None,
                    need,
                });
            }
        };
        let traffic = chain.traffic();
        let programs = || chain.stages.iter().map(|stage| &stage.program);
        let spilled = programs().map(|program| program.placed.program.totals.spilled_bytes);
        Ok(SweepPoint {
            memory_limit,
            forecast: Some(SweepForecast {
                read_bytes: traffic.read,
                written_bytes: traffic.written,
                spilled_bytes: spilled.sum(),
                peak_bytes: programs().map(|program| program.peak_bytes()).max().unwrap_or(0),
                is_exact: !has_staged(outputs) && programs().all(|program| program.is_exact()),
            }),
            need: 0,
        })
    }
}
