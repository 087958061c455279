//! One open file of a volume: plain while it is short, then spread over the disks.

use std::fs;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::assembled::{Volume, PLAIN_BYTES};
use super::disk::Disk;
use super::flights::Meter;
use super::striped::{where_it_is, OpenedBy, Striped, StubFile, Written};
use super::stub::{new_id, Stub, STUB_BYTES};
use crate::backend::stamp::Stamp;
use crate::backend::{Backend, Backing, Blob, Mode};
use crate::base::locked::locked;
use crate::base::page::PAGE;
use crate::memory::mapping::AlignedBuffer;

pub(crate) struct VolumeBlob {
    way: OpenedBy,
    path: PathBuf,
    stub: Arc<StubFile>,
    alignment: usize,
    state: RwLock<Storage>,
    /// Held while the file becomes longer.
    growth: Mutex<()>,
}

enum Storage {
    /// Short, and whole in the file itself.
    Plain,
    Striped(Striped),
}

impl VolumeBlob {
    pub(crate) fn new(
        volume: Arc<Volume>,
        stub: StubFile,
        path: &Path,
        mode: Mode,
        backend: Arc<dyn Backend>,
        found: Option<Stub>,
    ) -> Result<VolumeBlob> {
        let state = match found {
            Some(found) => Storage::Striped(Striped::new(&volume, volume.map(&found)?, found.file, stub.len()?)),
            None => Storage::Plain,
        };
        let aligned = matches!(mode, Mode::Read | Mode::Create | Mode::Reopen);
        Ok(VolumeBlob {
            alignment: if aligned {
                backend.volume_alignment().unwrap_or(1)
            } else {
                1
            },
            way: OpenedBy { volume, backend, mode },
            path: path.to_path_buf(),
            stub: Arc::new(stub),
            state: RwLock::new(state),
            growth: Mutex::default(),
        })
    }

    fn state(&self) -> RwLockReadGuard<'_, Storage> {
        self.state.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn state_alone(&self) -> RwLockWriteGuard<'_, Storage> {
        self.state.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn read(&self, buffers: Vec<&mut [u8]>, offset: u64) -> Result<usize> {
        let state = self.state();
        let Storage::Striped(striped) = &*state else {
            return read_plain(&self.stub.file, buffers, offset);
        };
        let room: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let bytes = self.stub.len()?.saturating_sub(offset).min(room);
        let span = bytes.next_multiple_of(self.alignment as u64).min(room);
        striped.read(&self.way, buffers, offset, offset + bytes, span)?;
        Ok(bytes as usize)
    }

    fn write(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        let bytes: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let end = offset.checked_add(bytes).ok_or(ErrorKind::FileTooLarge)?;
        let mut state = self.state();
        if let Storage::Plain = &*state {
            if end <= PLAIN_BYTES {
                return write_plain(&self.stub.file, buffers, offset);
            }
            drop(state);
            self.stripe(&mut self.state_alone())?;
            state = self.state();
        }
        let Storage::Striped(striped) = &*state else {
            return Err(Error::other("cut to nothing while it was written to"));
        };
        self.stub.touch()?;
        let written = striped.write(&self.way, buffers, offset)?;
        {
            let _growth = locked(&self.growth);
            if self.stub.len()? < end {
                self.stub.file.set_len(end)?;
            }
        }
        self.stub.touch()?;
        Ok(written as usize)
    }

    /// Where the byte at `offset` is, and on which disk.
    fn place(&self, offset: u64) -> Option<(Arc<Disk>, Backing)> {
        let state = self.state();
        let Storage::Striped(striped) = &*state else {
            return None;
        };
        let mut first = None;
        striped.map.pieces(offset, 1, |piece| first = Some(piece));
        let piece = first?;
        let block = striped.map.block();
        // What is wrong with the part is said when it is met by a plain call.
        let blob = striped.part(&self.way, piece.disk).ok()?;
        let disk = self.way.volume.disks[piece.disk].clone();
        let placed = Backing {
            blob,
            offset: piece.offset,
            bytes: block - offset % block,
            watch: disk.clone(),
        };
        Some((disk, placed))
    }

    /// Moves a plain file's bytes to the disks.
    fn stripe(&self, state: &mut Storage) -> Result<()> {
        if let Storage::Striped(_) = state {
            return Ok(());
        }
        let length = self.stub.len()?.min(PLAIN_BYTES);
        let stub = self.way.volume.stub(new_id(), self.stub.identity.1);
        let striped = Striped::new(&self.way.volume, self.way.volume.map(&stub)?, stub.file, 0);
        if length > 0 {
            let mut page = AlignedBuffer::new(PAGE)?;
            self.stub.file.read_exact_at(&mut page[..length as usize], 0)?;
            striped.write(&self.way, &[IoSlice::new(&page)], 0)?;
            striped.at_parts(&self.way, length, |disk, part, length| {
                part.set_len(length).map_err(|cause| disk.error(cause))
            })?;
        }
        self.stub.file.write_all_at(&stub.bytes(), 0)?;
        self.stub.file.set_len(length.max(STUB_BYTES as u64))?;
        *state = Storage::Striped(striped);
        Ok(())
    }

    /// Takes the bytes of a file back that becomes a short one.
    fn unstripe(&self, state: &mut Storage, length: u64) -> Result<()> {
        let Storage::Striped(striped) = state else {
            return Ok(());
        };
        let mut page = AlignedBuffer::new(PAGE)?;
        if length > 0 {
            striped.at_parts(&self.way, self.stub.len()?, fill_gap)?;
            striped.read(&self.way, vec![&mut page], 0, length, PAGE as u64)?;
        }
        self.stub.file.set_len(0)?;
        self.stub.file.write_all_at(&page[..length as usize], 0)?;
        for disk in &self.way.volume.disks {
            // One that stays is found by `check`.
            let _ = disk.part(&striped.file).and_then(fs::remove_file);
        }
        *state = Storage::Plain;
        Ok(())
    }

    /// Makes the file `bytes` long, each part by `fit`, which is told its length.
    fn resize(&self, bytes: u64, fit: impl Fn(&Arc<dyn Blob>, u64) -> Result<()> + Sync) -> Result<()> {
        let mut state = self.state_alone();
        if bytes > PLAIN_BYTES {
            self.stripe(&mut state)?;
        } else {
            self.unstripe(&mut state, bytes)?;
        }
        let Storage::Striped(striped) = &*state else {
            return self.stub.file.set_len(bytes);
        };
        let before = self.stub.len()?;
        if bytes < before {
            // What is cut off is never seen again: first by its length, then by its parts.
            self.stub.file.set_len(bytes)?;
            let lengths = striped.map.part_lengths(bytes);
            return striped.at_parts(&self.way, before, |disk, part, length| {
                let new = lengths[number_of(&self.way, disk)];
                if new < length {
                    part.set_len(new).map_err(|cause| disk.error(cause))?;
                }
                Ok(())
            });
        }
        let lengths = striped.map.part_lengths(before);
        striped.at_parts(&self.way, bytes, |disk, part, length| {
            let old = lengths[number_of(&self.way, disk)];
            let fit = || {
                // Nothing that a process which was killed wrote behind the end comes to light.
                if part.len()? > old {
                    part.set_len(old)?;
                }
                fit(part, length)
            };
            fit().map_err(|cause| disk.error(cause))
        })?;
        self.stub.file.set_len(bytes)
    }

    /// Makes a part durable, and refuses one that is not under its name any more.
    fn sync_part(&self, striped: &Striped, disk: &Disk, part: &Arc<dyn Blob>) -> Result<()> {
        part.sync().map_err(|cause| disk.error(cause))?;
        where_it_is(disk, &striped.file, |path| {
            fs::File::open(crate::base::directory::parent_of(path))?.sync_all()?;
            let Some(mine) = part.identity() else {
                return Ok(());
            };
            let there = fs::metadata(path)?;
            let same = mine == (there.dev(), there.ino());
            same.then_some(()).ok_or_else(|| ErrorKind::NotFound.into())
        })
    }
}

/// Gaps that were never written have their bytes, too.
fn fill_gap(disk: &Disk, part: &Arc<dyn Blob>, length: u64) -> Result<()> {
    let fill = || match part.len()? < length {
        true => part.set_len(length),
        false => Ok(()),
    };
    fill().map_err(|cause| disk.error(cause))
}

fn number_of(way: &OpenedBy, disk: &Disk) -> usize {
    let mut disks = way.volume.disks.iter();
    disks.position(|other| other.member == disk.member).unwrap_or(0)
}

fn read_plain(file: &fs::File, buffers: Vec<&mut [u8]>, offset: u64) -> Result<usize> {
    let mut slices: Vec<IoSliceMut> = buffers.into_iter().map(IoSliceMut::new).collect();
    Ok(rustix::io::preadv(file, &mut slices, offset)?)
}

fn write_plain(file: &fs::File, buffers: &[IoSlice<'_>], offset: u64) -> Result<usize> {
    Ok(rustix::io::pwritev(file, buffers, offset)?)
}

impl Blob for VolumeBlob {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.read(vec![buffer], offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.write(&[IoSlice::new(data)], offset)
    }

    fn read_vectored_at(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        self.read(buffers.iter_mut().map(|buffer| &mut buffer[..]).collect(), offset)
    }

    fn write_vectored_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        self.write(buffers, offset)
    }

    fn placed_to_write(&self, offset: u64, bytes: u64) -> Option<Backing> {
        // What makes the file longer, or moves it to the disks, goes by plain calls.
        if self.stub.len().ok()? < offset.checked_add(bytes)? {
            return None;
        }
        let (disk, placed) = self.place(offset)?;
        self.stub.touch().ok()?;
        let stub = self.stub.clone();
        let watch = Arc::new(Written { disk, stub });
        Some(Backing { watch, ..placed })
    }

    fn placed(&self, offset: u64) -> Option<Backing> {
        self.place(offset).map(|(_, placed)| placed)
    }

    fn sync(&self) -> Result<()> {
        let state = self.state();
        if let Storage::Striped(striped) = &*state {
            let bytes = self.stub.len()?;
            striped.at_parts(&self.way, bytes, |disk, part, length| {
                fill_gap(disk, part, length)?;
                self.sync_part(striped, disk, part)
            })?;
        }
        self.stub.file.sync_all()
    }

    fn len(&self) -> Result<u64> {
        self.stub.len()
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::from(&self.stub.file.metadata()?))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.resize(bytes, |part, length| part.set_len(length))
    }

    fn allocate(&self, bytes: u64) -> Result<()> {
        self.resize(bytes.max(self.stub.len()?), |part, length| part.allocate(length))
    }

    fn identity(&self) -> Option<(u64, u64)> {
        Some(self.stub.identity)
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn drop_cache(&self) {
        if let Storage::Striped(striped) = &*self.state() {
            for part in &striped.parts {
                if let Some(blob) = &*locked(&part.open) {
                    blob.drop_cache();
                }
            }
        }
    }
}

impl std::fmt::Debug for VolumeBlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VolumeBlob({})", self.path.display())
    }
}
