//! Arrays to write.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::annotations::Annotations;
use crate::base::interval::Interval;
use crate::durable::journal::JournalRecord;
use crate::durable::locked::LockedDir;
use crate::durable::partial::Partial;
use crate::durable::publish::place_all;
use crate::{ClaimedSlice, Io, Region, StoreError};

/// The costs of an output, which are known before anything is written: exact, or bounds where its plan says so.
pub trait WriteCosts {
    /// The grid that writes come in.
    fn tile(&self) -> &[u64];
    /// The bytes that `write` transfers.
    fn write_bytes(&self, region: &Region) -> u64;
    /// The bytes of headers and metadata that creating and finishing transfer.
    fn overhead_bytes(&self) -> u64;
    /// Memory that one `write` uses while it runs.
    fn workspace_bytes(&self, _region: &Region) -> usize {
        0
    }
    /// Whether what was written can be read back before the output is complete, in whole pages, with [`Sink::read_back`].
    fn is_read_back(&self) -> bool {
        false
    }
}

/// An output of some format that was checked and is not created.
pub(crate) trait OutputPlan: WriteCosts + std::fmt::Debug + Send + Sync {
    fn shape(&self) -> &[u64];
    fn dtype(&self) -> DType;
    /// Whether the output is a folder.
    fn is_folder(&self) -> bool {
        false
    }
    /// The same with annotations, where the format has any.
    fn annotated(&self, _annotations: &Annotations) -> Option<Arc<dyn OutputPlan>> {
        None
    }
    /// The same with chunks that are encoded by codecs, which are a list in JSON as Zarr v3 has them, where the format has any.
    ///
    /// # Errors
    /// One line: the codec that is not written.
    fn encoded(&self, _codecs: &str) -> Option<Result<Arc<dyn OutputPlan>, String>> {
        None
    }
    /// Creates the output beside the name `path`, in `folder` where there is one that stays until it is published.
    fn create(
        &self,
        folder: Option<LockedDir>,
        path: &Path,
        overwrite: bool,
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError>;
    /// Goes on with an output that was begun in `folder`, of which the tiles `done` are durable.
    fn reopen(
        &self,
        _folder: LockedDir,
        path: &Path,
        _overwrite: bool,
        _done: &[JournalRecord],
        _io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        Err(StoreError::unsupported(path, "is written in one go"))
    }
    /// Whether what is at `path` says of itself what an output of this plan says.
    fn is_begun_at(&self, _path: &Path, _io: &Io) -> Result<bool, StoreError> {
        Ok(false)
    }
    /// The first bytes of a file, where these are known before anything is written.
    fn head(&self) -> Vec<u8> {
        vec![]
    }
    /// Of the costs beside tiles those of finishing, which come again where the output was begun before.
    fn finish_bytes(&self) -> u64 {
        0
    }
    /// Bytes of a tile, without what fills its last page.
    fn tile_bytes(&self, region: &Region) -> u64 {
        region.elements() * self.dtype().size() as u64
    }
    /// Told of a tile that is durable in an output that was begun, before that is gone on with.
    fn verified(&self, _region: &Region, _tile: &[u8]) {}
    /// Whether the file cannot be opened before it is complete, and says where tiles are.
    fn is_placed(&self) -> bool {
        false
    }
    /// Where a tile of such a file is: from a page on, in one run.
    fn place(&self, _region: &Region) -> Option<Interval> {
        None
    }
    /// Whether its costs are exact, and no bounds.
    fn is_exact(&self) -> bool {
        true
    }
}

/// An array being written, from several threads at once.
///
/// What callers promise: every region is one whole cell of the `tile` grid, clipped at the array's edge, and is written
/// once. What a sink promises: its costs are exact or the bounds of its plan, and nothing has the final name before it is
/// published.
pub trait Sink: Send + Sync {
    fn name(&self) -> String;
    /// What writing costs.
    fn costs(&self) -> &dyn WriteCosts;
    /// The grid that writes come in.
    fn tile(&self) -> &[u64] {
        self.costs().tile()
    }
    /// The bytes that `write` transfers.
    fn write_bytes(&self, region: &Region) -> u64 {
        self.costs().write_bytes(region)
    }
    /// The bytes of headers and metadata that creating and finishing transfer.
    fn overhead_bytes(&self) -> u64 {
        self.costs().overhead_bytes()
    }
    /// Memory that one `write` uses while it runs.
    fn workspace_bytes(&self, region: &Region) -> usize {
        self.costs().workspace_bytes(region)
    }
    /// Writes a region given C-contiguous in native order. `data` starts on a page and may go on to the end of the
    /// region's last page; what is there is never visible in the output.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError>;
    /// Reads a region that was written, into the front of a frame of its whole pages, where [`WriteCosts::is_read_back`].
    ///
    /// # Errors
    /// The file cannot be read, or is not what was written; an output that cannot be read before it is complete.
    fn read_back(&self, _region: &Region, _frame: &mut [u8], _io: &Io) -> Result<(), StoreError> {
        let name = self.name();
        Err(StoreError::Invalid(format!(
            "{name}: cannot be read before it is complete"
        )))
    }
    /// The region's place in memory, where it is one contiguous piece.
    fn borrow(&self, _region: &Region) -> Option<ClaimedSlice> {
        None
    }
    /// Makes what has been written so far durable, while more may be written.
    ///
    /// # Errors
    /// The file cannot be synced.
    fn flush(&self, _io: &Io) -> Result<(), StoreError> {
        Ok(())
    }
    /// Makes what was written durable, still without its name: several outputs are sealed before any is published.
    ///
    /// # Errors
    /// The rest cannot be written, or the file cannot be synced.
    fn seal(&self, io: &Io) -> Result<(), StoreError>;
    /// Refuses a sealed output that is not what was written any more: moved, cut short, with files missing.
    ///
    /// # Errors
    /// `disturbed`, when the output is not what was written.
    fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// Whether it is sealed before it counts as written: what has a name to get, and parts of what another names.
    fn is_durable(&self) -> bool {
        self.partial().is_some()
    }
    /// The output beside its name, where it has one.
    fn partial(&self) -> Option<&Partial> {
        None
    }
    /// Seals and publishes this output alone.
    ///
    /// # Errors
    /// Those of `seal` and `check`; a name that cannot be given.
    fn finish(&self, io: &Io) -> Result<(), StoreError> {
        self.seal(io)?;
        self.check()?;
        place_all(self.partial().as_slice(), io)
    }
    /// Removes what was written, and what a later run could go on with: that would come to the same end.
    fn give_up(&self) {
        if let Some(partial) = self.partial() {
            partial.give_up();
        }
    }
    /// Removes what was written. Dropping an unfinished sink does the same.
    fn abort(&self, _io: &Io) {
        if let Some(partial) = self.partial() {
            partial.discard();
        }
    }
}
