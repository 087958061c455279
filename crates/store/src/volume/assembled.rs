//! A volume with its disks found.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::description::{Description, VOLUME_JSON};
use super::disk::Disk;
use super::layout::Map;
use super::stub::{hex, Id, Stub};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::StoreError;

/// Files of this length at most are plain.
pub(crate) const PLAIN_BYTES: u64 = PAGE as u64;

/// A volume with its disks found.
pub(crate) struct Volume {
    pub home: PathBuf,
    /// What its description was when it was read.
    pub stamp: Stamp,
    pub description: Description,
    /// In the order of the description.
    pub disks: Vec<Arc<Disk>>,
}

impl Volume {
    /// Reads the description in `home`; disks that `known` has stay at work.
    pub(crate) fn load(home: &Path, known: &[Arc<Disk>]) -> std::result::Result<Volume, StoreError> {
        let stamp = Stamp::of(&home.join(VOLUME_JSON))?;
        let description = Description::read(home)?;
        let disks = description.members.iter().map(|member| {
            let at_work = known.iter().find(|disk| disk.member == member.id);
            at_work
                .cloned()
                .unwrap_or_else(|| Arc::new(Disk::new(description.id, member.clone())))
        });
        Ok(Volume {
            home: home.to_path_buf(),
            stamp,
            disks: disks.collect(),
            description,
        })
    }

    /// Where the blocks of a stub's file are.
    pub(crate) fn map(&self, stub: &Stub) -> Result<Map> {
        let invalid = |reason: String| Error::new(ErrorKind::InvalidData, reason);
        if stub.volume != self.description.id {
            let (its, here) = (hex(&stub.volume), self.home.display());
            return Err(invalid(format!("belongs to the volume {its}, not to that of {here}")));
        }
        let generation = self.description.generation(stub.generation);
        let generation =
            generation.ok_or_else(|| invalid(format!("is of generation {}, which is not known", stub.generation)))?;
        if stub.layout_sum != 0 && stub.layout_sum != self.description.layout_sum(generation) {
            let (number, home) = (stub.generation, self.home.display());
            return Err(invalid(format!(
                "was laid out otherwise than what {home}/{VOLUME_JSON} calls generation {number}: disks, their order, \
                 weights, layout or blocks were others; put back the description that it was written by"
            )));
        }
        Ok(Map::new(generation.rounds.clone(), stub.file))
    }

    /// The stub of a file that is made now, in this inode.
    pub(crate) fn stub(&self, file: Id, inode: u64) -> Stub {
        let generation = self.description.current();
        Stub {
            volume: self.description.id,
            file,
            generation: generation.number,
            inode,
            layout_sum: self.description.layout_sum(generation),
        }
    }
}
