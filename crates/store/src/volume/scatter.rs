//! The fence around work that other threads do with a caller's buffers while the caller waits for it.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex};

use crate::backend::{Stable, StableMut};
use crate::base::locked::locked;

/// Work for a thread, which gives it what it has: a ring, say.
pub(crate) type DiskTask<Has> = Box<dyn FnOnce(&mut Has) + Send>;

/// Work that borrows from the caller, and may hand on what it borrows by its ticket.
pub(crate) type Borrowing<'a, Has> = Box<dyn FnOnce(&mut Has, &Ticket<'a>) + Send + 'a>;

/// Work with its ticket.
type Ready<'a, Has> = Box<dyn FnOnce(&mut Has) + Send + 'a>;

#[derive(Default)]
struct Latch {
    left: Mutex<usize>,
    none_left: Condvar,
}

/// Counts down when a task is over: done, undone by a panic, or dropped without having been begun.
struct Guard(Arc<Latch>);

impl Drop for Guard {
    fn drop(&mut self) {
        let mut left = locked(&self.0.left);
        *left -= 1;
        if *left == 0 {
            self.0.none_left.notify_all();
        }
    }
}

/// The caller waits while this, or anything that was lent by it, is there: so long lives what is borrowed for `'a`.
pub(crate) struct Ticket<'a> {
    guard: Arc<Guard>,
    /// Invariant: nothing that lives shorter is lent.
    _borrowed: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a> Ticket<'a> {
    pub(crate) fn lend(&self, bytes: &'a [u8]) -> Lent {
        Lent {
            start: bytes.as_ptr().cast_mut(),
            length: bytes.len(),
            writable: false,
            _guard: self.guard.clone(),
        }
    }

    pub(crate) fn lend_mut(&self, bytes: &'a mut [u8]) -> Lent {
        Lent {
            start: bytes.as_mut_ptr(),
            length: bytes.len(),
            writable: true,
            _guard: self.guard.clone(),
        }
    }
}

/// A caller's bytes, for as long as this lives.
pub(crate) struct Lent {
    start: *mut u8,
    length: usize,
    writable: bool,
    _guard: Arc<Guard>,
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: it was made of a slice that lives until the caller goes on, which it does when all guards are gone.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(self.writable, "these bytes were lent to be read");
        // SAFETY: as above; it was made of a slice that was borrowed to be written, by this alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

// SAFETY: the caller's slice, which stays where it is and is borrowed while the value lives.
unsafe impl Stable for Lent {}
// SAFETY: as above; writing begins with `deref_mut`, which refuses slices that others may read.
unsafe impl StableMut for Lent {}

/// Work, and the ticket that says that it is over: what the work borrows goes first, as fields go in their order.
struct Guarded<'a, Has> {
    work: Borrowing<'a, Has>,
    ticket: Ticket<'a>,
}

impl<Has> Guarded<'_, Has> {
    fn run(self, has: &mut Has) {
        (self.work)(has, &self.ticket);
    }
}

/// Waits for the tasks that were handed out, whatever becomes of the caller.
struct Wait<'a>(&'a Latch);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut left = locked(&self.0.left);
        while *left > 0 {
            left = self
                .0
                .none_left
                .wait(left)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// Gives each piece of work to `give`, which has it done by some thread, and waits until all are over.
pub(crate) fn scatter<'a, T, Has: 'static>(work: Vec<(T, Borrowing<'a, Has>)>, give: impl Fn(T, DiskTask<Has>)) {
    let latch = Arc::new(Latch {
        left: Mutex::new(work.len()),
        none_left: Condvar::new(),
    });
    // Made first, so that it waits last: also when `give` panics, which drops the work that is left.
    let _wait = Wait(&latch);
    let guarded: Vec<(T, Ready<'a, Has>)> = work
        .into_iter()
        .map(|(to, work)| {
            let ticket = Ticket {
                guard: Arc::new(Guard(latch.clone())),
                _borrowed: PhantomData,
            };
            let guarded = Guarded { work, ticket };
            let task: Ready<'a, Has> = Box::new(move |has: &mut Has| guarded.run(has));
            (to, task)
        })
        .collect();
    for (to, task) in guarded {
        // SAFETY: only the lifetime of what the work borrows changes. That ends after this function returns, and it
        // returns only when every guard has been dropped: with the ticket, by the work's own thread after the work has
        // run or with the work itself where it never runs, and with all that was lent by it. `Wait` sees to it on every
        // way out.
        let task = unsafe { std::mem::transmute::<Ready<'a, Has>, DiskTask<Has>>(task) };
        give(to, task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowed_buffers_are_filled_by_other_threads() {
        let mut buffer = vec![0u8; 64];
        let work = buffer.chunks_mut(16).zip(1u8..).map(|(chunk, mark)| {
            let task: Borrowing<'_, ()> = Box::new(move |(), _| chunk.fill(mark));
            ((), task)
        });
        scatter(work.collect(), |(), task| drop(std::thread::spawn(|| task(&mut ()))));
        let expected: Vec<u8> = (0..64).map(|at| at / 16 + 1).collect();
        assert_eq!(buffer, expected);
    }

    #[test]
    fn what_is_lent_is_waited_for_when_the_work_is_over() {
        let mut buffer = vec![0u8; 64];
        let work = buffer.chunks_mut(16).zip(1u8..).map(|(chunk, mark)| {
            let task: Borrowing<'_, Vec<(Lent, u8)>> =
                Box::new(move |has, ticket| has.push((ticket.lend_mut(chunk), mark)));
            ((), task)
        });
        scatter(work.collect(), |(), task| {
            drop(std::thread::spawn(move || {
                let mut has = Vec::new();
                task(&mut has);
                std::thread::yield_now();
                for (mut lent, mark) in has {
                    lent.fill(mark);
                }
            }));
        });
        let expected: Vec<u8> = (0..64).map(|at| at / 16 + 1).collect();
        assert_eq!(buffer, expected);
    }

    #[test]
    #[should_panic(expected = "lent to be read")]
    fn what_was_lent_to_be_read_is_not_written() {
        let bytes = [1u8; 4];
        let task: Borrowing<'_, ()> = Box::new(|(), ticket| ticket.lend(&bytes).fill(0));
        scatter(vec![((), task)], |(), task| task(&mut ()));
    }

    #[test]
    fn work_that_panics_or_is_dropped_is_not_waited_for() {
        let done = Mutex::new(0);
        let work = (0..3).map(|number| {
            let done = &done;
            let task: Borrowing<'_, ()> = Box::new(move |(), _| {
                assert!(number != 1, "as planned");
                *locked(done) += 1;
            });
            (number, task)
        });
        scatter(work.collect(), |number, task| match number {
            2 => drop(task),
            _ => drop(std::thread::spawn(|| task(&mut ()))),
        });
        assert_eq!(*locked(&done), 1);
    }
}
