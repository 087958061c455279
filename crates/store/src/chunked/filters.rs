//! Filters of HDF5 beside its compressors: the order of bytes, a checksum, and LZF.

/// Bytes of elements of `item`, all first ones first, as they were; bytes beyond whole elements come last.
pub(super) fn unshuffle(bytes: &[u8], item: usize, out: &mut [u8]) {
    match item {
        2 => unshuffle_by::<2>(bytes, out),
        4 => unshuffle_by::<4>(bytes, out),
        8 => unshuffle_by::<8>(bytes, out),
        16 => unshuffle_by::<16>(bytes, out),
        0 | 1 => out.copy_from_slice(bytes),
        item => {
            let count = bytes.len() / item;
            for (byte, plane) in bytes[..count * item].chunks_exact(count.max(1)).enumerate() {
                for (element, value) in out.chunks_exact_mut(item).zip(plane) {
                    element[byte] = *value;
                }
            }
            out[count * item..].copy_from_slice(&bytes[count * item..]);
        }
    }
}

/// The same for a size that the compiler knows.
fn unshuffle_by<const ITEM: usize>(bytes: &[u8], out: &mut [u8]) {
    let count = bytes.len() / ITEM;
    let planes: [&[u8]; ITEM] = std::array::from_fn(|byte| &bytes[byte * count..][..count]);
    let (elements, rest) = out.as_chunks_mut::<ITEM>();
    for (at, element) in elements.iter_mut().enumerate() {
        *element = std::array::from_fn(|byte| planes[byte][at]);
    }
    rest.copy_from_slice(&bytes[count * ITEM..]);
}

/// How many bytes come before the checksum in the last four, which is right: Fletcher's sums over words of 16 bits, the first byte
/// the upper one. HDF5 before 1.6.3 has the bytes of both sums the other way round.
pub(super) fn check_fletcher(bytes: &[u8]) -> Result<usize, String> {
    let (content, stored) = bytes
        .split_last_chunk::<4>()
        .ok_or("fletcher32: a chunk is too short for its checksum")?;
    let sum = fletcher32(content).to_le_bytes();
    let turned = [sum[1], sum[0], sum[3], sum[2]];
    match sum == *stored || turned == *stored {
        true => Ok(content.len()),
        false => Err("fletcher32: a checksum does not match".into()),
    }
}

fn fletcher32(bytes: &[u8]) -> u32 {
    /// Words that are added before sums may overflow.
    const WORDS: usize = 360;
    let reduced = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut first, mut second) = (0u32, 0u32);
    let (words, last) = bytes.as_chunks::<2>();
    for words in words.chunks(WORDS) {
        for &word in words {
            first += u32::from(u16::from_be_bytes(word));
            second += first;
        }
        (first, second) = (reduced(first), reduced(second));
    }
    if let [last] = last {
        first += u32::from(*last) << 8;
        second += first;
        (first, second) = (reduced(first), reduced(second));
    }
    reduced(second) << 16 | reduced(first)
}

/// LZF (Lehmann's liblzf, as h5py writes it): runs as they are, and copies of what came before.
pub(super) fn unlzf(bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let damaged = || String::from("lzf: a chunk is damaged");
    let limit = out.len();
    let too_large = || format!("lzf: a chunk is larger than the {limit} bytes expected");
    let (mut rest, mut to) = (bytes, 0);
    while let Some((&control, behind)) = rest.split_first() {
        let control = usize::from(control);
        if control < 32 {
            let (run, behind) = behind.split_at_checked(control + 1).ok_or_else(damaged)?;
            out.get_mut(to..to + run.len())
                .ok_or_else(too_large)?
                .copy_from_slice(run);
            (rest, to) = (behind, to + run.len());
            continue;
        }
        rest = behind;
        let mut number = || {
            let (&number, behind) = rest.split_first()?;
            rest = behind;
            Some(usize::from(number))
        };
        let more = if control >> 5 == 7 {
            number().ok_or_else(damaged)?
        } else {
            0
        };
        let length = (control >> 5) + more + 2;
        let back = (control & 31) << 8 | number().ok_or_else(damaged)?;
        let begin = to.checked_sub(back + 1).ok_or_else(damaged)?;
        if to + length > limit {
            return Err(too_large());
        }
        // Bytes that are copied may be those written just before.
        (0..length).for_each(|at| out[to + at] = out[begin + at]);
        to += length;
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shuffled_bytes_come_back_for_every_size() {
        for item in [1, 2, 3, 4, 7, 8, 12, 16] {
            let bytes: Vec<u8> = (0..item * 37 + 3).map(|at| (at * 7) as u8).collect();
            let whole = bytes.len() / item * item;
            let planes = (0..item).flat_map(|byte| bytes[..whole].iter().skip(byte).step_by(item).copied());
            let shuffled: Vec<u8> = planes.chain(bytes[whole..].iter().copied()).collect();
            let mut out = vec![0; bytes.len()];
            unshuffle(&shuffled, item, &mut out);
            assert_eq!(out, bytes, "{item}");
        }
    }

    #[test]
    fn sums_are_those_of_fletcher() {
        // By paper and pencil: 0x0102 + 0x0304 = 0x0406, and 0x0102 + 0x0406 = 0x0508.
        assert_eq!(fletcher32(&[1, 2, 3, 4]), 0x0508_0406);
        assert_eq!(fletcher32(&[1, 2, 3]), (0x0102 + 0x0402) << 16 | 0x0402);
        let stored = [1, 2, 3, 4, 0x06, 0x04, 0x08, 0x05];
        assert_eq!(check_fletcher(&stored), Ok(4));
        assert_eq!(check_fletcher(&[1, 2, 3, 4, 0x04, 0x06, 0x05, 0x08]), Ok(4));
        assert!(check_fletcher(&[1, 2, 3, 5, 0x06, 0x04, 0x08, 0x05]).is_err());
        assert!(check_fletcher(&[1, 2, 3]).is_err());
    }

    #[test]
    fn copies_of_lzf_may_reach_into_themselves() {
        let mut out = [0; 16];
        // "ab" as it is, then 8 bytes from 2 back.
        let length = unlzf(&[1, b'a', b'b', 6 << 5, 1], &mut out);
        assert_eq!(length, Ok(10));
        assert_eq!(&out[..10], b"ababababab");
        assert!(unlzf(&[1, b'a', b'b', 6 << 5, 2], &mut out).is_err());
        assert!(unlzf(&[1, b'a', b'b', 7 << 5, 255, 1], &mut out)
            .unwrap_err()
            .contains("larger"));
        assert!(unlzf(&[5, b'a'], &mut out).is_err());
    }

    proptest! {
        #[test]
        fn damaged_lzf_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), room in 0usize..300) {
            let _ = unlzf(&bytes, &mut vec![0; room]);
        }
    }
}
