//! The steps of staged operators: their programs, and where results of stages go.

use std::path::PathBuf;
use std::sync::Arc;

use super::resume::Resuming;
use crate::cancel::Watch;
use crate::expr::staged::{Keep, Next, Room, Stages};
use crate::expr::Expr;
use crate::ops::Waiting;
use crate::run::prepare::planning::{Asking, Supposed};
use crate::run::prepare::program::PreparedProgram;
use crate::run::session::{Session, Target};
use crate::EngineError;

/// The target of a result of a stage.
#[derive(Clone)]
pub(super) enum StageTarget {
    Fact,
    /// A file of scratch, or one that can be gone on with.
    File(PathBuf),
    /// A small result in a file that can be gone on with.
    FactFile(PathBuf),
    /// A sparse matrix in scratch; one that was begun is made anew.
    Matrix(PathBuf),
    /// As `Matrix`, of a factor.
    Factor(PathBuf),
}

/// The step that a staged operator is at.
pub(super) enum ChainStep {
    Stage {
        label: String,
        awaits: String,
        kept: Vec<StageTarget>,
        /// Nothing where an earlier run has done it all.
        program: Option<Box<PreparedProgram>>,
    },
    Done(Vec<Expr>),
}

/// An operator that was begun: in which room, and what its first step is.
pub(super) type Begun = (Room, Box<dyn Stages>, ChainStep);

/// Bytes that a refusal says are needed; nothing for another error.
pub(super) fn need_of(error: &EngineError) -> Option<u64> {
    match error {
        EngineError::Memory { need, .. } => Some(*need),
        _ => None,
    }
}

/// Whether the plan itself is too large, so that another must not be made beside it.
pub(super) fn is_of_planning(error: &EngineError) -> bool {
    matches!(error, EngineError::Memory { planning: true, .. })
}

/// The refusal that needs less.
pub(super) fn lesser(before: Option<EngineError>, now: EngineError) -> EngineError {
    match before {
        Some(before) if need_of(&before) <= need_of(&now) => before,
        _ => now,
    }
}

/// The function that the caller called for an operator, or its own name.
pub(super) fn called(waiting: &Waiting) -> String {
    waiting.node.called().map_or_else(|| waiting.key.0.name(), Into::into)
}

/// The refusal of an operator by the name of the function that the caller called for it.
pub(super) fn by_call(waiting: &Waiting, mut error: EngineError) -> EngineError {
    if let (EngineError::Memory { operator, .. }, Some(called)) = (&mut error, waiting.node.called()) {
        if *operator == waiting.key.0.name() {
            *operator = called.into();
        }
    }
    error
}

impl StageTarget {
    fn target(&self) -> Target {
        match self {
            StageTarget::Fact => Target::Memory,
            StageTarget::File(path)
            | StageTarget::FactFile(path)
            | StageTarget::Matrix(path)
            | StageTarget::Factor(path) => Target::Path {
                path: path.clone(),
                overwrite: false,
                chunks: None,
                resume: false,
                annotations: None,
                update: None,
                codecs: None,
                part: None,
            },
        }
    }
}

impl Session {
    /// What a program of a stage may take for tiles.
    pub(super) fn stage_room(&self, memory: Supposed) -> Room {
        let beside = self.budget_for(memory);
        Room {
            // Buffers of I/O threads, workspaces of passes and the program itself are beside them.
            memory: beside - beside / 16,
            threads: self.options.threads.max(1),
        }
    }

    /// Plans the program of a step.
    pub(super) fn prepare_step(
        self: &Arc<Session>,
        next: Next,
        resuming: Option<&Resuming>,
        asking: Asking,
        watch: &mut Watch<'_>,
    ) -> Result<ChainStep, EngineError> {
        let (label, awaits, outputs) = match next {
            Next::Done(results) => return Ok(ChainStep::Done(results)),
            Next::Stage { label, awaits, outputs } => (label, awaits, outputs),
        };
        let folder = self.folder()?;
        let kept: Vec<StageTarget> = outputs
            .iter()
            .map(|(output, keep)| match (keep, resuming) {
                (Keep::Stored, _) if output.sparse_output().is_some() => {
                    StageTarget::Matrix(folder.unused().with_extension("ocs"))
                }
                (Keep::Stored, _) if output.file_output().is_some() => {
                    StageTarget::Factor(folder.unused().with_extension("ocf"))
                }
                (Keep::Fact, None) => StageTarget::Fact,
                (Keep::Stored, None) => StageTarget::File(folder.unused()),
                (Keep::Fact, Some(resuming)) => StageTarget::FactFile(resuming.path(output)),
                (Keep::Stored, Some(resuming)) => StageTarget::File(resuming.path(output)),
            })
            .collect();
        let mut missing = Vec::new();
        let mut targets = Vec::new();
        for ((output, _), kept) in outputs.into_iter().zip(&kept) {
            match (kept, resuming) {
                (StageTarget::File(path) | StageTarget::FactFile(path), Some(resuming)) => {
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
        Ok(ChainStep::Stage {
            label,
            awaits,
            kept,
            program,
        })
    }
}
