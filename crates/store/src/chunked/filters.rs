//! Filters of HDF5 beside its compressors: a checksum, and LZF.

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
