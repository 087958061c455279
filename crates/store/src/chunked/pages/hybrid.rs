//! HybridRuns of one number, and numbers of a few bits each, one after the other (the specification's "RLE").

use super::header::varint;

/// Numbers of a few bits that are unpacked together.
const GROUP: usize = 8;
/// The most bits of a number.
pub(super) const WIDTH_MAX: u32 = 32;
/// Bytes of a group of the widest numbers, and those that one load reads beyond them.
const GROUP_BYTES: usize = GROUP * WIDTH_MAX as usize / 8 + 8;

/// Numbers that come next.
pub(super) enum HybridRun<'a> {
    Same {
        number: u32,
        count: usize,
    },
    /// Groups of eight, and how many of their numbers count.
    Packed {
        bytes: &'a [u8],
        count: usize,
    },
}

/// The runs of so many numbers of `width` bits.
pub(super) struct HybridRuns<'a> {
    rest: &'a [u8],
    width: u32,
    left: usize,
}

impl<'a> HybridRuns<'a> {
    /// # Errors
    /// More bits than a number has.
    pub fn new(bytes: &'a [u8], width: u32, count: usize) -> Result<HybridRuns<'a>, String> {
        if width > WIDTH_MAX {
            return Err(format!("parquet: numbers of {width} bits"));
        }
        Ok(HybridRuns {
            rest: bytes,
            width,
            left: count,
        })
    }

    fn next_run(&mut self) -> Option<HybridRun<'a>> {
        let (head, rest) = varint(self.rest)?;
        let length = usize::try_from(head >> 1).ok()?;
        if head & 1 == 0 {
            let bytes = self.width.div_ceil(8) as usize;
            let (number, rest) = rest.split_at_checked(bytes)?;
            let mut word = [0; 4];
            word[..bytes].copy_from_slice(number);
            let count = length.min(self.left);
            (self.rest, self.left) = (rest, self.left - count);
            let number = u32::from_le_bytes(word);
            return Some(HybridRun::Same { number, count });
        }
        let wanted = self.left.div_ceil(GROUP).min(length) * self.width as usize;
        // A writer may leave out what no number needs of the last group.
        let have = rest.len().min(wanted);
        let count = length.saturating_mul(GROUP).min(self.left);
        if have * 8 < count.checked_mul(self.width as usize)? {
            return None;
        }
        let (bytes, _) = rest.split_at(have);
        let whole = length.saturating_mul(self.width as usize).min(rest.len());
        (self.rest, self.left) = (&rest[whole..], self.left - count);
        Some(HybridRun::Packed { bytes, count })
    }
}

impl<'a> Iterator for HybridRuns<'a> {
    type Item = Result<HybridRun<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        // A run of nothing would not end.
        let before = self.rest.len();
        match self.next_run() {
            Some(run) if self.rest.len() < before => Some(Ok(run)),
            _ => {
                self.left = 0;
                Some(Err("parquet: numbers of a page are cut off".into()))
            }
        }
    }
}

/// Gives `each` group of eight numbers of `width` bits to a function, with their place; of the last, those behind `count` too.
pub(super) fn unpack(
    bytes: &[u8],
    width: u32,
    count: usize,
    each: &mut impl FnMut(usize, &[u32; GROUP]) -> Result<(), String>,
) -> Result<(), String> {
    macro_rules! by_width {
        ($($bits:literal)*) => {
            match width {
                $($bits => unpack_by::<$bits>(bytes, count, each),)*
                _ => unpack_by::<WIDTH_MAX>(bytes, count, each),
            }
        };
    }
    by_width!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
}

fn unpack_by<const WIDTH: u32>(
    bytes: &[u8],
    count: usize,
    each: &mut impl FnMut(usize, &[u32; GROUP]) -> Result<(), String>,
) -> Result<(), String> {
    let (width, mut numbers) = (WIDTH as usize, [0; GROUP]);
    for group in 0..count.div_ceil(GROUP) {
        let begin = group * width;
        match bytes.get(begin..begin + width + 8) {
            Some(words) => unpack_group::<WIDTH>(words, &mut numbers),
            None => {
                let mut padded = [0; GROUP_BYTES];
                let last = bytes.get(begin..).unwrap_or(&[]);
                let last = &last[..last.len().min(width)];
                padded[..last.len()].copy_from_slice(last);
                unpack_group::<WIDTH>(&padded[..width + 8], &mut numbers);
            }
        }
        each(group * GROUP, &numbers)?;
    }
    Ok(())
}

#[inline(always)]
fn unpack_group<const WIDTH: u32>(words: &[u8], numbers: &mut [u32; GROUP]) {
    let (width, mask) = (WIDTH as usize, (1u64 << WIDTH) - 1);
    for (at, number) in numbers.iter_mut().enumerate() {
        let bit = at * width;
        let word: [u8; 8] = words[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
        *number = (u64::from_le_bytes(word) >> (bit % 8) & mask) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers in one packed run.
    fn packed(numbers: &[u32], width: u32) -> Vec<u8> {
        let groups = numbers.len().div_ceil(GROUP);
        let mut bytes = vec![(groups << 1 | 1) as u8];
        let begin = bytes.len();
        bytes.resize(begin + groups * width as usize, 0);
        for (at, number) in numbers.iter().enumerate() {
            for bit in 0..width as usize {
                let place = at * width as usize + bit;
                bytes[begin + place / 8] |= ((number >> bit & 1) as u8) << (place % 8);
            }
        }
        bytes
    }

    fn numbers(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>, String> {
        let mut all = vec![];
        for run in HybridRuns::new(bytes, width, count)? {
            match run? {
                HybridRun::Same { number, count } => all.extend(std::iter::repeat_n(number, count)),
                HybridRun::Packed { bytes, count } => {
                    let before = all.len();
                    unpack(bytes, width, count, &mut |_, group| {
                        all.extend(group);
                        Ok(())
                    })?;
                    all.truncate(before + count);
                }
            }
        }
        Ok(all)
    }

    #[test]
    fn the_specification_has_this_example() {
        // "Parquet encoding definitions": 0 to 7 in three bits are 0x88, 0xC6, 0xFA.
        assert_eq!(
            numbers(&[3, 0x88, 0xc6, 0xfa], 3, 8).unwrap(),
            (0..8).collect::<Vec<_>>()
        );
        assert_eq!(
            numbers(&[200, 1, 5, 3, 0x88, 0xc6, 0xfa], 3, 103).unwrap()[98..],
            [5, 5, 0, 1, 2]
        );
        assert!(numbers(&[3, 0x88, 0xc6], 3, 8).is_err());
        assert!(numbers(&[0, 5], 3, 8).is_err());
        assert!(numbers(&[], 0, 1).is_err());
        assert!(HybridRuns::new(&[], 33, 1).is_err());
    }

    proptest! {
        #[test]
        fn packed_numbers_are_as_they_were(width in 0u32..=32, seed in proptest::collection::vec(any::<u32>(), 0..100)) {
            let mask = (1u64 << width) - 1;
            let all: Vec<u32> = seed.iter().map(|number| (u64::from(*number) & mask) as u32).collect();
            prop_assert_eq!(numbers(&packed(&all, width), width, all.len()).unwrap(), all);
        }

        #[test]
        fn any_bytes_are_numbers_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            width in 0u32..=32,
            count in 0usize..300,
        ) {
            if let Ok(all) = numbers(&bytes, width, count) {
                prop_assert_eq!(all.len(), count);
            }
        }
    }
}
