//! GapSums of gaps of one to four bytes by whole vectors.
//!
//! With AVX-512 VBMI2 the bytes of sixteen gaps are expanded to their places at once; with AVX2 those of four are shuffled
//! by a table (Lemire, Kurz, Rupp, "Stream VByte: faster byte-oriented integer compression", 2018, section 3).

/// Adds up gaps: for each, two bits of `codes` tell its bytes less one, the lowest bits first, and `gaps` has those bytes,
/// the lowest first. Puts the sums behind `last` into `out`, whose lower 32 bits are kept; gives the bytes of the gaps, and
/// the last sum. With `is_first` the first gap is passed over and counts as 0. Nothing where there are too few bytes. More
/// codes than there are sums do not matter; fewer panic.
pub type GapSums = fn(codes: &[u8], gaps: &[u8], last: u64, is_first: bool, out: &mut [u32]) -> Option<(usize, u64)>;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::GapSums;

    /// Gaps of a code byte, and the bytes of them at most.
    const GROUP: usize = 4;
    const GROUP_BYTES: usize = 16;
    /// Gaps of a wide vector.
    const WIDE: usize = 16;
    /// Sixteen gaps without these bits do not sum to more than a word holds.
    const LARGE: i32 = 0xf000_0000_u32 as i32;

    /// For each code: which byte of the gaps goes to which place; what has the top bit set stays 0.
    static PLACES: [[u8; GROUP_BYTES]; 256] = places();

    const fn places() -> [[u8; GROUP_BYTES]; 256] {
        let mut table = [[0x80; GROUP_BYTES]; 256];
        let mut code = 0;
        while code < table.len() {
            let (mut gap, mut from) = (0, 0);
            while gap < GROUP {
                let bytes = (code >> (2 * gap) & 3) + 1;
                let mut byte = 0;
                while byte < bytes {
                    table[code][GROUP * gap + byte] = (from + byte) as u8;
                    byte += 1;
                }
                from += bytes;
                gap += 1;
            }
            code += 1;
        }
        table
    }

    /// Bytes of the gaps of a code.
    fn bytes_of(code: u8) -> usize {
        let pairs = (code & 0x33) + (code >> 2 & 0x33);
        GROUP + usize::from((pairs & 0xf) + (pairs >> 4))
    }

    /// Adds gaps to a sum, one after the other.
    fn slowly(mut last: u64, gaps: &[u32], out: &mut [u32]) -> u64 {
        for (sum, gap) in out.iter_mut().zip(gaps) {
            last += u64::from(*gap);
            *sum = last as u32;
        }
        last
    }

    /// For each of sixteen codes of two bits, which of four bytes a gap has.
    #[inline]
    #[target_feature(enable = "bmi2")]
    fn bytes_there(codes: u32) -> u64 {
        const ONES: u64 = 0x1111_1111_1111_1111;
        let spread = _pdep_u64(u64::from(codes), 3 * ONES);
        let (low, high) = (spread & ONES, spread >> 1 & ONES);
        ONES | (low | high) << 1 | high << 2 | (low & high) << 3
    }

    /// What sixteen gaps are added to.
    struct Wide<'a> {
        gaps: &'a [u8],
        at: usize,
        last: u64,
        counted: __mmask16,
    }

    impl Wide<'_> {
        /// The sums of the gaps of sixteen codes, of which the bytes in `all` count; nothing where there are too few.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,avx2,bmi2,popcnt")]
        fn sums(&mut self, codes: u32, all: u64) -> Option<__m512i> {
            let there = bytes_there(codes) & all;
            let bytes = there.count_ones() as usize;
            let rest = &self.gaps[self.at..];
            let packed = if let Some(rest) = rest.first_chunk::<64>() {
                // SAFETY: sixty-four bytes.
                unsafe { _mm512_loadu_si512(rest.as_ptr().cast()) }
            } else {
                // SAFETY: only bytes that there are.
                unsafe { _mm512_maskz_loadu_epi8((1 << rest.len()) - 1, rest.as_ptr().cast()) }
            };
            if bytes > rest.len() {
                return None;
            }
            self.at += bytes;
            let gaps = _mm512_maskz_mov_epi32(self.counted, _mm512_maskz_expand_epi8(there, packed));
            self.counted = !0;
            let before = self.last;
            if _mm512_test_epi32_mask(gaps, _mm512_set1_epi32(LARGE)) != 0 {
                return Some(self.slowly(gaps));
            }
            let zero = _mm512_setzero_si512();
            let sums = _mm512_add_epi32(gaps, _mm512_alignr_epi32(gaps, zero, 15));
            let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 14));
            let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 12));
            let sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 8));
            // Gaps that do not count are 0.
            let sum = _mm_extract_epi32::<3>(_mm512_extracti32x4_epi32::<3>(sums));
            self.last += u64::from(sum as u32);
            Some(_mm512_add_epi32(sums, _mm512_set1_epi32(before as i32)))
        }

        /// The same, where the sums may be more than a word holds.
        #[cold]
        #[target_feature(enable = "avx512f")]
        fn slowly(&mut self, gaps: __m512i) -> __m512i {
            let (mut each, mut sums) = ([0; WIDE], [0; WIDE]);
            // SAFETY: as many as a vector has.
            unsafe { _mm512_storeu_si512(each.as_mut_ptr().cast(), gaps) };
            self.last = slowly(self.last, &each, &mut sums);
            // SAFETY: as above.
            unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) }
        }
    }

    /// As [`GapSums`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,avx2,bmi2,popcnt")]
    fn wide(codes: &[u8], gaps: &[u8], last: u64, is_first: bool, out: &mut [u32]) -> Option<(usize, u64)> {
        assert!(codes.len() >= out.len().div_ceil(GROUP), "fewer codes than gaps");
        let counted = !u16::from(is_first);
        let mut wide = Wide {
            gaps,
            at: 0,
            last,
            counted,
        };
        let (codes, ends) = codes.as_chunks::<GROUP>();
        let (whole, rest) = out.as_chunks_mut::<WIDE>();
        for (sums, codes) in whole.iter_mut().zip(codes) {
            let found = wide.sums(u32::from_le_bytes(*codes), u64::MAX)?;
            // SAFETY: as many as a vector has.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), found) };
        }
        if !rest.is_empty() {
            let codes = match codes.get(whole.len()) {
                Some(codes) => u32::from_le_bytes(*codes),
                // A copy of so few bytes would be a call, and a wait for what it wrote.
                None => ends.iter().rev().fold(0, |word, code| word << 8 | u32::from(*code)),
            };
            let found = wide.sums(codes, (1 << (GROUP * rest.len())) - 1)?;
            let asked = (1u32 << rest.len()) - 1;
            // SAFETY: only sums that are asked for.
            unsafe { _mm512_mask_storeu_epi32(rest.as_mut_ptr().cast(), asked as u16, found) };
        }
        Some((wide.at, wide.last))
    }

    /// As [`GapSums`].
    #[target_feature(enable = "avx2")]
    fn narrow(codes: &[u8], gaps: &[u8], mut last: u64, is_first: bool, out: &mut [u32]) -> Option<(usize, u64)> {
        assert!(codes.len() >= out.len().div_ceil(GROUP), "fewer codes than gaps");
        let mut counted = _mm_set_epi32(-1, -1, -1, if is_first { 0 } else { -1 });
        let mut at = 0;
        for (sums, code) in out.chunks_mut(GROUP).zip(codes) {
            let rest = &gaps[at..];
            let mut few = [0; GROUP_BYTES];
            let packed = rest.first_chunk::<GROUP_BYTES>().unwrap_or_else(|| {
                few[..rest.len()].copy_from_slice(rest);
                &few
            });
            // The codes of gaps that are not there do not count.
            let code = code & (0xff >> (2 * (GROUP - sums.len())));
            let bytes = bytes_of(code) - (GROUP - sums.len());
            if bytes > rest.len() {
                return None;
            }
            at += bytes;
            // SAFETY: sixteen bytes each.
            let each = unsafe {
                let places = _mm_loadu_si128(PLACES[usize::from(code)].as_ptr().cast());
                _mm_shuffle_epi8(_mm_loadu_si128(packed.as_ptr().cast()), places)
            };
            let mut each = _mm_and_si128(each, counted);
            if sums.len() < GROUP {
                let valid = _mm_cmpgt_epi32(_mm_set1_epi32(sums.len() as i32), _mm_set_epi32(3, 2, 1, 0));
                each = _mm_and_si128(each, valid);
            }
            counted = _mm_set1_epi32(-1);
            if _mm_testz_si128(each, _mm_set1_epi32(LARGE)) == 0 {
                let mut gaps = [0; GROUP];
                // SAFETY: as many as a vector has.
                unsafe { _mm_storeu_si128(gaps.as_mut_ptr().cast(), each) };
                last = slowly(last, &gaps, sums);
                continue;
            }
            let each = _mm_add_epi32(each, _mm_slli_si128::<4>(each));
            let each = _mm_add_epi32(each, _mm_slli_si128::<8>(each));
            let behind = _mm_add_epi32(each, _mm_set1_epi32(last as i32));
            match sums.as_chunks_mut::<GROUP>() {
                // SAFETY: as many as a vector has.
                ([sums], _) => unsafe { _mm_storeu_si128(sums.as_mut_ptr().cast(), behind) },
                _ => {
                    let mut found = [0; GROUP];
                    // SAFETY: as many as a vector has.
                    unsafe { _mm_storeu_si128(found.as_mut_ptr().cast(), behind) };
                    sums.iter_mut().zip(found).for_each(|(sum, found)| *sum = found);
                }
            }
            last += u64::from(_mm_extract_epi32::<3>(each) as u32);
        }
        Some((at, last))
    }

    /// The functions that this processor has instructions for, the best one last.
    pub fn here() -> impl Iterator<Item = GapSums> {
        let has_wide = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        let narrow: GapSums = |codes, gaps, last, is_first, out| {
            // SAFETY: handed out only after the features were seen on this processor.
            unsafe { narrow(codes, gaps, last, is_first, out) }
        };
        let wide: GapSums = |codes, gaps, last, is_first, out| {
            // SAFETY: as above.
            unsafe { wide(codes, gaps, last, is_first, out) }
        };
        let has_narrow = is_x86_feature_detected!("avx2");
        let some = [(has_narrow, narrow), (has_narrow && has_wide, wide)];
        some.into_iter().filter(|(is_there, _)| *is_there).map(|(_, sums)| sums)
    }
}

/// The functions that this processor has instructions for, the best one last.
pub fn here() -> impl Iterator<Item = GapSums> {
    #[cfg(target_arch = "x86_64")]
    return x86::here();
    #[cfg(not(target_arch = "x86_64"))]
    return std::iter::empty();
}
