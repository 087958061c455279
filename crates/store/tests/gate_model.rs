//! Every interleaving of those who wait at a gate with those who announce, and of a flusher with those who ring for it, by
//! `loom`.

mod sync {
    pub(crate) use loom::sync::atomic::{fence, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex};
}

#[path = "../src/base/alarm.rs"]
mod alarm;
#[path = "../src/base/gate.rs"]
mod gate;

use alarm::Alarm;
use gate::Gate;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;

/// A page pinned by `readers`, each of which unpins it and announces that nobody is left; `writers` wait for that.
fn pinned_by(readers: usize, writers: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let page = Arc::new((AtomicUsize::new(readers), Gate::default()));
        let unpin = |page: &(AtomicUsize, Gate)| {
            if page.0.fetch_sub(1, Ordering::Release) == 1 {
                page.1.announce();
            }
        };
        let reading: Vec<_> = (1..readers + writers)
            .map(|number| {
                let page = page.clone();
                thread::spawn(move || {
                    if number < readers {
                        unpin(&page);
                    } else {
                        page.1.wait_for(|| (page.0.load(Ordering::Acquire) == 0).then_some(()));
                    }
                })
            })
            .collect();
        unpin(&page);
        reading.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_writer_hears_of_the_last_reader() {
    pinned_by(1, 1);
    pinned_by(2, 1);
}

#[test]
fn all_writers_hear_of_it() {
    pinned_by(1, 2);
}

/// Writers make a page dirty each and ring; who is woken cleans all that are. None is left, and the thread ends.
fn cleaned_for(writers: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Alarm::default()));
        let write = |shared: &(AtomicUsize, AtomicUsize, Alarm)| {
            shared.0.fetch_add(1, Ordering::Relaxed);
            shared.2.ring();
        };
        let flusher = {
            let shared = shared.clone();
            thread::spawn(move || {
                while shared.2.wait() {
                    shared
                        .1
                        .fetch_add(shared.0.swap(0, Ordering::Relaxed), Ordering::Relaxed);
                    if shared.1.load(Ordering::Relaxed) == writers {
                        return true;
                    }
                }
                false
            })
        };
        let others: Vec<_> = (1..writers)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || write(&shared))
            })
            .collect();
        write(&shared);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(flusher.join().unwrap(), "a page was left dirty");
    });
}

#[test]
fn a_flusher_hears_of_every_page() {
    cleaned_for(1);
    cleaned_for(2);
}

#[test]
fn a_flusher_hears_of_the_end() {
    loom::model(|| {
        let alarm = Arc::new(Alarm::default());
        let flusher = {
            let alarm = alarm.clone();
            thread::spawn(move || while alarm.wait() {})
        };
        alarm.ring();
        alarm.end();
        flusher.join().unwrap();
    });
}
