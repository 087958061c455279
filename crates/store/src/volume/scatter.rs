//! The fence around work that other threads do with a caller's buffers while the caller waits for it.

use std::sync::{Arc, Condvar, Mutex};

use crate::process::locked;

/// Work for a thread.
pub(super) type Task = Box<dyn FnOnce() + Send>;

/// Work that borrows from the caller.
pub(super) type Borrowing<'a> = Box<dyn FnOnce() + Send + 'a>;

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

/// Work, and the guard that says that it is over: what the work borrows goes first, as fields go in their order.
struct Guarded<'a> {
    work: Borrowing<'a>,
    _guard: Guard,
}

impl Guarded<'_> {
    fn run(self) {
        (self.work)();
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
pub(super) fn scatter<'a, T>(work: Vec<(T, Borrowing<'a>)>, give: impl Fn(T, Task)) {
    let latch = Arc::new(Latch {
        left: Mutex::new(work.len()),
        none_left: Condvar::new(),
    });
    // Made first, so that it waits last: also when `give` panics, which drops the work that is left.
    let _wait = Wait(&latch);
    let guarded: Vec<(T, Borrowing<'a>)> = work
        .into_iter()
        .map(|(to, work)| {
            let guarded = Guarded {
                work,
                _guard: Guard(latch.clone()),
            };
            let task: Borrowing<'a> = Box::new(move || guarded.run());
            (to, task)
        })
        .collect();
    for (to, task) in guarded {
        // SAFETY: only the lifetime of what the work borrows changes. That ends after this function returns, and it
        // returns only when every guard has been dropped: by the work's own thread after the work has run, or with the
        // work itself where it never runs. `Wait` sees to it on every way out.
        let task = unsafe { std::mem::transmute::<Borrowing<'a>, Task>(task) };
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
            let task: Borrowing<'_> = Box::new(move || chunk.fill(mark));
            ((), task)
        });
        scatter(work.collect(), |(), task| drop(std::thread::spawn(task)));
        let expected: Vec<u8> = (0..64).map(|at| at / 16 + 1).collect();
        assert_eq!(buffer, expected);
    }

    #[test]
    fn work_that_panics_or_is_dropped_is_not_waited_for() {
        let done = Mutex::new(0);
        let work = (0..3).map(|number| {
            let done = &done;
            let task: Borrowing<'_> = Box::new(move || {
                assert!(number != 1, "as planned");
                *locked(done) += 1;
            });
            (number, task)
        });
        scatter(work.collect(), |number, task| match number {
            2 => drop(task),
            _ => drop(std::thread::spawn(task)),
        });
        assert_eq!(*locked(&done), 1);
    }
}
