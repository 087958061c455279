//! Where bytes go: files past the page cache, files through it, or memory.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{statx, Advice, AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use super::ring::{KeepsOpen, PIECES_MAX};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    /// Read and write; the file must not exist.
    Create,
    /// As `Create`, for writes that are not aligned: through the page cache on every backend.
    CreateUnaligned,
    /// Read and write a file that is there.
    Reopen,
    /// As `Reopen`, for writes that are not aligned.
    ReopenUnaligned,
}

/// Opens files. Blocking; callers that want overlap call from the threads of an `IoPool`.
pub trait Backend: Send + Sync {
    /// Opens a file, within a volume or not.
    ///
    /// # Errors
    /// What the file system reports.
    fn open(&self, path: &Path, mode: Mode) -> Result<Arc<dyn Blob>>;
    /// What reads and writes of its files may have to be multiples of, where paths may lie in volumes.
    fn volume_alignment(&self) -> Option<usize> {
        None
    }
}

/// Where bytes of a file are that is made of others.
pub struct Backing {
    /// The file that has them, from which byte on, and how many there at most.
    pub blob: Arc<dyn Blob>,
    pub offset: u64,
    pub bytes: u64,
    /// Is told what became of a call that transfers them.
    pub watch: Arc<dyn CallWatch>,
}

/// Who counts calls that others make.
pub trait CallWatch: Send + Sync {
    /// A call is over that had begun then; gives its outcome, in which an error may be named.
    ///
    /// # Errors
    /// The outcome, in which the disk may be named.
    fn over(&self, begun: Instant, outcome: Result<usize>) -> Result<usize>;
}

/// One open file. `read_at` and `write_at` may transfer less than asked; `Io` goes on from there.
#[allow(clippy::len_without_is_empty)]
pub trait Blob: KeepsOpen {
    /// Reads to the front of `buffer`, from `offset` on; less than asked at the end, or any time.
    ///
    /// # Errors
    /// What the file system reports.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes at `offset`; it may be less than asked.
    ///
    /// # Errors
    /// What the file system reports.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize>;
    /// As `read_at`, into one buffer after the other.
    ///
    /// # Errors
    /// What the file system reports.
    fn read_vectored_at(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        let mut done = 0;
        for buffer in buffers {
            let read = self.read_at(buffer, offset + done as u64)?;
            done += read;
            if read < buffer.len() {
                break;
            }
        }
        Ok(done)
    }
    /// As `write_at`, from one buffer after the other.
    ///
    /// # Errors
    /// What the file system reports.
    fn write_vectored_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        let mut done = 0;
        for buffer in buffers {
            let written = self.write_at(buffer, offset + done as u64)?;
            done += written;
            if written < buffer.len() {
                break;
            }
        }
        Ok(done)
    }
    /// The file as the kernel knows it, for requests that are handed to the kernel in batches.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Which file has the bytes at `offset`, where that is another one that the kernel knows.
    fn placed(&self, _offset: u64) -> Option<Backing> {
        None
    }
    /// As `placed`, for a write of so many bytes, where they all lie within the file.
    fn placed_to_write(&self, _offset: u64, _bytes: u64) -> Option<Backing> {
        None
    }
    /// Makes the file's bytes durable.
    ///
    /// # Errors
    /// What the file system reports.
    fn sync(&self) -> Result<()>;
    /// Bytes in the file.
    ///
    /// # Errors
    /// What the file system reports.
    fn len(&self) -> Result<u64>;
    /// What the open file is now.
    ///
    /// # Errors
    /// What the file system reports.
    fn stamp(&self) -> Result<Stamp>;
    /// Makes the file `bytes` long.
    ///
    /// # Errors
    /// What the file system reports.
    fn set_len(&self, bytes: u64) -> Result<()>;
    /// Makes the file `bytes` long with its space set aside, where the file system can.
    ///
    /// # Errors
    /// A full disk, or what the file system reports.
    fn allocate(&self, bytes: u64) -> Result<()> {
        self.set_len(bytes)
    }
    /// Device and inode, where the file has a name that may come to lead to another.
    fn identity(&self) -> Option<(u64, u64)> {
        None
    }
    /// What offsets, lengths and addresses must be multiples of.
    fn alignment(&self) -> usize;
    /// Lets the system forget what it cached of this file.
    fn drop_cache(&self) {}
}

/// O_DIRECT; a file whose file system refuses it (tmpfs) goes through the page cache.
pub struct Direct;

/// Through the page cache, which is emptied of the file again when it is closed.
pub struct Buffered;

struct SystemFile {
    file: fs::File,
    identity: (u64, u64),
    alignment: usize,
}

/// What direct transfers of a file must be multiples of: sectors, where the system tells of them (Linux 6.1), else pages.
fn direct_alignment(file: &fs::File) -> usize {
    let told = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let told = told.filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let least = told.map_or(0, |told| told.stx_dio_mem_align.max(told.stx_dio_offset_align) as usize);
    let is_right = least.is_power_of_two() && (SECTOR..=PAGE).contains(&least);
    if is_right {
        least
    } else {
        PAGE
    }
}

/// The least that a disk transfers.
const SECTOR: usize = 512;

impl SystemFile {
    fn open(path: &Path, mode: Mode, direct: bool) -> Result<SystemFile> {
        let create = matches!(mode, Mode::Create | Mode::CreateUnaligned);
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = OpenOptions::new()
            .read(true)
            .write(mode != Mode::Read)
            .create_new(create)
            // A FIFO without a writer would be waited for.
            .custom_flags((flags | OFlags::NONBLOCK).bits() as i32)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Error::other("it is no regular file"));
        }
        let identity = (metadata.dev(), metadata.ino());
        let alignment = if direct { direct_alignment(&file) } else { 1 };
        Ok(SystemFile {
            file,
            identity,
            alignment,
        })
    }
}

impl Backend for Direct {
    fn open(&self, path: &Path, mode: Mode) -> Result<Arc<dyn Blob>> {
        if matches!(mode, Mode::CreateUnaligned | Mode::ReopenUnaligned) {
            return Buffered.open(path, mode);
        }
        match SystemFile::open(path, mode, true) {
            Ok(file) => Ok(Arc::new(file)),
            Err(cause) if cause.kind() == ErrorKind::InvalidInput => {
                if mode == Mode::Create {
                    // Linux creates the file before it finds that O_DIRECT is refused.
                    let _ = fs::remove_file(path);
                }
                Buffered.open(path, mode)
            }
            Err(cause) => Err(cause),
        }
    }

    fn volume_alignment(&self) -> Option<usize> {
        Some(PAGE)
    }
}

impl Backend for Buffered {
    fn open(&self, path: &Path, mode: Mode) -> Result<Arc<dyn Blob>> {
        Ok(Arc::new(SystemFile::open(path, mode, false)?))
    }

    fn volume_alignment(&self) -> Option<usize> {
        Some(1)
    }
}

impl Blob for SystemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.file.write_at(data, offset)
    }

    fn read_vectored_at(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        // The kernel refuses longer vectors; who asked goes on.
        let first = buffers.len().min(PIECES_MAX);
        Ok(rustix::io::preadv(&self.file, &mut buffers[..first], offset)?)
    }

    fn write_vectored_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        let first = buffers.len().min(PIECES_MAX);
        Ok(rustix::io::pwritev(&self.file, &buffers[..first], offset)?)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::from(&self.file.metadata()?))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes.max(1)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.set_len(bytes),
            Err(cause) => Err(cause.into()),
        }
    }

    fn identity(&self) -> Option<(u64, u64)> {
        Some(self.identity)
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn drop_cache(&self) {
        if self.alignment == 1 {
            let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
        }
    }
}

impl Drop for SystemFile {
    fn drop(&mut self) {
        self.drop_cache();
    }
}

/// Named byte vectors.
#[derive(Default)]
pub struct Memory {
    files: Mutex<HashMap<PathBuf, Arc<MemoryFile>>>,
}

#[derive(Default)]
struct MemoryFile(Mutex<Vec<u8>>);

impl MemoryFile {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Backend for Memory {
    fn open(&self, path: &Path, mode: Mode) -> Result<Arc<dyn Blob>> {
        let mut files = self.files.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match (files.get(path), mode) {
            (Some(file), Mode::Read | Mode::Reopen | Mode::ReopenUnaligned) => Ok(file.clone()),
            (None, Mode::Read | Mode::Reopen | Mode::ReopenUnaligned) => Err(ErrorKind::NotFound.into()),
            (Some(_), _) => Err(ErrorKind::AlreadyExists.into()),
            (None, _) => Ok(files.entry(path.to_path_buf()).or_default().clone()),
        }
    }
}

impl Blob for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = self.bytes();
        let start = bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        let start = usize::try_from(offset).map_err(Error::other)?;
        let mut bytes = self.bytes();
        let end = start + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(data);
        Ok(data.len())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::of_bytes(self.bytes().len() as u64))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.bytes().resize(usize::try_from(bytes).map_err(Error::other)?, 0);
        Ok(())
    }

    fn alignment(&self) -> usize {
        1
    }
}

/// The number by which the kernel knows a file, if it does.
pub fn descriptor(blob: &Arc<dyn Blob>) -> Option<RawFd> {
    blob.descriptor().map(|descriptor| descriptor.as_raw_fd())
}
