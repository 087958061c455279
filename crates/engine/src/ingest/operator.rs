//! Groups of entries as live work: the memory of the threads, and how it grows with the tile row at work.

use std::path::Path;

use outcore_store::SparseShape;

use super::crew::{assemble, groups_within, Assembled, Crew, Groups, Ingest, MemoryGrant};
use crate::expr::Expr;
use crate::live::{working_bytes, LiveMemory, LiveOperator, Resources, Watch};
use crate::run::Session;
use crate::sparse::{Assembler, Duplicates};
use crate::EngineError;

/// Memory of what is not written is taken so much at a time. The first is covered by the allowances beside the ledger.
const HELD_STEP: u64 = 16 << 20;

/// The groups of entries with these keys and values in the memory of a session, of which others have given back what they hold by
/// the turn of the ingest.
///
/// # Errors
/// As [`crate::sort::sort_by`].
pub fn groups_in(keys: &Expr, values: &[Expr], session: &Session) -> Result<Groups, EngineError> {
    groups_within(
        keys,
        values,
        working_bytes(session.budget()),
        session.options().threads.max(1),
    )
}

/// Entries that are written to a file.
pub struct StoredEntries<'a> {
    pub ingest: Ingest<'a>,
    pub path: &'a Path,
    pub shape: SparseShape,
    pub duplicates: Duplicates,
    pub overwrite: bool,
    /// Hears how many entries are done.
    pub told: &'a (dyn Fn(u64) -> Result<(), EngineError> + Sync),
}

impl StoredEntries<'_> {
    fn crew_within(&self, memory: u64, threads: usize) -> Crew {
        let item = self.shape.dtype.map_or(0, |dtype| dtype.size());
        Crew::within(memory, self.ingest.parts, item as u64, threads.max(1))
    }
}

impl LiveOperator for StoredEntries<'_> {
    type Output = SparseShape;

    fn name(&self) -> &'static str {
        "sparse: entries"
    }

    fn memory(&self, threads: usize) -> LiveMemory {
        let bytes = |memory| self.crew_within(memory, threads).bytes();
        LiveMemory::working(bytes(0), bytes(u64::MAX))
    }

    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<SparseShape, EngineError> {
        let crew = self.crew_within(resources.memory, resources.threads);
        let mut held = resources.memory;
        let (shape, io) = (self.shape.clone(), resources.io);
        let assembler = Assembler::new(self.path, shape, self.duplicates, self.overwrite, crew.workers(), io)?;
        assemble(self.ingest, assembler, crew, io, &mut |Assembled { entries, bytes }| {
            let wanted = bytes.saturating_sub(HELD_STEP).next_multiple_of(HELD_STEP);
            if wanted > held {
                match (resources.grow)(wanted - held) {
                    Err(refused @ EngineError::Memory { .. }) => return Ok(MemoryGrant::Refused(refused)),
                    grown => grown?,
                }
                held = wanted;
            }
            (self.told)(entries)?;
            watch()?;
            Ok(MemoryGrant::Enough)
        })
    }
}
