//! Integers by their differences, packed in blocks (the specification's "DELTA_BINARY_PACKED"; Lemire and Boytsov, "Decoding
//! billions of integers per second through vectorization", 2015).

use super::header::{unzigzag, varint};

/// The most numbers of a block: writers have 128.
const BLOCK_MAX: usize = 1 << 20;
/// Bits of the widest difference.
const BITS: usize = 64;

fn damaged() -> String {
    "parquet: differences of a page are damaged".into()
}

fn number<'a>(rest: &mut &'a [u8]) -> Result<u64, String> {
    let bytes: &'a [u8] = rest;
    let (number, behind) = varint(bytes).ok_or_else(damaged)?;
    *rest = behind;
    Ok(number)
}

/// Gives `each` of so many integers to a function, in order.
pub(super) fn undelta(
    bytes: &[u8],
    count: usize,
    each: &mut impl FnMut(usize, i64) -> Result<(), String>,
) -> Result<(), String> {
    let mut rest = bytes;
    let block = usize::try_from(number(&mut rest)?).map_err(|_| damaged())?;
    let minis = usize::try_from(number(&mut rest)?).map_err(|_| damaged())?;
    let total = number(&mut rest)?;
    let mut last = unzigzag(number(&mut rest)?);
    if minis == 0 || block == 0 || block > BLOCK_MAX || !block.is_multiple_of(minis) || total != count as u64 {
        return Err(damaged());
    }
    if count == 0 {
        return Ok(());
    }
    let length = block / minis;
    each(0, last)?;
    let mut at = 1;
    while at < count {
        let least = unzigzag(number(&mut rest)?);
        let (widths, behind) = rest.split_at_checked(minis).ok_or_else(damaged)?;
        rest = behind;
        for &width in widths {
            if at == count {
                break;
            }
            let (width, taken) = (usize::from(width), length.min(count - at));
            if width > BITS {
                return Err(damaged());
            }
            let whole = (length * width).div_ceil(8);
            if rest.len() * 8 < taken * width {
                return Err(damaged());
            }
            let (packed, behind) = rest.split_at(whole.min(rest.len()));
            rest = behind;
            for place in 0..taken {
                let difference = bits(packed, place * width, width);
                last = last.wrapping_add(least).wrapping_add(difference as i64);
                each(at, last)?;
                at += 1;
            }
        }
    }
    Ok(())
}

/// So many bits from a place on, the lowest first.
fn bits(bytes: &[u8], start: usize, width: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let first = start / 8;
    let word = match bytes.get(first..first + 16) {
        Some(word) => u128::from_le_bytes(word.try_into().expect("sixteen bytes")),
        None => {
            let mut padded = [0; 16];
            let last = bytes.get(first..).unwrap_or(&[]);
            padded[..last.len()].copy_from_slice(last);
            u128::from_le_bytes(padded)
        }
    };
    (word >> (start % 8)) as u64 & (u64::MAX >> (BITS - width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn integers(bytes: &[u8], count: usize) -> Result<Vec<i64>, String> {
        let mut all = vec![];
        undelta(bytes, count, &mut |at, integer| {
            assert_eq!(at, all.len());
            all.push(integer);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn the_specification_has_these_examples() {
        // 1 to 5: blocks of 8 in one part; differences of 1, of no bits.
        assert_eq!(integers(&[8, 1, 5, 2, 2, 0], 5).unwrap(), [1, 2, 3, 4, 5]);
        // 7, 5, 3, 1, 2, 3, 4, 5: the least difference is -2, the others 0, 0, 0, 3, 3, 3, 3 above it.
        let bytes = [8, 1, 8, 14, 3, 2, 0b1100_0000, 0b0011_1111];
        assert_eq!(integers(&bytes, 8).unwrap(), [7, 5, 3, 1, 2, 3, 4, 5]);
        for cut in 0..bytes.len() {
            assert!(integers(&bytes[..cut], 8).is_err());
        }
        assert!(integers(&bytes, 9).is_err());
        assert!(integers(&[0, 1, 2, 2, 2, 0], 2).is_err());
        assert!(integers(&[8, 0, 2, 2, 2, 0], 2).is_err());
        assert!(integers(&[8, 1, 2, 2, 2, 65, 0, 0, 0, 0, 0, 0, 0, 0, 0], 2).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_integers_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64), count in 0usize..300) {
            if let Ok(all) = integers(&bytes, count) {
                prop_assert_eq!(all.len(), count);
            }
        }
    }
}
