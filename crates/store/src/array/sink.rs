//! Arrays to write.

use crate::durable::partial::Partial;
use crate::durable::publish::place_all;
use crate::{ClaimedSlice, Io, Region, StoreError};

/// An array being written, from several threads at once.
///
/// What callers promise: every region is one whole cell of the `tile` grid, clipped at the array's edge, and is written
/// once. What a sink promises: `write_bytes` and `overhead_bytes` are exact, and nothing has the final name before
/// it is published.
pub trait Sink: Send + Sync {
    fn name(&self) -> String;
    /// The grid that writes come in.
    fn tile(&self) -> &[u64];
    /// The bytes that `write` transfers.
    fn write_bytes(&self, region: &Region) -> u64;
    /// The bytes of headers and metadata that creating and finishing transfer.
    fn overhead_bytes(&self) -> u64;
    /// Memory that one `write` uses while it runs.
    fn workspace_bytes(&self, region: &Region) -> usize;
    /// Writes a region given C-contiguous in native order. `data` starts on a page and may go on to the end of the
    /// region's last page; what is there is never visible in the output.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&self, region: &Region, data: &[u8], io: &Io) -> Result<(), StoreError>;
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
    /// Removes what was written. Dropping an unfinished sink does the same.
    fn abort(&self, _io: &Io) {
        if let Some(partial) = self.partial() {
            partial.discard();
        }
    }
}
