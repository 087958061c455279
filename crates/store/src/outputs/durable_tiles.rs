//! The tiles of an output that was begun which are what its journal says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crc32c::crc32c;

use crate::array::region::region_of;
use crate::array::source::Source;
use crate::base::page::PAGE;
use crate::durable::journal::JournalRecord;
use crate::io::{File, Mode};
use crate::memory::mapping::AlignedBuffer;
use crate::registry::create::SinkPlan;
use crate::registry::open::open;
use crate::{Io, Region, StoreError};

/// Asked from time to time while files are read or removed; an error ends it.
pub type Look<'a> = &'a mut dyn FnMut() -> Result<(), StoreError>;

/// The tiles of an output whose records are to be believed: they have the bytes that these say.
pub(super) fn durable_tiles(
    plan: &SinkPlan,
    path: &Path,
    records: &[JournalRecord],
    io: &Io,
    look: Look<'_>,
) -> Result<Vec<JournalRecord>, StoreError> {
    let tiles = DurableTiles::open(plan, path, io)?;
    // The last that was said of a tile counts.
    let said: BTreeMap<u64, u32> = records.iter().map(|record| (record.tile, record.checksum)).collect();
    let mut durable = Vec::new();
    for (tile, checksum) in said {
        look()?;
        let Some(region) = region_of(plan.shape(), plan.tile(), tile) else {
            continue;
        };
        if tiles.has(plan, &region, checksum, io)? {
            durable.push(JournalRecord { tile, checksum });
        }
    }
    Ok(durable)
}

/// The tiles of an output that is not complete.
enum DurableTiles<'a> {
    Array(Arc<dyn Source>, &'a Path),
    /// Of a file that says nothing of itself yet.
    Placed(File, &'a Path),
}

impl DurableTiles<'_> {
    fn open<'a>(plan: &SinkPlan, path: &'a Path, io: &Io) -> Result<DurableTiles<'a>, StoreError> {
        let disturbed = || {
            let reason = "is of another shape or type, or its header is not what was written";
            StoreError::format(path, reason)
        };
        if plan.is_placed() {
            let begun = plan.is_begun_at(path, io)?;
            return begun
                .then(|| io.open(path, Mode::Read))
                .ok_or_else(disturbed)?
                .map(|file| DurableTiles::Placed(file, path));
        }
        let array = open(path, io)?.source;
        let is_alike = array.shape() == plan.shape() && array.dtype() == plan.dtype();
        match is_alike && plan.is_begun_at(path, io)? {
            true => Ok(DurableTiles::Array(array, path)),
            false => Err(disturbed()),
        }
    }

    /// Whether the bytes of a tile have a checksum; those that cannot be read have none.
    fn has(&self, plan: &SinkPlan, region: &Region, checksum: u32, io: &Io) -> Result<bool, StoreError> {
        let buffer = |path: &Path, bytes: usize| {
            let memory = AlignedBuffer::new(bytes.max(1).next_multiple_of(PAGE));
            memory.map_err(|cause| StoreError::io(path, 0, "map memory", cause))
        };
        let bytes = plan.tile_bytes(region) as usize;
        match self {
            DurableTiles::Array(array, path) => {
                let mut frame = buffer(path, array.cost(region, io)?.frame_bytes)?;
                let offset = array.read(region, &mut frame, io).ok();
                Ok(offset.is_some_and(|offset| crc32c(&frame[offset..offset + bytes]) == checksum))
            }
            DurableTiles::Placed(file, path) => {
                let Some(place) = plan.place(region) else {
                    return Ok(false);
                };
                let mut frame = buffer(path, bytes)?;
                let pages = bytes.next_multiple_of(PAGE);
                let read = io.read(file, &mut frame[..pages], place.start, pages);
                let has = read.is_ok() && crc32c(&frame[..bytes]) == checksum;
                if has {
                    plan.verified(region, &frame[..bytes]);
                }
                Ok(has)
            }
        }
    }
}
