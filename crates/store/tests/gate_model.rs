//! Every interleaving of those who wait at a gate with those who announce, by `loom`.

mod sync {
    pub(crate) use loom::sync::atomic::{fence, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex};
}

#[path = "../src/gate.rs"]
mod gate;

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
