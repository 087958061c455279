//! Which page of a set goes: one byte per page is all that a policy remembers.

use super::set::{ways, Set, WAYS};

/// How a set chooses the page to evict. A clean page goes before a dirty one under each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// The page used longest ago. The byte is the page's place in that order.
    Lru,
    /// The page used least often, the one after the last evicted among equals. The byte counts; all are halved when one
    /// is full.
    Lfu,
    /// The next page that was not used since the hand passed it. The byte is 0 or 1.
    Clock,
    /// As `Clock`, but the hand must pass a page as often as it was used, up to `GCLOCK_MOST` times. Three bits of the byte count
    /// that, in the others is the number of the sweep in which it was used last.
    #[default]
    Gclock,
}

/// What a page's byte goes up to under `CachePolicy::Gclock`: enough to tell hot pages, little enough to forget them.
pub const GCLOCK_MOST: u8 = 5;

const COUNT_BITS: u32 = 3;
const COUNT: u8 = (1 << COUNT_BITS) - 1;
const _: () = assert!(GCLOCK_MOST <= COUNT);

/// Sweeps are counted up to so many, and then from 0 again.
pub(super) const SWEEPS: u8 = 1 << (u8::BITS - COUNT_BITS);

impl CachePolicy {
    /// Bytes of a set without pages.
    pub(super) fn fresh(self) -> [u8; WAYS] {
        match self {
            CachePolicy::Lru => std::array::from_fn(|way| way as u8),
            _ => [0; WAYS],
        }
    }

    /// A page came, in a sweep of this number.
    pub(super) fn enter(self, set: &mut Set, way: usize, sweep: u8) {
        match self {
            CachePolicy::Lru => to_front(set, way),
            CachePolicy::Gclock => set.uses[way] = sweep << COUNT_BITS | 1,
            _ => set.uses[way] = 1,
        }
    }

    /// A page that is there was used.
    #[inline]
    pub(super) fn touch(self, set: &mut Set, way: usize, sweep: u8) {
        match self {
            CachePolicy::Lru => to_front(set, way),
            CachePolicy::Lfu => {
                if set.uses[way] == u8::MAX {
                    set.uses.iter_mut().for_each(|uses| *uses /= 2);
                }
                set.uses[way] += 1;
            }
            CachePolicy::Clock => set.uses[way] = 1,
            CachePolicy::Gclock => {
                let count = (set.uses[way] & COUNT) + 1;
                set.uses[way] = sweep << COUNT_BITS | count.min(GCLOCK_MOST);
            }
        }
    }

    /// How often a page was used, as the hand of a clock has it.
    fn count(self, uses: u8) -> u8 {
        match self {
            CachePolicy::Gclock => uses & COUNT,
            _ => uses,
        }
    }

    /// The page to evict of those in `allowed` in a sweep that uses more pages than there is room for, and comes back by the way it
    /// went. Pages that neither it nor the last one used go first. Then those that it has used, the ones before that go as the hand
    /// does; what it may still come to goes last.
    pub(super) fn victim_of_sweep(self, set: &mut Set, allowed: u16, sweep: u8) -> Option<usize> {
        let (mut over, mut old) = (0, 0);
        if self == CachePolicy::Gclock {
            for way in ways(allowed) {
                match (sweep + SWEEPS - (set.uses[way] >> COUNT_BITS)) % SWEEPS {
                    0 => over |= 1 << way,
                    1 => {}
                    _ => old |= 1 << way,
                }
            }
        }
        if old == 0 && over != 0 {
            let victim = from_hand(set.hand, over).next()?;
            set.hand = ((victim + 1) % WAYS) as u8;
            return Some(victim);
        }
        self.victim(set, if old == 0 { allowed } else { old })
    }

    /// The page to evict of those in `allowed`, a bit for each.
    pub(super) fn victim(self, set: &mut Set, allowed: u16) -> Option<usize> {
        let hand = set.hand as usize;
        let mut ways = from_hand(set.hand, allowed);
        let victim = match self {
            CachePolicy::Lru => ways.max_by_key(|&way| set.uses[way])?,
            CachePolicy::Lfu => ways.min_by_key(|&way| set.uses[way])?,
            CachePolicy::Clock | CachePolicy::Gclock => {
                // As many rounds of the hand as find a page that is down to 0, all at once.
                let count = |way: usize| self.count(set.uses[way]);
                let rounds = ways.clone().map(count).min()?;
                let found = ways.find(|&way| count(way) == rounds)?;
                for step in 0..WAYS {
                    let way = (hand + step) % WAYS;
                    let passed = rounds + u8::from((found + WAYS - hand) % WAYS > step);
                    if allowed & (1 << way) != 0 {
                        set.uses[way] -= self.count(set.uses[way]).min(passed);
                    }
                }
                found
            }
        };
        set.hand = ((victim + 1) % WAYS) as u8;
        Some(victim)
    }

    /// The order in which pages go, last first, without changing anything: for sets that become one.
    pub(super) fn rank(self, uses: u8) -> u8 {
        match self {
            CachePolicy::Lru => u8::MAX - uses,
            _ => self.count(uses),
        }
    }

    /// Makes the bytes of pages that came from two sets those of one.
    pub(super) fn merge_uses(self, set: &mut Set) {
        if self != CachePolicy::Lru {
            return;
        }
        let mut order: [usize; WAYS] = std::array::from_fn(|way| way);
        order.sort_by_key(|&way| (set.held & (1 << way) == 0, set.uses[way]));
        for (place, way) in order.into_iter().enumerate() {
            set.uses[way] = place as u8;
        }
    }
}

/// The ways of a mask in the order in which the hand comes to them.
fn from_hand(hand: u8, allowed: u16) -> impl Iterator<Item = usize> + Clone {
    let all = (0..WAYS).map(move |step| (hand as usize + step) % WAYS);
    all.filter(move |way| allowed & (1 << way) != 0)
}

#[inline]
fn to_front(set: &mut Set, way: usize) {
    let place = set.uses[way];
    if place != 0 {
        set.uses.iter_mut().for_each(|other| *other += u8::from(*other < place));
        set.uses[way] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(policy: CachePolicy, order: &[usize]) -> Set {
        let mut set = Set::new(policy.fresh(), [0; WAYS]);
        (0..WAYS).for_each(|way| policy.enter(&mut set, way, 0));
        order.iter().for_each(|&way| policy.touch(&mut set, way, 0));
        set
    }

    #[test]
    fn lru_takes_the_page_used_longest_ago() {
        let mut set = used(CachePolicy::Lru, &[0, 1, 2, 5]);
        assert_eq!(CachePolicy::Lru.victim(&mut set, 0xfff), Some(3));
        assert_eq!(CachePolicy::Lru.victim(&mut set, 0b111), Some(0));
        assert_eq!(CachePolicy::Lru.victim(&mut set, 0), None);
        let mut places = set.uses;
        places.sort();
        assert_eq!(places, CachePolicy::Lru.fresh());
    }

    #[test]
    fn lfu_takes_the_page_used_least_and_forgets_old_counts() {
        let mut set = used(CachePolicy::Lfu, &[0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(CachePolicy::Lfu.victim(&mut set, 0xfff), Some(3));
        (0..300).for_each(|_| CachePolicy::Lfu.touch(&mut set, 0, 0));
        assert!(set.uses[0] > 100 && set.uses[1] == 1);
    }

    /// A clock as the books have it: one step of the hand at a time.
    fn swept(set: &mut Set, allowed: u16) -> usize {
        loop {
            let way = set.hand as usize;
            set.hand = ((way + 1) % WAYS) as u8;
            if allowed & (1 << way) != 0 {
                if set.uses[way] == 0 {
                    return way;
                }
                set.uses[way] -= 1;
            }
        }
    }

    #[test]
    fn all_rounds_at_once_do_what_single_steps_do() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        for policy in [CachePolicy::Clock, CachePolicy::Gclock] {
            for _ in 0..300 {
                let touches: Vec<usize> = (0..random() % 40).map(|_| random() % WAYS).collect();
                let mut set = used(policy, &touches);
                let mut stepped = used(policy, &touches);
                for _ in 0..5 {
                    let allowed = (random() as u16 & 0xfff) | 1 << (random() % WAYS);
                    let way = swept(&mut stepped, allowed);
                    assert_eq!(policy.victim(&mut set, allowed), Some(way));
                    assert_eq!((set.uses, set.hand), (stepped.uses, stepped.hand));
                }
            }
        }
    }
}
