//! Ledgers beside each other, and the turns of their programs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ledger::{Ledger, Reclaim};
use super::process::Process;
use super::turn::Turn;

#[test]
fn a_refusal_names_what_need_used_and_limit() {
    let ledger = Ledger::new(100);
    let held = ledger.reserve(60, "a tile").unwrap();
    let error = ledger.reserve(50, "matmul workspace").err().unwrap();
    assert_eq!(
        error.to_string(),
        "matmul workspace needs 50 bytes, but 60 of 100 bytes are in use"
    );
    assert_eq!(error.code(), "memory");
    drop(held);
    assert_eq!((ledger.used(), ledger.peak()), (0, 60));
    ledger.reset_peak();
    assert_eq!(ledger.peak(), 0);
    assert!(ledger.reserve(usize::MAX, "everything").is_err());
}

/// Tiles between programs, or frames that wait: bytes, and nothing in them.
struct Idle(Mutex<usize>);

impl Reclaim for Idle {
    fn bytes(&self) -> usize {
        *self.0.lock().unwrap()
    }

    fn shrink_to(&self, allowed: usize) {
        let mut bytes = self.0.lock().unwrap();
        *bytes = allowed.min(*bytes);
    }
}

/// Three ledgers of a process without others, each with 60 bytes that wait.
fn family() -> Vec<(Ledger, Arc<dyn Reclaim>)> {
    let process: &'static Process = Box::leak(Box::new(Process::new()));
    let member = |_| {
        let ledger = Ledger::within(process, 1000);
        let cache: Arc<dyn Reclaim> = Arc::new(Idle(Mutex::new(60)));
        ledger.set_cache(Arc::downgrade(&cache));
        (ledger, cache)
    };
    (0..3).map(member).collect()
}

#[test]
fn others_give_up_what_they_can_the_one_that_ran_longest_ago_first() {
    let family = family();
    for (ledger, _) in &family {
        assert!(Turn::queue(ledger).has_come(Duration::ZERO));
    }
    let result = family[0].0.reserve(100, "a result").unwrap();
    let (last, _) = &family[2];
    assert_eq!((last.held_by_others(), last.shrink_others(1000)), (100, 220));
    assert_eq!(last.shrink_others(190), 190);
    let left: Vec<usize> = family.iter().map(|(_, cache)| cache.bytes()).collect();
    assert_eq!(left, [30, 60, 60]);
    assert_eq!(last.shrink_others(0), 100, "a result cannot be taken back");
    drop(result);
    assert_eq!(last.held_by_others(), 0);
}

#[test]
fn what_was_used_longest_ago_gives_up_first() {
    let ledger = Ledger::new(1000);
    let idle = || -> Arc<dyn Reclaim> { Arc::new(Idle(Mutex::new(60))) };
    let (kept, caches) = (idle(), [idle(), idle(), idle()]);
    let name = |cache: &Arc<dyn Reclaim>| ledger.add_pages(Arc::downgrade(cache));
    let left = || [&caches[0], &caches[1], &caches[2], &kept].map(|each| each.bytes());
    ledger.set_kept(Arc::downgrade(&kept));
    caches.iter().for_each(name);
    ledger.kept_used();
    // The first is used once more, behind the tiles.
    name(&caches[0]);
    ledger.give_up(70, None);
    assert_eq!(left(), [60, 0, 50, 60]);
    ledger.give_up(70, None);
    assert_eq!(left(), [60, 0, 0, 40]);
    ledger.give_up(90, Some(&*caches[0]));
    assert_eq!(left(), [60, 0, 0, 0]);
    ledger.give_up(20, None);
    assert_eq!(left(), [40, 0, 0, 0]);
    let [first, ..] = caches;
    drop(first);
    assert_eq!(ledger.yielding_page_bytes(), 0);
}

#[test]
fn the_nth_reservation_fails_once() {
    let ledger = Ledger::new(100);
    ledger.fail_at(Some(2));
    let outcomes: Vec<bool> = (0..4).map(|_| ledger.reserve(1, "x").is_ok()).collect();
    assert_eq!(outcomes, [true, false, true, true]);
    assert_eq!(ledger.reservations(), 4);
}

#[test]
fn turns_come_in_order_and_what_runs_is_no_result() {
    let family = family();
    let result = family[0].0.reserve(100, "a result").unwrap();
    let first = Turn::queue(&family[0].0);
    let gone = Turn::queue(&family[1].0);
    let second = Turn::queue(&family[1].0);
    assert!(first.has_come(Duration::ZERO));
    let tile = family[0].0.reserve(500, "a tile").unwrap();
    assert!(!second.has_come(Duration::ZERO));
    assert_eq!(family[1].0.held_by_others(), 100);
    drop(gone);
    drop(first);
    assert!(second.has_come(Duration::ZERO));
    assert_eq!(family[1].0.held_by_others(), 600);
    drop((result, tile));
}

#[test]
fn the_one_whose_turn_it_is_may_turn_others_away_until_it_ends() {
    let family = family();
    let (first, second) = (Turn::queue(&family[0].0), Turn::queue(&family[1].0));
    second.turn_others_away();
    assert!(!first.is_turned_away(), "it is not the second's turn");
    first.turn_others_away();
    let third = Turn::queue(&family[2].0);
    assert!(!first.is_turned_away() && second.is_turned_away() && third.is_turned_away());
    drop(first);
    assert!(second.has_come(Duration::ZERO));
    assert!(!third.is_turned_away());
}
