//! Many reads or writes at once from one thread: a ring where there is one, plain calls where there is none.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use super::faults::Injected;
use super::{Backing, Blob, CallWatch, File, Io};
use crate::backend::{descriptor, Completed, Ring, Stable, StableMut, DEPTH};
use crate::StoreError;

/// Requests of one thread that are under way together. Each gets its buffers back with its outcome.
///
/// Invariants, those of `Io`: a request that succeeds adds exactly the bytes it was asked to transfer to the counters,
/// one that fails adds none; each call of it can be made to fail, and one that transfers less is gone on with.
/// A request whose `Done` is never asked for is waited for when the queue is dropped, and is not counted.
pub struct Queue<B: Stable> {
    io: Io,
    ring: Option<Ring<B>>,
    /// By the ring's numbers.
    jobs: Vec<Option<IoRequest>>,
    ready: VecDeque<Done<B>>,
}

/// A request that is complete.
pub struct Done<B> {
    /// What the caller calls it.
    pub token: u64,
    /// Its buffers, in their order.
    pub buffers: Vec<B>,
    /// Whether all its bytes were transferred.
    pub outcome: Result<(), StoreError>,
}

struct IoRequest {
    file: File,
    token: u64,
    write: bool,
    offset: u64,
    /// Bytes to transfer, bytes of the buffers, and bytes transferred.
    expected: usize,
    room: usize,
    done: usize,
    calls: u64,
    /// What this call was told to do.
    shortened: bool,
    torn: Option<Error>,
    /// Past the ring, which would not do it without blocking.
    plain: bool,
    /// Who counts the call that is under way, and when it began.
    watch: Option<(Arc<dyn CallWatch>, Instant)>,
}

impl IoRequest {
    fn error(&self, done: usize, cause: impl Into<Error>) -> StoreError {
        let action = if self.write { "write" } else { "read" };
        StoreError::io(&self.file.path, self.offset + done as u64, action, cause)
    }
}

impl<B: StableMut> Queue<B> {
    /// An empty queue for this thread.
    pub fn new(io: &Io) -> Queue<B> {
        Queue::with(io, Ring::take())
    }

    /// As `new`, by plain calls.
    pub fn plain(io: &Io) -> Queue<B> {
        Queue::with(io, None)
    }

    /// Takes a read of `expected` bytes at `offset` into the buffers, one after the other. For direct I/O the rules of
    /// `Io::read` hold for each buffer.
    pub fn read(&mut self, file: &File, buffers: Vec<B>, offset: u64, expected: usize, token: u64) {
        let room = buffers.iter().map(|buffer| buffer.len()).sum();
        let job = IoRequest::new(file, false, offset, expected.min(room), room, token);
        self.reading(job, buffers);
    }

    /// Requests that are complete without waiting, then, with `wait`, the next one to be. `None` with `wait` when there
    /// are none under way.
    pub fn next_read(&mut self, wait: bool) -> Option<Done<B>> {
        loop {
            if let Some(done) = self.ready.pop_front() {
                return Some(done);
            }
            let completed = self.ring.as_mut()?.next(wait)?;
            let (job, buffers, outcome) = self.matched(completed);
            self.read_until(job, buffers, outcome);
        }
    }

    /// Starts a call of a read, until one is under way or the read is complete.
    fn reading(&mut self, mut job: IoRequest, mut buffers: Vec<B>) {
        loop {
            if job.done >= job.expected {
                return self.finish(job, buffers, Ok(()));
            }
            job.calls += 1;
            job.shortened = match self.io.shared.faults.before_read() {
                Injected::Fail(cause) => {
                    let error = job.error(job.done, cause);
                    return self.finish(job, buffers, Err(error));
                }
                Injected::Short | Injected::Torn(_) => true,
                Injected::Nothing => false,
            };
            let offset = job.offset + job.done as u64;
            if let Some(file) = self.ringed(&job) {
                self.make_room_for_read();
                let ring = self.ring.as_mut().expect("looked at above");
                let number = ring.read((file.0, file.1), buffers, job.done, job.room - job.done, offset);
                return self.put(number, job);
            }
            if let Some((file, placed)) = self.placed(&job, offset) {
                self.make_room_for_read();
                // The rest is gone on with when this has come, as that of a call that transferred less.
                let bytes = (job.room - job.done).min(usize::try_from(placed.bytes).unwrap_or(usize::MAX));
                job.watch = Some((placed.watch, Instant::now()));
                let ring = self.ring.as_mut().expect("looked at above");
                let number = ring.read((file.0, file.1), buffers, job.done, bytes, placed.offset);
                return self.put(number, job);
            }
            let mut slices: Vec<IoSliceMut> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
            let mut rest = &mut slices[..];
            IoSliceMut::advance_slices(&mut rest, job.done);
            let outcome = job.file.blob.read_vectored_at(rest, offset);
            match job.after_read(outcome) {
                CallStep::Over(outcome) => return self.finish(job, buffers, outcome),
                CallStep::Again => {}
            }
        }
    }

    fn read_until(&mut self, mut job: IoRequest, buffers: Vec<B>, outcome: std::io::Result<usize>) {
        let outcome = job.watched(outcome);
        match job.after_read(outcome) {
            CallStep::Over(outcome) => self.finish(job, buffers, outcome),
            CallStep::Again => self.reading(job, buffers),
        }
    }

    fn make_room_for_read(&mut self) {
        while self.ring.as_ref().is_some_and(|ring| ring.flying() >= DEPTH) {
            let completed = self.ring.as_mut().and_then(|ring| ring.next(true));
            if let Some(completed) = completed {
                let (job, buffers, outcome) = self.matched(completed);
                self.read_until(job, buffers, outcome);
            }
        }
    }
}

/// A file as a ring wants it: it stays open for as long as it is read.
type Ringed = (RawFd, Arc<dyn Blob>);

/// What follows a call.
enum CallStep {
    Over(Result<(), StoreError>),
    Again,
}

impl IoRequest {
    fn new(file: &File, write: bool, offset: u64, expected: usize, room: usize, token: u64) -> IoRequest {
        IoRequest {
            file: file.clone(),
            token,
            write,
            offset,
            expected,
            room,
            done: 0,
            calls: 0,
            shortened: false,
            torn: None,
            plain: false,
            watch: None,
        }
    }

    /// The outcome as who counts the call says it.
    fn watched(&mut self, outcome: std::io::Result<usize>) -> std::io::Result<usize> {
        match self.watch.take() {
            Some((watch, begun)) => watch.over(begun, outcome),
            None => outcome,
        }
    }

    fn after_read(&mut self, outcome: std::io::Result<usize>) -> CallStep {
        let read = match outcome {
            Ok(read) if self.shortened => read / 2,
            Ok(read) => read,
            Err(cause) if self.is_passing(&cause) => return CallStep::Again,
            Err(cause) => return CallStep::Over(Err(self.error(self.done, cause))),
        };
        if self.done + read >= self.expected {
            return CallStep::Over(Ok(()));
        }
        // A direct read resumes on a page; one that ends inside a page has met the end of the file.
        let whole = read - read % self.file.blob.alignment();
        if whole == 0 && !self.shortened {
            let missing = self.expected - self.done - read;
            let reason = format!("the file ends {missing} bytes early");
            let cause = Error::new(ErrorKind::UnexpectedEof, reason);
            return CallStep::Over(Err(self.error(self.done + read, cause)));
        }
        self.done += whole;
        CallStep::Again
    }

    /// Whether a call that failed so is made again: a signal came, or a ring would have had to block.
    fn is_passing(&mut self, cause: &Error) -> bool {
        let blocks = cause.kind() == ErrorKind::WouldBlock && !std::mem::replace(&mut self.plain, true);
        blocks || cause.kind() == ErrorKind::Interrupted
    }

    fn after_write(&mut self, outcome: std::io::Result<usize>) -> CallStep {
        if let Some(cause) = self.torn.take() {
            return CallStep::Over(Err(self.error(self.done, cause)));
        }
        match outcome {
            Ok(written) if self.done + written >= self.expected => CallStep::Over(Ok(())),
            Ok(written) => match written - written % self.file.blob.alignment() {
                0 => CallStep::Over(Err(self.error(self.done + written, ErrorKind::WriteZero))),
                whole => {
                    self.done += whole;
                    CallStep::Again
                }
            },
            Err(cause) if self.is_passing(&cause) => CallStep::Again,
            Err(cause) => CallStep::Over(Err(self.error(self.done, cause))),
        }
    }
}

impl<B: Stable> Queue<B> {
    fn with(io: &Io, ring: Option<Ring<B>>) -> Queue<B> {
        Queue {
            io: io.clone(),
            ring,
            jobs: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// An empty queue for this thread, for writes alone.
    pub fn for_writes(io: &Io) -> Queue<B> {
        Queue::with(io, Ring::take())
    }

    /// Whether requests go through a ring, where their file does.
    pub fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Requests whose outcome has not been asked for.
    pub fn under_way(&self) -> usize {
        self.ready.len() + self.ring.as_ref().map_or(0, Ring::flying)
    }

    /// Starts what was taken, without waiting.
    pub fn submit(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.submit();
        }
    }

    /// Takes a write of the first `bytes` bytes of the buffers, one after the other, to `offset`.
    pub fn write(&mut self, file: &File, buffers: Vec<B>, offset: u64, bytes: usize, token: u64) {
        self.writing(IoRequest::new(file, true, offset, bytes, bytes, token), buffers);
    }

    /// As `next_read`, of a queue of writes.
    pub fn next_write(&mut self, wait: bool) -> Option<Done<B>> {
        loop {
            if let Some(done) = self.ready.pop_front() {
                return Some(done);
            }
            let completed = self.ring.as_mut()?.next(wait)?;
            let (job, buffers, outcome) = self.matched(completed);
            self.written(job, buffers, outcome);
        }
    }

    fn written(&mut self, mut job: IoRequest, buffers: Vec<B>, outcome: std::io::Result<usize>) {
        let outcome = job.watched(outcome);
        match job.after_write(outcome) {
            CallStep::Over(outcome) => self.finish(job, buffers, outcome),
            CallStep::Again => self.writing(job, buffers),
        }
    }

    /// Starts a call of a write, until one is under way or the write is complete.
    fn writing(&mut self, mut job: IoRequest, buffers: Vec<B>) {
        while job.done < job.expected {
            job.calls += 1;
            let rest = job.expected - job.done;
            let half = rest / 2 / job.file.blob.alignment() * job.file.blob.alignment();
            let mut bytes = rest;
            match self.io.shared.faults.before_write() {
                Injected::Fail(cause) => {
                    let error = job.error(job.done, cause);
                    return self.finish(job, buffers, Err(error));
                }
                Injected::Torn(cause) if half == 0 => {
                    let error = job.error(job.done, cause);
                    return self.finish(job, buffers, Err(error));
                }
                Injected::Torn(cause) => (bytes, job.torn) = (half, Some(cause)),
                Injected::Short if half > 0 => bytes = half,
                Injected::Short | Injected::Nothing => {}
            }
            let offset = job.offset + job.done as u64;
            if let Some(file) = self.ringed(&job) {
                self.make_room_for_write();
                let ring = self.ring.as_mut().expect("looked at above");
                let number = ring.write((file.0, file.1), buffers, job.done, bytes, offset);
                return self.put(number, job);
            }
            if let Some((file, placed)) = self.placed(&job, offset) {
                self.make_room_for_write();
                let bytes = bytes.min(usize::try_from(placed.bytes).unwrap_or(usize::MAX));
                job.watch = Some((placed.watch, Instant::now()));
                let ring = self.ring.as_mut().expect("looked at above");
                let number = ring.write((file.0, file.1), buffers, job.done, bytes, placed.offset);
                return self.put(number, job);
            }
            let outcome = job.file.blob.write_vectored_at(&cut(&buffers, job.done, bytes), offset);
            if let CallStep::Over(outcome) = job.after_write(outcome) {
                return self.finish(job, buffers, outcome);
            }
        }
        self.finish(job, buffers, Ok(()));
    }

    fn make_room_for_write(&mut self) {
        while self.ring.as_ref().is_some_and(|ring| ring.flying() >= DEPTH) {
            let completed = self.ring.as_mut().and_then(|ring| ring.next(true));
            if let Some(completed) = completed {
                let (job, buffers, outcome) = self.matched(completed);
                self.written(job, buffers, outcome);
            }
        }
    }

    /// The file as a ring wants it, where there are both.
    fn ringed(&self, job: &IoRequest) -> Option<Ringed> {
        self.ring.as_ref().filter(|_| !job.plain)?;
        Some((descriptor(&job.file.blob)?, job.file.blob.clone()))
    }

    /// As `ringed`, of the file that has the bytes at `offset` where that is another one.
    fn placed(&self, job: &IoRequest, offset: u64) -> Option<(Ringed, Backing)> {
        self.ring.as_ref().filter(|_| !job.plain)?;
        let rest = (job.expected - job.done) as u64;
        let placed = match job.write {
            true => job.file.blob.placed_to_write(offset, rest)?,
            false => job.file.blob.placed(offset)?,
        };
        Some(((descriptor(&placed.blob)?, placed.blob.clone()), placed))
    }

    fn put(&mut self, number: usize, job: IoRequest) {
        if self.jobs.len() <= number {
            self.jobs.resize_with(number + 1, || None);
        }
        self.jobs[number] = Some(job);
    }

    fn matched(&mut self, (number, buffers, outcome): Completed<B>) -> (IoRequest, Vec<B>, std::io::Result<usize>) {
        let job = self.jobs[number].take().expect("the ring's requests are this queue's");
        (job, buffers, outcome)
    }

    fn finish(&mut self, job: IoRequest, buffers: Vec<B>, outcome: Result<(), StoreError>) {
        let (scope, bytes) = (&self.io.scope, job.expected as u64);
        match (job.write, &outcome) {
            (true, Ok(())) => {
                scope.add_write_calls(job.calls);
                scope.add_written(bytes);
            }
            // Writes that fail count as calls, as those of `Io::write` do.
            (true, Err(_)) => scope.add_write_calls(job.calls),
            (false, Ok(())) => scope.add_read(job.calls, bytes),
            (false, Err(_)) => {}
        }
        self.ready.push_back(Done {
            token: job.token,
            buffers,
            outcome,
        });
    }
}

/// `bytes` bytes of the buffers from byte `skip` on.
fn cut<B: Stable>(buffers: &[B], skip: usize, bytes: usize) -> Vec<IoSlice<'_>> {
    let (mut skip, mut bytes) = (skip, bytes);
    let mut slices = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let passed = skip.min(buffer.len());
        let taken = bytes.min(buffer.len() - passed);
        if taken > 0 {
            slices.push(IoSlice::new(&buffer[passed..passed + taken]));
        }
        (skip, bytes) = (skip - passed, bytes - taken);
    }
    slices
}
