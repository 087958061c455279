//! The fence around io_uring: buffers go in by value, and come back when the kernel has done with them.

use std::cell::RefCell;
use std::io::{Error, Result};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use io_uring::{cqueue, opcode, types, IoUring};
use rustix::event::{eventfd, EventfdFlags};

/// Requests under way in one ring at most.
pub(crate) const DEPTH: usize = 256;

/// How many requests the kernel is told of at once: few after it was waited for, when it may have nothing to do, then twice
/// as many every time. A disk that gets all at once stands still while they are put together.
const BATCH_FIRST: usize = 2;
const BATCH_MAX: usize = 16;

/// Buffers of one call at most, by the kernel's `UIO_MAXIOV`.
pub(crate) const PIECES_MAX: usize = 1024;

/// Bytes whose address does not change while the value lives, also when the value itself moves.
///
/// # Safety
/// `deref` gives the same address and length at every call, and what is there is not changed by others while the value
/// lives and is not used.
pub unsafe trait Stable: Deref<Target = [u8]> + 'static {}

/// `Stable` bytes that may be written.
///
/// # Safety
/// As for `Stable`; and nobody else reads what is there while the value lives and is not used.
pub unsafe trait StableMut: Stable + DerefMut {}

/// A file that stays open while this lives.
pub trait KeepsOpen: Send + Sync {}

impl<File: Send + Sync> KeepsOpen for File {}

/// What is under way. It owns all that the kernel was told of.
struct RingTransfer<B> {
    buffers: Vec<B>,
    pieces: Vec<libc::iovec>,
    /// Keeps the file open until the kernel has taken the request.
    _file: Arc<dyn KeepsOpen>,
}

/// Wakes a thread that waits at its ring.
pub(crate) struct Bell(Option<OwnedFd>);

impl Default for Bell {
    /// One that nobody hears, where the system gives none.
    fn default() -> Bell {
        Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok())
    }
}

impl Bell {
    pub(crate) fn strike(&self) {
        if let Some(bell) = &self.0 {
            // One that was struck as often as it can be rings anyway.
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }
}

#[derive(PartialEq)]
enum Watched {
    No,
    Yes,
    Refused,
}

/// The number that the bell has among requests.
const BELL: u64 = u64::MAX;

/// One thread's ring, for buffers of one kind.
///
/// Invariant: a request that the kernel may still serve has its `RingTransfer` in `transfers`; those leave it with the
/// request's completion only, and a ring with requests under way is waited for, or leaked with all its transfers.
pub(crate) struct Ring<B: Stable> {
    ring: ManuallyDrop<IoUring>,
    transfers: ManuallyDrop<Vec<Option<RingTransfer<B>>>>,
    free: Vec<usize>,
    flying: usize,
    /// Requests that the kernel was not told of, and of how many it is told next.
    untold: usize,
    batch: usize,
    /// The kernel watches the bell, or will not.
    bell: Watched,
    process: u32,
    /// Rings are made for one thread that submits.
    _thread: PhantomData<*const ()>,
}

/// Once the kernel or a sandbox has refused rings, nobody asks again.
static REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The ring that this thread has used before, which takes longer to make than many reads, and its process: what a forked
    /// child finds here is its parent's, in memory that both have.
    static IDLE: RefCell<Option<(u32, IoUring)>> = const { RefCell::new(None) };
}

fn make() -> Option<IoUring> {
    if REFUSED.load(Relaxed) {
        return None;
    }
    let quiet = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(DEPTH as u32);
    // Kernels before 6.1 know no such flags.
    match quiet.or_else(|_| IoUring::new(DEPTH as u32)) {
        Ok(ring) => Some(ring),
        Err(cause) => {
            // Too little lockable memory may pass; a kernel without rings, or a sandbox, stays as it is.
            if matches!(cause.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES)) {
                REFUSED.store(true, Relaxed);
            }
            None
        }
    }
}

/// A request's number, its buffers, and how many bytes were transferred.
pub(crate) type Completed<B> = (usize, Vec<B>, Result<usize>);

impl<B: Stable> Ring<B> {
    /// This thread's ring, or `None` where there is none to be had.
    pub(crate) fn take() -> Option<Ring<B>> {
        let idle = IDLE.with(|idle| idle.borrow_mut().take());
        let process = std::process::id();
        let own = idle.filter(|(made_by, _)| *made_by == process);
        let ring = own.map(|(_, ring)| ring).or_else(make)?;
        Some(Ring {
            ring: ManuallyDrop::new(ring),
            transfers: ManuallyDrop::new(Vec::new()),
            free: Vec::new(),
            flying: 0,
            untold: 0,
            batch: 1,
            bell: Watched::No,
            process,
            _thread: PhantomData,
        })
    }

    pub(crate) fn flying(&self) -> usize {
        self.flying
    }

    /// Takes a read into `bytes` bytes of the buffers, one after the other, from byte `skip` of the first on. Returns its
    /// number. There must be fewer than `DEPTH` under way.
    pub(crate) fn read(
        &mut self,
        file: (RawFd, Arc<dyn KeepsOpen>),
        mut buffers: Vec<B>,
        skip: usize,
        bytes: usize,
        offset: u64,
    ) -> usize
    where
        B: StableMut,
    {
        let all = buffers.iter_mut().map(|buffer| (buffer.as_mut_ptr(), buffer.len()));
        let pieces = pieces_of(all, skip, bytes);
        self.start(false, file, buffers, pieces, offset)
    }

    /// Takes a write of bytes from the buffers, as `read` does.
    pub(crate) fn write(
        &mut self,
        file: (RawFd, Arc<dyn KeepsOpen>),
        buffers: Vec<B>,
        skip: usize,
        bytes: usize,
        offset: u64,
    ) -> usize {
        // The kernel only reads what a write names.
        let all = buffers.iter().map(|buffer| (buffer.as_ptr().cast_mut(), buffer.len()));
        let pieces = pieces_of(all, skip, bytes);
        self.start(true, file, buffers, pieces, offset)
    }

    fn start(
        &mut self,
        write: bool,
        (descriptor, keeper): (RawFd, Arc<dyn KeepsOpen>),
        buffers: Vec<B>,
        pieces: Vec<libc::iovec>,
        offset: u64,
    ) -> usize {
        assert!(self.flying < DEPTH, "more requests than a ring takes");
        let number = self.free.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            self.transfers.len() - 1
        });
        let entry = entry(write, types::Fd(descriptor), &pieces, offset).user_data(number as u64);
        self.transfers[number] = Some(RingTransfer {
            buffers,
            pieces,
            _file: keeper,
        });
        // SAFETY: the pieces and what they point to stay where they are until the completion: `transfers` owns both
        // (moving a `Vec` moves no element, and `Stable` buffers do not move); reads have `StableMut` buffers, by the
        // bound on `read`. The file is open until then too.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "a ring has DEPTH entries");
        self.flying += 1;
        self.untold += 1;
        if self.untold >= self.batch {
            self.submit();
            self.batch = (2 * self.batch).min(BATCH_MAX);
        }
        number
    }

    /// Tells the kernel what was taken since it was told last. It is told of some without this.
    pub(crate) fn submit(&mut self) {
        // What it cannot take now is told with the next call.
        if let Ok(told) = self.ring.submit() {
            self.untold -= told.min(self.untold);
        }
    }

    /// A request that is complete: those that are known to be without a call to the kernel first, then, with `wait`, the
    /// next one that will be. `None` with `wait` when none is under way.
    pub(crate) fn next(&mut self, wait: bool) -> Option<Completed<B>> {
        loop {
            let completion = self.ring.completion().next();
            if let Some(completion) = completion {
                if completion.user_data() == BELL {
                    self.bell = match completion.result() {
                        ..0 => Watched::Refused,
                        _ if cqueue::more(completion.flags()) => Watched::Yes,
                        _ => Watched::No,
                    };
                    continue;
                }
                let number = completion.user_data() as usize;
                let transfer = self.transfers[number].take().expect("a request completes once");
                self.free.push(number);
                self.flying -= 1;
                let outcome = completion.result();
                let outcome = usize::try_from(outcome).map_err(|_| Error::from_raw_os_error(-outcome));
                drop(transfer.pieces);
                return Some((number, transfer.buffers, outcome));
            }
            if self.flying == 0 || !wait {
                return None;
            }
            self.enter();
        }
    }

    /// Tells the kernel what was taken, and waits until something is complete.
    fn enter(&mut self) {
        match self.ring.submit_and_wait(1) {
            Ok(told) => {
                self.untold -= told.min(self.untold);
                self.batch = BATCH_FIRST;
            }
            Err(cause) => match cause.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => std::thread::yield_now(),
                _ => panic!("a ring that was made works: {cause}"),
            },
        }
    }

    /// Tells the kernel what was taken, and waits until a request is complete or the bell was struck. A thread has one
    /// bell.
    pub(crate) fn wait(&mut self, bell: &Bell) {
        if let (Watched::No, Some(file)) = (&self.bell, &bell.0) {
            let file = types::Fd(file.as_raw_fd());
            let entry = opcode::PollAdd::new(file, libc::POLLIN as u32).multi(true).build();
            // SAFETY: it names no memory, and the kernel keeps the file from the call on that tells it, which is this.
            if unsafe { self.ring.submission().push(&entry.user_data(BELL)) }.is_ok() {
                self.bell = Watched::Yes;
            }
        }
        if self.ring.completion().is_empty() {
            self.enter();
        }
    }
}

impl<B: Stable> Drop for Ring<B> {
    fn drop(&mut self) {
        // If waiting panics, ring and transfers are leaked: `ManuallyDrop` drops neither.
        while self.next(true).is_some() {}
        // SAFETY: neither is used after this, the end of the only `drop`; nothing is under way.
        let ring = unsafe {
            ManuallyDrop::drop(&mut self.transfers);
            ManuallyDrop::take(&mut self.ring)
        };
        // A thread that ends has no place to keep it.
        let _ = IDLE.try_with(|idle| *idle.borrow_mut() = Some((self.process, ring)));
    }
}

/// The parts of buffers that hold `bytes` bytes from byte `skip` on, those that adjoin as one; as many as one call takes.
fn pieces_of(buffers: impl Iterator<Item = (*mut u8, usize)>, skip: usize, bytes: usize) -> Vec<libc::iovec> {
    let (mut skip, mut bytes) = (skip, bytes);
    let mut pieces = Vec::with_capacity(buffers.size_hint().0.min(PIECES_MAX));
    for (start, length) in buffers {
        let passed = skip.min(length);
        let taken = bytes.min(length - passed);
        let begin: *mut libc::c_void = start.wrapping_add(passed).cast();
        let behind = |last: &&mut libc::iovec| last.iov_base.wrapping_byte_add(last.iov_len) == begin;
        if let Some(last) = pieces.last_mut().filter(behind) {
            last.iov_len += taken;
        } else if taken > 0 {
            if pieces.len() == PIECES_MAX {
                // What is behind is for the next call, also where it adjoins the last piece.
                break;
            }
            pieces.push(libc::iovec {
                iov_base: begin,
                iov_len: taken,
            });
        }
        (skip, bytes) = (skip - passed, bytes - taken);
    }
    pieces
}

fn entry(write: bool, file: types::Fd, pieces: &[libc::iovec], offset: u64) -> io_uring::squeue::Entry {
    let count = pieces.len() as u32;
    match pieces {
        // One buffer needs no vector for the kernel to copy. A call transfers less than 2 GiB anyway.
        [piece] => {
            let (start, length) = (piece.iov_base.cast::<u8>(), piece.iov_len.min(1 << 30) as u32);
            if write {
                opcode::Write::new(file, start, length).offset(offset).build()
            } else {
                opcode::Read::new(file, start, length).offset(offset).build()
            }
        }
        _ if write => opcode::Writev::new(file, pieces.as_ptr(), count).offset(offset).build(),
        _ => opcode::Readv::new(file, pieces.as_ptr(), count).offset(offset).build(),
    }
}
