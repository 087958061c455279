//! Resources of live work: memory, threads, counters, the cache of the file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outcore_store::cache::CachedFile;
use outcore_store::{AlignedBuffer, Io, StoreError, PAGE};

use super::activity::Activity;
use crate::EngineError;

pub use crate::cancel::Watch;

/// As `Resources` have it where nothing is said: a gibibyte of lists and weights is looked up at a time, in a few mebibytes.
pub const PORTION_PAGES: u64 = 1 << 18;

/// Memory, threads, counters and cache of live work.
#[derive(Clone, Copy)]
pub struct Resources<'a> {
    /// Bytes that are held for what is known of vertices and lists.
    pub known: u64,
    /// Bytes that are held for what is read and what is sent.
    pub memory: u64,
    /// Pages of lists and weights of which it is known at once which are to be read: that is beside `memory`.
    pub portion_pages: u64,
    pub threads: usize,
    /// Threads that the session has for reading: a sweep has twice as many.
    pub io_threads: usize,
    pub io: &'a Io,
    pub frames: &'a Frames,
    /// What is read by way of, if there is memory for it: whoever asks for lists asks for others of their pages soon. How much
    /// is read from the file then is what the cache does not hold, page by page, whether few lists are wanted or all.
    pub cache: Option<&'a CachedFile>,
    /// What is told of iterations.
    pub activity: &'a Activity,
    /// The limit that all of that is a part of: a refusal adds to it.
    pub memory_limit: u64,
    /// Reserves so many bytes more for the rest of the run, or tells that there are none.
    pub grow: &'a (dyn Fn(u64) -> Result<(), EngineError> + Sync),
    /// A path in scratch that is not used.
    pub scratch: &'a (dyn Fn() -> Result<PathBuf, EngineError> + Sync),
}

impl Resources<'_> {
    /// An iteration begins with so many active vertices.
    pub(crate) fn iteration(&self, active: u64) {
        self.activity.begin(active, self.cache);
    }
}

/// No memory can be had for the work on a file.
pub(crate) fn no_memory(path: &Path) -> impl FnOnce(std::io::Error) -> EngineError + '_ {
    move |cause| {
        EngineError::Store(StoreError::Io {
            path: path.to_path_buf(),
            offset: 0,
            action: "map memory",
            cause: cause.into(),
        })
    }
}

/// Memory that was read into and waits for the next batch: fresh pages cost more than reading does.
#[derive(Default)]
pub struct Frames(Mutex<SpareFrames>);

#[derive(Default)]
struct SpareFrames {
    frames: Vec<AlignedBuffer>,
    /// Memory for further ones, in large pages: a disk that is given a request in many pieces takes it in parts.
    uncut: Option<AlignedBuffer>,
}

impl Frames {
    /// Memory for so many bytes of a file.
    pub(crate) fn take(&self, path: &Path, bytes: u64) -> Result<AlignedBuffer, EngineError> {
        let mut spare = self.lock();
        let fits = spare.frames.iter().position(|frame| frame.len() as u64 >= bytes);
        if let Some(place) = fits {
            return Ok(spare.frames.swap_remove(place));
        }
        // Usual batches are alike, so that each frame serves any of them.
        if !(FRAME_BYTES / 4..=FRAME_BYTES).contains(&bytes) {
            drop(spare);
            return AlignedBuffer::new(bytes.max(FRAME_BYTES) as usize).map_err(no_memory(path));
        }
        let uncut = match spare.uncut.take().filter(|uncut| !uncut.is_empty()) {
            Some(uncut) => uncut,
            None => AlignedBuffer::new(FRAMES * FRAME_BYTES as usize).map_err(no_memory(path))?,
        };
        let (frame, rest) = uncut.split_at(FRAME_BYTES as usize);
        spare.uncut = Some(rest);
        Ok(frame)
    }

    /// Keeps the frame; the memory of a large one is given back.
    pub(crate) fn give(&self, frame: AlignedBuffer) {
        if frame.len() as u64 <= FRAME_BYTES {
            self.lock().frames.push(frame);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SpareFrames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists that are read and worked on together: some hundred of them keep every thread busy.
pub(crate) const BATCH_PAGES: u64 = 256;
/// Bytes of a frame: a batch ends with the list that fills it.
const FRAME_BYTES: u64 = (BATCH_PAGES + BATCH_PAGES / 16) * PAGE as u64;
/// Frames that are cut from memory that is mapped together.
const FRAMES: usize = 16;

/// Works on every part, in several threads where there is much to do.
pub(crate) fn each_part<T: Send>(parts: impl Iterator<Item = T> + Send, threads: usize, work: impl Fn(T) + Sync) {
    if threads < 2 {
        return parts.for_each(work);
    }
    let parts = Mutex::new(parts);
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    in_threads(threads, &|| {
        while let Some(part) = next() {
            work(part);
        }
    });
}

fn in_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}
