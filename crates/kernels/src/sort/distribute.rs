//! Ranges beyond the cache are cut, by value, into some 256 that fit it.
//!
//! A sample says how: by the leading digit where that is even enough, else by a table from the leading sixteen bits to
//! buckets of equal share, so that exponents of floats and skewed integers cost no more passes than random words; and a
//! word that makes up a fourth of the range is taken out first.

use super::key::Word;
use super::radix::{
    scatter, sort_here, Bucket, Digit, Payload, RadixColumns, RadixExtent, RadixFinish, RadixPlaces, CACHED_BYTES,
    PASSES_MAX, PLACES,
};

const BUCKET_BITS: u32 = 8;
/// As many streams of writes as the translation cache holds pages.
const BUCKETS: usize = 1 << BUCKET_BITS;
const SAMPLES: usize = 2048;
const TABLE_BITS: u32 = 16;

/// How a range is cut.
enum Cut<K> {
    Around(K),
    Digit,
    SplitterTable(SplitterTable<K>),
}

/// Asks a sample. Not inlined: it shall not lie on the stack while the parts are sorted.
#[inline(never)]
fn choose<K: Word, P: Payload>(columns: &RadixColumns<'_, K, P>, extent: RadixExtent<K>, direct: Digit<K>) -> Cut<K> {
    if extent.bits <= BUCKET_BITS {
        return Cut::Digit;
    }
    let step = columns.words.len() / SAMPLES;
    let mut samples: [K; SAMPLES] = std::array::from_fn(|at| columns.words[step * at]);
    samples.sort_unstable();
    if let Some(word) = frequent(&samples) {
        return Cut::Around(word);
    }
    if is_even(&samples, direct, step * (size_of::<K>() + size_of::<P>())) {
        return Cut::Digit;
    }
    Cut::SplitterTable(SplitterTable::new(&samples, extent))
}

/// Sorts `columns` stably, with `spare` as workspace.
pub fn sort_by_radix<K: Word, P: Payload>(
    columns: RadixColumns<'_, K, P>,
    spare: RadixColumns<'_, K, P>,
    extent: RadixExtent<K>,
    finish: Option<RadixFinish<K>>,
) {
    sort(
        columns,
        spare,
        false,
        extent,
        finish,
        &mut [[0; PLACES]; PASSES_MAX + 1],
    );
}

/// Sorts `a`, stably; the result is in `b` if `into_b`, else in `a`, and the other holds nothing of use.
fn sort<K: Word, P: Payload>(
    a: RadixColumns<'_, K, P>,
    b: RadixColumns<'_, K, P>,
    into_b: bool,
    extent: RadixExtent<K>,
    finish: Option<RadixFinish<K>>,
    places: &mut RadixPlaces,
) {
    if !a.cached() && extent.bits > 0 {
        distribute(a, b, into_b, extent, finish, places);
    } else {
        sort_here(a, b, into_b, extent, finish, places);
    }
}

/// Sorts `a` as [`sort`] does.
fn distribute<K: Word, P: Payload>(
    mut a: RadixColumns<'_, K, P>,
    mut b: RadixColumns<'_, K, P>,
    into_b: bool,
    extent: RadixExtent<K>,
    finish: Option<RadixFinish<K>>,
    places: &mut RadixPlaces,
) {
    let direct = Digit {
        low: extent.low,
        shift: extent.bits.saturating_sub(BUCKET_BITS),
        mask: BUCKETS - 1,
    };
    let (ends, table);
    match choose(&a, extent, direct) {
        Cut::Around(word) => return part(a, b, into_b, word, finish, places),
        Cut::Digit => {
            ends = bucket_ends(a.words, direct);
            move_all(&a, &mut b, places, &ends, direct);
            table = None;
        }
        Cut::SplitterTable(made) => {
            ends = bucket_ends(a.words, made.lookup());
            move_all(&a, &mut b, places, &ends, made.lookup());
            table = Some(made);
        }
    }
    let mut from = 0;
    for (bucket, to) in ends.into_iter().enumerate() {
        if from < to {
            let (part, spare) = (b.range(from, to), a.range(from, to));
            let extent = if !part.cached() {
                RadixExtent::of(part.words)
            } else if let Some(table) = &table {
                table.extent(bucket)
            } else {
                RadixExtent {
                    low: extent.low.plus((bucket as u64) << direct.shift),
                    bits: direct.shift,
                }
            };
            sort(part, spare, !into_b, extent, finish, places);
        }
        from = to;
    }
}

fn move_all<K: Word, P: Payload>(
    a: &RadixColumns<'_, K, P>,
    b: &mut RadixColumns<'_, K, P>,
    places: &mut RadixPlaces,
    ends: &[usize; BUCKETS],
    bucket: impl Bucket<K>,
) {
    places[0][0] = 0;
    places[0][1..BUCKETS].copy_from_slice(&ends[..BUCKETS - 1]);
    scatter::<K, P, true>(a, b, &mut places[0], bucket);
    places[0][..BUCKETS].fill(0);
}

/// The word of a fourth of the samples, if there is one: taken out at once, not once per digit.
fn frequent<K: Word>(samples: &[K; SAMPLES]) -> Option<K> {
    const RUN: usize = SAMPLES / 4;
    let run = samples.windows(RUN).find(|run| run[0] == run[RUN - 1])?;
    Some(run[0])
}

/// Whether buckets by `digit` that do not fit the cache would hold few of the words, or were needed in any case and none
/// is large; a sample stands for `sample_bytes`.
fn is_even<K: Word>(samples: &[K; SAMPLES], digit: Digit<K>, sample_bytes: usize) -> bool {
    const AVERAGE: usize = SAMPLES / BUCKETS;
    let (mut largest, mut beyond) = (0, 0);
    for bucket in samples.chunk_by(|a, b| digit.of(*a) == digit.of(*b)) {
        largest = largest.max(bucket.len());
        if bucket.len() * sample_bytes > CACHED_BYTES {
            beyond += bucket.len();
        }
    }
    beyond <= SAMPLES / 8 || (AVERAGE * sample_bytes > CACHED_BYTES && largest <= 4 * AVERAGE)
}

/// Buckets of leading bits.
struct SplitterTable<K> {
    low: K,
    shift: u32,
    buckets: Vec<u8>,
    /// The first leading bits of each bucket, and one beyond the last.
    starts: Vec<usize>,
}

/// A [`SplitterTable`] in use.
#[derive(Clone, Copy)]
struct Lookup<'a, K> {
    low: K,
    shift: u32,
    buckets: &'a [u8; 1 << TABLE_BITS],
}

impl<K: Word> Bucket<K> for Lookup<'_, K> {
    #[inline(always)]
    fn of(self, word: K) -> usize {
        usize::from(self.buckets[(word.above(self.low) >> self.shift) as usize % (1 << TABLE_BITS)])
    }
}

impl<K: Word> SplitterTable<K> {
    /// A bucket starts at every eighth sample, or behind its leading bits where one has started with them.
    fn new(samples: &[K; SAMPLES], extent: RadixExtent<K>) -> Self {
        const EVERY: usize = SAMPLES / BUCKETS;
        let shift = extent.bits.saturating_sub(TABLE_BITS);
        let mut starts = vec![0];
        for sample in samples.iter().skip(EVERY).step_by(EVERY) {
            let start = (sample.above(extent.low) >> shift) as usize;
            match starts.last() {
                Some(last) if start > *last => starts.push(start),
                Some(last) if start == *last && start + 1 < 1 << TABLE_BITS => starts.push(start + 1),
                _ => {}
            }
        }
        starts.push(1 << TABLE_BITS);
        let mut buckets = vec![0; 1 << TABLE_BITS];
        for (bucket, bounds) in starts.windows(2).enumerate() {
            buckets[bounds[0]..bounds[1]].fill(bucket as u8);
        }
        SplitterTable {
            low: extent.low,
            shift,
            buckets,
            starts,
        }
    }

    fn lookup(&self) -> Lookup<'_, K> {
        Lookup {
            low: self.low,
            shift: self.shift,
            buckets: self.buckets.first_chunk().expect("one bucket for all leading bits"),
        }
    }

    fn extent(&self, bucket: usize) -> RadixExtent<K> {
        let (start, end) = (self.starts[bucket] as u64, self.starts[bucket + 1] as u64);
        let beyond = (end - start) << self.shift;
        RadixExtent {
            low: self.low.plus(start << self.shift),
            bits: u64::BITS - (beyond - 1).leading_zeros(),
        }
    }
}

/// Less than `word`, equal, greater: three parts, of which the second is done.
fn part<K: Word, P: Payload>(
    mut a: RadixColumns<'_, K, P>,
    mut b: RadixColumns<'_, K, P>,
    into_b: bool,
    word: K,
    finish: Option<RadixFinish<K>>,
    places: &mut RadixPlaces,
) {
    let kind = |other: K| usize::from(other >= word) + usize::from(other > word);
    let mut counts = [0; 3];
    for other in a.words.iter() {
        counts[0] += usize::from(*other < word);
        counts[2] += usize::from(*other > word);
    }
    let length = a.words.len();
    let ends = [counts[0], length - counts[2], length];
    let mut next = [0, ends[0], ends[1]];
    let (target, target_payload) = (&mut *b.words, &mut *b.payload);
    for (other, carried) in a.words.iter().zip(a.payload.iter()) {
        let at = &mut next[kind(*other)];
        target[*at] = *other;
        if !P::NOTHING {
            target_payload[*at] = *carried;
        }
        *at += 1;
    }
    let mut from = 0;
    for to in ends {
        let (part, spare) = (b.range(from, to), a.range(from, to));
        let extent = RadixExtent::of(part.words);
        sort(part, spare, !into_b, extent, finish, places);
        from = to;
    }
}

/// Where each bucket ends. Four histograms, so that equal neighbours do not wait for each other's count.
fn bucket_ends<K: Word>(words: &[K], bucket: impl Bucket<K>) -> [usize; BUCKETS] {
    let mut counts = [[0u64; BUCKETS]; 4];
    let (chunks, rest) = words.as_chunks::<4>();
    for chunk in chunks {
        for lane in 0..4 {
            counts[lane][bucket.of(chunk[lane]) % BUCKETS] += 1;
        }
    }
    for word in rest {
        counts[0][bucket.of(*word) % BUCKETS] += 1;
    }
    let mut end = 0;
    std::array::from_fn(|bucket| {
        end += counts.iter().map(|counts| counts[bucket] as usize).sum::<usize>();
        end
    })
}
