//! What a sort does with whole vectors of words: cut a range in two, and put a few words in order.
//!
//! For processors with AVX-512; others have no such functions. The cut is in place, from both ends (Bramas, "A Novel
//! Hybrid Quicksort Algorithm Vectorized using AVX-512 on Intel Skylake", section 3). The few words are sorted as a matrix:
//! its columns by a network of sixteen places with sixty comparisons (Green 1969; Knuth, "The Art of Computer
//! Programming", volume 3, section 5.3.4), which are then merged bitonically, two by two (Batcher 1968), with the lane as
//! the upper part of a word's place, so that most steps compare whole rows.

/// Functions on the words of one type.
#[derive(Clone, Copy)]
pub struct Vectors<K> {
    /// Puts the words less than the second argument first, and returns how many they are. More than [`FEW`] words.
    pub cut: fn(&mut [K], K) -> usize,
    /// Writes the words of the first argument that are less than the third to the start of the second, and the others to
    /// its end; returns how many the lesser ones are.
    pub cut_into: fn(&[K], &mut [K], K) -> usize,
    /// Sorts at most [`FEW`] words.
    pub sort_few: fn(&mut [K]),
}

/// Words that are sorted as a matrix.
pub const FEW: usize = ROWS * LANES;
const ROWS: usize = 16;
/// Words of a vector, of either type.
const LANES: usize = 8;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Vectors, FEW, LANES, ROWS};
    use std::arch::x86_64::*;

    /// Vectors that are read at a time when a range is cut.
    const TOGETHER: usize = ROWS / 2;
    const BLOCK: usize = TOGETHER * LANES;
    /// Words between what is read and what is asked for: the two streams turn too often for the processor to foresee them.
    const AHEAD: usize = BLOCK;
    const LINE_BYTES: usize = 64;

    /// For each mask: its lanes, then the others.
    static LANES_FIRST: [[u8; LANES]; 1 << LANES] = lanes_first();

    const fn lanes_first() -> [[u8; LANES]; 1 << LANES] {
        let mut table = [[0; LANES]; 1 << LANES];
        let mut mask = 0;
        while mask < table.len() {
            let (mut lane, mut first, mut last) = (0, 0, (mask as u32).count_ones() as usize);
            while lane < LANES {
                if mask >> lane & 1 == 1 {
                    table[mask][first] = lane as u8;
                    first += 1;
                } else {
                    table[mask][last] = lane as u8;
                    last += 1;
                }
                lane += 1;
            }
            mask += 1;
        }
        table
    }

    /// Calls `$each` with the numbers of all rows, written out: a loop would leave the rows in memory.
    macro_rules! each_row {
        ($each:expr) => {
            [
                $each(0),
                $each(1),
                $each(2),
                $each(3),
                $each(4),
                $each(5),
                $each(6),
                $each(7),
                $each(8),
                $each(9),
                $each(10),
                $each(11),
                $each(12),
                $each(13),
                $each(14),
                $each(15),
            ]
        };
    }

    macro_rules! compare {
        ($rows:ident: $($a:literal $b:literal),*) => {$(
            ($rows[$a], $rows[$b]) = ordered($rows[$a], $rows[$b]);
        )*};
    }

    macro_rules! exchange {
        ($rows:ident by $both:ident $lanes:expr; $($a:literal $b:literal),*) => {
            let (first, second) = $lanes;
            $(($rows[$a], $rows[$b]) = ($both($rows[$a], first, $rows[$b]), $both($rows[$a], second, $rows[$b]));)*
        };
    }

    macro_rules! vectors {
        ($name:ident, $K:ident, $V:ident, set1 $set1:ident, load $load:ident, store $store:ident, mask_load $mask_load:ident,
         mask_store $mask_store:ident, less $less:ident, compress $compress:ident, min $min:ident, differ $differ:ident,
         permute $permute:ident, widen $widen:ident, blend $blend:ident, both $both:ident) => {
            pub mod $name {
                use super::*;

                type VectorRows = [$V; ROWS];

                /// The functions, where the processor has the instructions.
                pub fn here() -> Option<Vectors<$K>> {
                    fn cut(words: &mut [$K], pivot: $K) -> usize {
                        assert!(words.len() >= 2 * BLOCK, "few words are not cut");
                        // SAFETY: handed out only after `has_vectors` saw the features on this processor; the length is
                        // checked.
                        unsafe { granted_cut(words, pivot) }
                    }
                    fn cut_into(words: &[$K], target: &mut [$K], pivot: $K) -> usize {
                        assert!(
                            words.len() <= target.len(),
                            "{} words into {}",
                            words.len(),
                            target.len()
                        );
                        // SAFETY: as above.
                        unsafe { granted_cut_into(words, target, pivot) }
                    }
                    fn sort_few(words: &mut [$K]) {
                        assert!(words.len() <= FEW, "{} words are not few", words.len());
                        // SAFETY: as above.
                        unsafe { granted_sort_few(words) }
                    }
                    crate::fence::shells::has_vectors().then_some(Vectors {
                        cut,
                        cut_into,
                        sort_few,
                    })
                }

                #[inline(always)]
                fn first(count: usize) -> __mmask8 {
                    ((1u32 << count) - 1) as __mmask8
                }

                /// Where the next words go: those below the pivot from `left` up, the others from `right` down.
                struct Ends {
                    base: *mut $K,
                    left: usize,
                    right: usize,
                    pivots: $V,
                }

                impl Ends {
                    #[inline]
                    #[target_feature(enable = "avx512f,avx512vl")]
                    fn of(words: &mut [$K], pivot: $K) -> Ends {
                        Ends {
                            base: words.as_mut_ptr(),
                            left: 0,
                            right: words.len(),
                            pivots: $set1(pivot as _),
                        }
                    }

                    /// Writes a whole vector at each end, of which the lanes that belong elsewhere are written again later.
                    ///
                    /// # Safety
                    /// There is room for a vector at each end, and it is not the same.
                    #[inline]
                    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma,popcnt")]
                    unsafe fn put_whole(&mut self, words: $V) {
                        let less = $less(words, self.pivots);
                        let below = less.count_ones() as usize;
                        // SAFETY: the room is the caller's word; the table has a row for every mask.
                        unsafe {
                            let lanes = $widen(_mm_loadl_epi64(LANES_FIRST[less as usize].as_ptr().cast()));
                            let words = $permute(lanes, words);
                            $store(self.base.add(self.left).cast(), words);
                            $store(self.base.add(self.right - LANES).cast(), words);
                        }
                        self.left += below;
                        self.right -= LANES - below;
                    }

                    /// Writes the lanes of `valid`, and nothing else.
                    ///
                    /// # Safety
                    /// There is room for them, at whichever end.
                    #[inline]
                    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma,popcnt")]
                    unsafe fn put(&mut self, words: $V, valid: __mmask8) {
                        let less = $less(words, self.pivots) & valid;
                        let rest = !less & valid;
                        let (below, above) = (less.count_ones() as usize, rest.count_ones() as usize);
                        // SAFETY: the room is the caller's word.
                        unsafe {
                            $mask_store(
                                self.base.add(self.left).cast(),
                                first(below),
                                $compress(less, words),
                            );
                            self.left += below;
                            self.right -= above;
                            $mask_store(
                                self.base.add(self.right).cast(),
                                first(above),
                                $compress(rest, words),
                            );
                        }
                    }
                }

                /// # Safety
                /// The processor has the features, and there are at least two blocks of words.
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma,popcnt")]
                unsafe fn granted_cut(words: &mut [$K], pivot: $K) -> usize {
                    let mut ends = Ends::of(words, pivot);
                    let base = ends.base;
                    // What lies in `next..behind` was not read yet. What was, and is not written, are the two blocks held
                    // here: as much as the gaps `left..next` and `behind..right` together.
                    let (mut next, mut behind) = (BLOCK, words.len() - BLOCK);
                    // SAFETY: of the gaps the smaller one is made larger by what is read, so that both have room for a
                    // block, and for a whole vector until all of it is written. In the end, when gaps are short, only
                    // lanes that count are written, and they fill them.
                    unsafe {
                        let (head, tail) = (block(base), block(base.add(behind)));
                        while behind - next >= BLOCK {
                            let (from, ahead) = if next - ends.left <= ends.right - behind {
                                next += BLOCK;
                                (next - BLOCK, next + AHEAD)
                            } else {
                                behind -= BLOCK;
                                (behind, behind.wrapping_sub(BLOCK + AHEAD))
                            };
                            for line in (0..BLOCK).step_by(LINE_BYTES / size_of::<$K>()) {
                                _mm_prefetch::<_MM_HINT_T0>(base.wrapping_add(ahead.wrapping_add(line)).cast());
                            }
                            for vector in block(base.add(from)) {
                                ends.put_whole(vector);
                            }
                        }
                        let mut middle = [($set1(0), 0); TOGETHER];
                        for (at, vector) in middle.iter_mut().enumerate() {
                            let from = next + at * LANES;
                            if from < behind {
                                let valid = first(LANES.min(behind - from));
                                *vector = ($mask_load(valid, base.add(from).cast()), valid);
                            }
                        }
                        for (vector, valid) in middle {
                            ends.put(vector, valid);
                        }
                        for vector in head.into_iter().chain(tail) {
                            ends.put(vector, __mmask8::MAX);
                        }
                    }
                    ends.left
                }

                /// # Safety
                /// The processor has the features, and `target` is as long as `words` or longer.
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma,popcnt")]
                unsafe fn granted_cut_into(words: &[$K], target: &mut [$K], pivot: $K) -> usize {
                    let mut ends = Ends::of(target, pivot);
                    for words in words.chunks(LANES) {
                        // SAFETY: within the words; between the ends is room for all that is not written yet. A whole
                        // vector at each end needs room for two, else one would lie over what counts of the other.
                        unsafe {
                            if words.len() == LANES && ends.right - ends.left >= 2 * LANES {
                                ends.put_whole($load(words.as_ptr().cast()));
                            } else {
                                let valid = first(words.len());
                                ends.put($mask_load(valid, words.as_ptr().cast()), valid);
                            }
                        }
                    }
                    ends.left
                }

                /// # Safety
                /// There is a block of words at `from`.
                #[inline]
                #[target_feature(enable = "avx512f,avx512vl")]
                unsafe fn block(from: *const $K) -> [$V; TOGETHER] {
                    let mut vectors = [$set1(0); TOGETHER];
                    for (at, vector) in vectors.iter_mut().enumerate() {
                        // SAFETY: within the block.
                        *vector = unsafe { $load(from.add(at * LANES).cast()) };
                    }
                    vectors
                }

                /// # Safety
                /// The processor has the features, and there are few words.
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma,popcnt")]
                unsafe fn granted_sort_few(words: &mut [$K]) {
                    let length = words.len();
                    let base = words.as_mut_ptr();
                    let greatest = $set1($K::MAX as _);
                    let read = |at: usize| {
                        let valid = first(LANES.min(length.saturating_sub(at * LANES)));
                        // SAFETY: only words that there are.
                        let words = unsafe { $mask_load(valid, base.wrapping_add(at * LANES).cast()) };
                        $blend(valid, greatest, words)
                    };
                    let mut rows: VectorRows = each_row!(read);
                    sort_columns(&mut rows);
                    mirror_lanes(&mut rows, lanes(1), 0b1010_1010);
                    merge_rows(&mut rows);
                    mirror_lanes(&mut rows, lanes(3), 0b1100_1100);
                    compare_lanes(&mut rows, lanes(1), 0b1010_1010);
                    merge_rows(&mut rows);
                    mirror_lanes(&mut rows, lanes(7), 0b1111_0000);
                    compare_lanes(&mut rows, lanes(2), 0b1100_1100);
                    compare_lanes(&mut rows, lanes(1), 0b1010_1010);
                    merge_rows(&mut rows);
                    for (half, rows) in rows.as_chunks::<LANES>().0.iter().enumerate() {
                        for (at, row) in transposed(rows).into_iter().enumerate() {
                            let from = at * ROWS + half * LANES;
                            let valid = first(LANES.min(length.saturating_sub(from)));
                            // SAFETY: only words that there are.
                            unsafe { $mask_store(base.wrapping_add(from).cast(), valid, row) };
                        }
                    }
                }

                /// VectorRows as columns: halves of pairs are exchanged, then quarters, then eighths.
                #[inline]
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma")]
                fn transposed(rows: &[$V; LANES]) -> [$V; LANES] {
                    let mut rows = *rows;
                    exchange!(rows by $both halves(4); 0 4, 1 5, 2 6, 3 7);
                    exchange!(rows by $both halves(2); 0 2, 1 3, 4 6, 5 7);
                    exchange!(rows by $both halves(1); 0 1, 2 3, 4 5, 6 7);
                    rows
                }

                /// Of two vectors: where the lanes of each new one come from, when the upper lanes of the first and the lower
                /// ones of the second, by the bit `bit` of their number, change places.
                #[inline]
                #[target_feature(enable = "avx512f,avx512vl")]
                fn halves(bit: usize) -> ($V, $V) {
                    let first: [$K; LANES] =
                        std::array::from_fn(|lane| if lane & bit == 0 { lane } else { LANES + lane - bit } as $K);
                    let second: [$K; LANES] =
                        std::array::from_fn(|lane| if lane & bit == 0 { lane + bit } else { LANES + lane } as $K);
                    // SAFETY: arrays as long as a vector.
                    unsafe { ($load(first.as_ptr().cast()), $load(second.as_ptr().cast())) }
                }

                /// The smaller and the greater words of two vectors. What differs in one of them is what differs in the other:
                /// so no second comparison is needed, of which processors do fewer at a time.
                #[inline]
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma")]
                fn ordered(a: $V, b: $V) -> ($V, $V) {
                    let low = $min(a, b);
                    (low, $differ::<0x96>(a, b, low))
                }

                /// Lanes by their number, some of its bits flipped.
                #[inline]
                #[target_feature(enable = "avx512f,avx512vl")]
                fn lanes(flipped: usize) -> $V {
                    let moved: [$K; LANES] = std::array::from_fn(|lane| (lane ^ flipped) as $K);
                    // SAFETY: an array as long as a vector.
                    unsafe { $load(moved.as_ptr().cast()) }
                }

                /// Compares each place with the one at the other end: in lane `other`, and in rows counted from the last;
                /// the greater words go to the lanes of `upper`.
                #[inline]
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma")]
                fn mirror_lanes(rows: &mut VectorRows, other: $V, upper: __mmask8) {
                    let old = *rows;
                    *rows = each_row!(|at: usize| {
                        let moved = $permute(other, old[ROWS - 1 - at]);
                        let (low, high) = ordered(old[at], moved);
                        $blend(upper, low, high)
                    });
                }

                /// Compares lanes with those at `other`; the greater words go to the lanes of `upper`.
                #[inline]
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma")]
                fn compare_lanes(rows: &mut VectorRows, other: $V, upper: __mmask8) {
                    let old = *rows;
                    *rows = each_row!(|at: usize| {
                        let moved = $permute(other, old[at]);
                        let (low, high) = ordered(old[at], moved);
                        $blend(upper, low, high)
                    });
                }

                /// The end of a bitonic merge, in which all that is compared is in one lane.
                #[inline]
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma")]
                fn merge_rows(rows: &mut VectorRows) {
                    compare!(rows:
                        0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15,
                        0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15,
                        0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15,
                        0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15
                    );
                }

                #[inline]
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,fma")]
                fn sort_columns(rows: &mut VectorRows) {
                    compare!(rows:
                        0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15,
                        0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15,
                        0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15,
                        0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15,
                        5 10, 6 9, 3 12, 13 14, 4 8, 7 11, 1 2,
                        1 4, 7 13, 2 8, 11 14,
                        2 4, 5 6, 9 10, 11 13, 3 8, 7 12,
                        6 8, 10 12, 3 5, 7 9,
                        3 4, 5 6, 7 8, 9 10, 11 12,
                        6 7, 8 9
                    );
                }
            }
        };
    }

    vectors!(
        words64, u64, __m512i, set1 _mm512_set1_epi64, load _mm512_loadu_si512, store _mm512_storeu_si512,
        mask_load _mm512_maskz_loadu_epi64, mask_store _mm512_mask_storeu_epi64, less _mm512_cmplt_epu64_mask,
        compress _mm512_maskz_compress_epi64, min _mm512_min_epu64, differ _mm512_ternarylogic_epi64,
        permute _mm512_permutexvar_epi64, widen _mm512_cvtepu8_epi64, blend _mm512_mask_blend_epi64,
        both _mm512_permutex2var_epi64
    );
    vectors!(
        words32, u32, __m256i, set1 _mm256_set1_epi32, load _mm256_loadu_si256, store _mm256_storeu_si256,
        mask_load _mm256_maskz_loadu_epi32, mask_store _mm256_mask_storeu_epi32, less _mm256_cmplt_epu32_mask,
        compress _mm256_maskz_compress_epi32, min _mm256_min_epu32, differ _mm256_ternarylogic_epi32,
        permute _mm256_permutexvar_epi32, widen _mm256_cvtepu8_epi32, blend _mm256_mask_blend_epi32,
        both _mm256_permutex2var_epi32
    );
}

/// The functions on words of 32 bits, where this processor has them.
pub fn words32() -> Option<Vectors<u32>> {
    #[cfg(target_arch = "x86_64")]
    return x86::words32::here();
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// As [`words32`], of 64 bits.
pub fn words64() -> Option<Vectors<u64>> {
    #[cfg(target_arch = "x86_64")]
    return x86::words64::here();
    #[cfg(not(target_arch = "x86_64"))]
    None
}
