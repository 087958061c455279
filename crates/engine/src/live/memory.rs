//! How live work shares the memory of a session: one rule, in `shares`.

/// The memory that an operator needs and can use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveMemory {
    /// Bytes known of vertices and lists, held for the whole run.
    pub known: u64,
    /// Fewer bytes that may be enough where there is no room for `known`; the run begins again where they were not.
    pub frugal: Option<u64>,
    /// The least for reading ahead and sending, and the most that is of use.
    pub least: u64,
    pub most: u64,
    pub reading: ReadingShare,
    pub cache: CacheShare,
}

impl LiveMemory {
    /// Of work that knows nothing of its bytes beforehand, has no cache and reads less often with more memory.
    pub fn working(least: u64, most: u64) -> LiveMemory {
        LiveMemory {
            known: 0,
            frugal: None,
            least,
            most,
            reading: ReadingShare::Working,
            cache: CacheShare::Nothing,
        }
    }
}

/// The part of the memory beside `known` that reading and working take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingShare {
    /// One of so many parts, and at most [`READING_MAX`]: [`READING_PART`], unless nothing is sent.
    Part(u64),
    /// [`working_bytes`]: work that takes more at a time reads less often.
    Working,
}

/// The part of the rest, behind `known` and reading, that the page cache of the file may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheShare {
    /// Nothing is read again.
    Nothing,
    /// The run has its turn: nobody else needs the rest.
    Run,
    /// The caller works on the lists behind the run, in the other half; a cache that is larger stays as it is.
    Half,
    /// A function that is called with the lists may compute meanwhile, in the other half: the memory is without a turn.
    Beside,
}

/// Bytes that a run holds, and that its page cache takes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveShares {
    pub known: u64,
    pub reading: u64,
    pub cache: u64,
}

impl LiveShares {
    /// Bytes that are reserved before the run begins.
    pub fn reserved(&self) -> u64 {
        self.known + self.reading
    }
}

/// With more memory than this reading ahead is not faster on any disk we know.
pub const READING_MAX: u64 = 256 << 20;
/// Reading ahead and sending have this part of the rest, for they do with little; pages are asked for again, so the cache has
/// more.
pub const READING_PART: u64 = 4;
/// The same where nothing is sent.
pub const READING_PART_ALONE: u64 = 8;
/// A call takes so much at least. A session lets less go beyond its limit, and without a turn.
pub const CALL_BYTES: u64 = 20 << 20;
/// A smaller cache is not worth its while.
pub const CACHE_LEAST: u64 = 4 << 20;
/// The quarters of the rest that work has which has no cache.
const WORKING_QUARTERS: u64 = 3;
/// The eighths of the rest that the cache of a run has, for an eighth is for memory that grows meanwhile, and the cache of lists
/// for callers who compute.
const RUN_EIGHTHS: u64 = 7;
const BESIDE_EIGHTHS: u64 = 4;
/// Eighths of all pages that their cache takes, with its tables.
const PAGES_EIGHTHS: u64 = 9;
/// Memory that only saves time is no more than this part of the rest: lists need it too.
const SPARED_PART: u64 = 8;
/// A file that is read at random by way of a cache of its own has this part of the budget, unless it is said.
const CACHED_PART: u64 = 8;
/// Memory of an iteration grows by so much, or by this part.
const GROWTH_LEAST: u64 = 4 << 20;
const GROWTH_PART: u64 = 8;

/// The shares of a session's spare bytes, where all pages of the file are so many bytes. Known bytes come first, reading has a
/// part of the rest within its least and most, the cache a part of what remains, as far as there are pages. Where the session has
/// too little, a refusal names the shares.
pub fn shares(memory: &LiveMemory, spare: u64, pages_bytes: u64) -> LiveShares {
    let fits = memory.known + memory.least <= spare;
    let known = memory.frugal.filter(|_| !fits).unwrap_or(memory.known);
    let left = spare.saturating_sub(known);
    let (share, most) = match memory.reading {
        ReadingShare::Part(part) => (left / part, memory.most.min(READING_MAX)),
        ReadingShare::Working => (working_bytes(left), memory.most),
    };
    let reading = share.clamp(memory.least, most.max(memory.least));
    let eighths = match memory.cache {
        CacheShare::Nothing => 0,
        CacheShare::Run => RUN_EIGHTHS,
        CacheShare::Half | CacheShare::Beside => BESIDE_EIGHTHS,
    };
    let cache = left.saturating_sub(reading) / 8 * eighths;
    let cache = cache.min(pages_bytes / 8 * PAGES_EIGHTHS + CACHE_LEAST);
    LiveShares {
        known,
        reading,
        cache: if cache < CACHE_LEAST { 0 } else { cache },
    }
}

/// Whether bytes that only save time are few beside what is left.
/// The part of so many spare bytes that work takes which reads less often with more of them; the rest is for memory that grows
/// meanwhile.
pub fn working_bytes(spare: u64) -> u64 {
    spare / 4 * WORKING_QUARTERS
}

pub(super) fn is_spared(bytes: u64, spare: u64) -> bool {
    bytes <= spare / SPARED_PART
}

/// The memory of a cache at least: a request, whatever the size of pages, and a set of pages.
const CACHED_LEAST: u64 = 9 << 17;
const CACHED_PAGES_LEAST: u64 = 14;

/// The part of a budget that a file that is read at random has, in pages of so many bytes.
pub fn cached_bytes(budget: u64, page_bytes: u64) -> u64 {
    (budget / CACHED_PART).max(CACHED_LEAST + CACHED_PAGES_LEAST.saturating_mul(page_bytes))
}

/// Bytes to hold where so many are needed next: more, so that an iteration seldom asks.
pub(super) fn grown(need: u64) -> u64 {
    need + GROWTH_LEAST.max(need / GROWTH_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const WISH: LiveMemory = LiveMemory {
        known: 100 * MIB,
        frugal: None,
        least: CALL_BYTES,
        most: 300 * MIB,
        reading: ReadingShare::Part(READING_PART),
        cache: CacheShare::Run,
    };

    #[test]
    fn too_little_is_the_least_and_no_cache() {
        for spare in [0, 50 * MIB, 119 * MIB] {
            let least = LiveShares {
                known: 100 * MIB,
                reading: 20 * MIB,
                cache: 0,
            };
            assert_eq!(shares(&WISH, spare, 1 << 40), least);
        }
    }

    #[test]
    fn exactly_enough_has_no_cache_until_one_is_worth_its_while() {
        assert_eq!(shares(&WISH, 120 * MIB, 1 << 40).cache, 0);
        // Seven eighths of 4.5 MiB are less than 4 MiB, of 5 MiB more.
        assert_eq!(shares(&WISH, 124 * MIB + MIB / 2, 1 << 40).cache, 0);
        assert_eq!(shares(&WISH, 125 * MIB, 1 << 40).cache, 5 * MIB / 8 * 7);
    }

    #[test]
    fn ample_memory_is_shared_within_what_is_of_use() {
        let found = shares(&WISH, 500 * MIB, 1 << 40);
        assert_eq!((found.reading, found.cache), (100 * MIB, 300 * MIB / 8 * 7));
        // No more for reading than is of use, nor for the cache than all pages.
        let found = shares(&WISH, 100 << 30, 80 * MIB);
        assert_eq!((found.reading, found.cache), (READING_MAX, 94 * MIB));
        let little = LiveMemory { most: MIB, ..WISH };
        assert_eq!(shares(&little, 100 << 30, 0).reading, CALL_BYTES);
    }

    #[test]
    fn whoever_may_do_with_less_does_where_it_has_to() {
        let wish = LiveMemory {
            frugal: Some(60 * MIB),
            ..WISH
        };
        assert_eq!(shares(&wish, 120 * MIB, 0).known, 100 * MIB);
        assert_eq!(shares(&wish, 120 * MIB - 1, 0).known, 60 * MIB);
    }

    #[test]
    fn work_without_a_cache_has_three_quarters() {
        let working = LiveMemory::working(0, u64::MAX);
        for (spare, reading) in [(0, 0), (400 * MIB, 300 * MIB), (100 << 30, 75 << 30)] {
            let expected = LiveShares {
                reading,
                ..LiveShares::default()
            };
            assert_eq!(shares(&working, spare, 1 << 40), expected);
        }
        let bounded = LiveMemory::working(10 * MIB, 20 * MIB);
        assert_eq!(shares(&bounded, MIB, 0).reading, 10 * MIB);
        assert_eq!(shares(&bounded, 100 << 30, 0).reading, 20 * MIB);
    }

    #[test]
    fn what_is_called_has_the_other_half() {
        let beside = LiveMemory {
            cache: CacheShare::Beside,
            ..WISH
        };
        let found = shares(&beside, 500 * MIB, 1 << 40);
        assert_eq!(found.cache, (400 * MIB - found.reading) / 2);
        let nothing = LiveMemory {
            cache: CacheShare::Nothing,
            ..WISH
        };
        assert_eq!(shares(&nothing, 500 * MIB, 1 << 40).cache, 0);
    }
}
