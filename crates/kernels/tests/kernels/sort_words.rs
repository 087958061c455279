//! The ways of sorting words, each by itself: on words of many shapes and however many cuts are left.

use outcore_kernels::sort::internals::{ways_16, ways_32, ways_64, Ways};

trait Word: Copy + Ord {
    /// Of the lower bits.
    fn of(bits: u64) -> Self;
    fn not(self) -> Self;
    fn ways() -> Ways<Self>;
}

macro_rules! words {
    ($($K:ty: $ways:ident);*) => {$(
        impl Word for $K {
            fn of(bits: u64) -> $K {
                bits as $K
            }
            fn not(self) -> $K {
                !self
            }
            fn ways() -> Ways<$K> {
                $ways()
            }
        }
    )*};
}

words!(u16: ways_16; u32: ways_32; u64: ways_64);

const LENGTHS: [usize; 14] = [0, 1, 7, 8, 127, 128, 129, 191, 192, 200, 1000, 8192, 8193, 70_001];

/// Words of many shapes: random, few different, in order, equal, of the greatest, and in a form of waves.
fn shapes<K: Word>(length: usize) -> Vec<Vec<K>> {
    let random = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ (at as u64) << 40;
    let shape = |of: &dyn Fn(usize) -> u64| (0..length).map(|at| K::of(of(at))).collect();
    vec![
        shape(&random),
        shape(&|at| random(at) % 3),
        shape(&|at| at as u64),
        shape(&|at| (length - at) as u64),
        shape(&|_| 5),
        shape(&|_| u64::MAX),
        shape(&|at| {
            if at % 7 == 0 {
                random(at)
            } else {
                u64::MAX - at as u64 % 2
            }
        }),
        shape(&|at| (at % 9 * length + at) as u64),
    ]
}

/// `sort` puts words in order, and finishes each of them once.
fn check<K: Word>(sort: impl Fn(&mut [K], fn(&mut [K]))) {
    for length in LENGTHS {
        for words in shapes::<K>(length) {
            let mut expected = words.clone();
            expected.sort_unstable();
            invert(&mut expected);
            let mut sorted = words;
            sort(&mut sorted, invert);
            assert!(sorted == expected, "{length} words");
        }
    }
}

fn invert<K: Word>(words: &mut [K]) {
    words.iter_mut().for_each(|word| *word = word.not());
}

fn check_all<K: Word>() {
    let ways = K::ways();
    check::<K>(|words, finish| (ways.by_radix)(words, finish));
    let Some(by_cuts) = ways.by_cuts else { return };
    check(|words, finish| (by_cuts.sort)(words, by_cuts.vectors, finish));
    for cuts in [0, 1, 3] {
        check(|words, finish| (by_cuts.sort_within)(words, by_cuts.vectors, cuts, finish));
    }
}

#[test]
fn words_are_sorted_with_and_without_vectors_and_however_many_cuts_are_left() {
    check_all::<u64>();
    check_all::<u32>();
    check_all::<u16>();
}

#[test]
fn a_cut_leaves_every_word_in_its_part() {
    let Some(by_cuts) = ways_64().by_cuts else { return };
    let vectors = by_cuts.vectors;
    for length in [128, 129, 135, 136, 191, 192, 193, 1000, 4099] {
        for words in shapes::<u64>(length) {
            for pivot in [0, 1, 2, words[length / 2], u64::MAX] {
                let mut parts = words.clone();
                let below = (vectors.cut)(&mut parts, pivot);
                assert!(parts[..below].iter().all(|word| *word < pivot));
                assert!(parts[below..].iter().all(|word| *word >= pivot));
                let mut before = words.clone();
                before.sort_unstable();
                parts.sort_unstable();
                assert!(parts == before, "{length} words, cut by {pivot}");
                let mut target = vec![7; length + 3];
                assert_eq!((vectors.cut_into)(&words, &mut target[1..length + 1], pivot), below);
                let (lesser, others) = target[1..length + 1].split_at(below);
                assert!(lesser.iter().all(|word| *word < pivot) && others.iter().all(|word| *word >= pivot));
                let mut parts = target[1..length + 1].to_vec();
                parts.sort_unstable();
                assert!(parts == before && target[0] == 7 && target[length + 1..] == [7, 7]);
            }
        }
    }
}
