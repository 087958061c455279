//! LZW as TIFF has it: codes of 9 to 12 bits, the highest bit first, a code wider one entry early (TIFF 6.0, section 13).

const CLEAR: u16 = 256;
const END: u16 = 257;
const FIRST: usize = 258;
const WIDTHS: std::ops::RangeInclusive<u32> = 9..=12;
const ENTRIES: usize = 1 << *WIDTHS.end();

/// A string of the table, by its place in what is decoded already.
#[derive(Clone, Copy, Default)]
struct LzwString {
    start: u32,
    length: u32,
}

/// Codes of a growing width.
struct LzwCodes<'a> {
    bytes: std::slice::Iter<'a, u8>,
    bits: u32,
    count: u32,
    width: u32,
}

impl LzwCodes<'_> {
    fn next(&mut self) -> Option<u16> {
        while self.count < self.width {
            self.bits = self.bits << 8 | u32::from(*self.bytes.next()?);
            self.count += 8;
        }
        self.count -= self.width;
        Some((self.bits >> self.count & ((1 << self.width) - 1)) as u16)
    }
}

/// Undoes LZW into the front of `out`; gives how many bytes came.
pub(super) fn unlzw(bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
    if matches!(bytes, [0, second, ..] if second & 1 == 1) {
        return Err("lzw: codes with the lowest bit first, as before TIFF 6.0, are not supported".into());
    }
    if u32::try_from(out.len()).is_err() {
        return Err("lzw: a chunk of 4 GiB or more is not supported".into());
    }
    let mut table = vec![LzwString::default(); ENTRIES];
    let mut codes = LzwCodes {
        bytes: bytes.iter(),
        bits: 0,
        count: 0,
        width: *WIDTHS.start(),
    };
    let (mut length, mut entries) = (0, FIRST);
    let mut before: Option<LzwString> = None;
    while let Some(code) = codes.next() {
        match code {
            END => break,
            CLEAR => {
                (codes.width, entries, before) = (*WIDTHS.start(), FIRST, None);
                continue;
            }
            _ => {}
        }
        // The string that the last code begins goes on with the first byte of this one: in what is decoded they are neighbours.
        let mut grown = false;
        if let Some(before) = before.filter(|_| entries < ENTRIES) {
            table[entries] = LzwString {
                start: before.start,
                length: before.length + 1,
            };
            entries += 1;
            grown = true;
        }
        let string = match usize::from(code) {
            literal @ 0..256 => {
                let limit = out.len();
                *out.get_mut(length).ok_or_else(|| too_large(limit))? = literal as u8;
                1
            }
            code if code < entries => {
                let LzwString { start, length: more } = table[code];
                let (start, more) = (start as usize, more as usize);
                if length + more > out.len() {
                    return Err(too_large(out.len()));
                }
                repeat(out, start, length, more);
                more
            }
            code => return Err(format!("lzw: code {code} of a table of {entries}")),
        };
        before = Some(LzwString {
            start: length as u32,
            length: string as u32,
        });
        length += string;
        let is_full = grown && entries + 1 == 1 << codes.width && codes.width < *WIDTHS.end();
        codes.width += u32::from(is_full);
    }
    Ok(length)
}

fn too_large(limit: usize) -> String {
    format!("lzw: a chunk is larger than the {limit} bytes expected")
}

/// Copies `more` bytes from `start` to `length`, which may lie within them: then they repeat.
fn repeat(out: &mut [u8], start: usize, length: usize, more: usize) {
    if start + more <= length {
        out.copy_within(start..start + more, length);
    } else {
        for at in 0..more {
            out[length + at] = out[start + at];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// The encoder of TIFF 6.0.
    fn lzw(bytes: &[u8]) -> Vec<u8> {
        let (mut out, mut bits, mut count, mut width) = (vec![], 0u32, 0, 9);
        let mut put = |code: u16, width: u32| {
            bits = bits << width | u32::from(code);
            count += width;
            while count >= 8 {
                count -= 8;
                out.push((bits >> count) as u8);
            }
            bits &= (1 << count) - 1;
        };
        put(CLEAR, 9);
        let mut table: HashMap<Vec<u8>, u16> = HashMap::new();
        let code_of = |string: &[u8], table: &HashMap<Vec<u8>, u16>| match string {
            [byte] => u16::from(*byte),
            string => table[string],
        };
        let mut string: Vec<u8> = vec![];
        for &byte in bytes {
            let longer = [&string[..], &[byte]].concat();
            if longer.len() == 1 || table.contains_key(&longer) {
                string = longer;
                continue;
            }
            put(code_of(&string, &table), width);
            table.insert(longer, (FIRST + table.len()) as u16);
            let entries = FIRST + table.len();
            if entries == 4094 {
                put(CLEAR, width);
                table.clear();
                width = 9;
            } else if entries == 1 << width {
                width += 1;
            }
            string = vec![byte];
        }
        if !string.is_empty() {
            put(code_of(&string, &table), width);
            // The decoder has one entry more by now.
            let is_wider = !table.is_empty() && FIRST + table.len() + 1 == 1 << width;
            width += u32::from(is_wider);
        }
        put(END, width);
        put(0, 8);
        out
    }

    fn decoded(bytes: &[u8], length: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0xa5; length];
        let count = unlzw(bytes, &mut out)?;
        out.truncate(count);
        Ok(out)
    }

    #[test]
    fn the_example_of_the_specification_is_read() {
        // TIFF 6.0, page 60: 7 7 7 8 8 7 7 6 6 is 256 7 258 8 8 258 6 6 257, nine bits each.
        let codes = [256u32, 7, 258, 8, 8, 258, 6, 6, 257];
        let bits: String = codes.iter().map(|code| format!("{code:09b}")).collect();
        let bytes: Vec<u8> = bits
            .as_bytes()
            .chunks(8)
            .map(|byte| u8::from_str_radix(&format!("{:0<8}", std::str::from_utf8(byte).unwrap()), 2).unwrap())
            .collect();
        assert_eq!(decoded(&bytes, 100).unwrap(), [7, 7, 7, 8, 8, 7, 7, 6, 6]);
    }

    #[test]
    fn long_chunks_come_back_through_full_tables() {
        let long: Vec<u8> = (0..60_000u32).map(|at| (at * at / 77 % 251) as u8).collect();
        for bytes in [&long[..], &[7; 50_000], &[], &[1]] {
            assert!(decoded(&lzw(bytes), bytes.len()).unwrap() == bytes);
        }
        let refusal = decoded(&lzw(&long), 59_999).unwrap_err();
        assert_eq!(refusal, "lzw: a chunk is larger than the 59999 bytes expected");
        assert!(decoded(&[0, 1, 2], 10).unwrap_err().contains("lowest bit first"));
    }

    proptest! {
        #[test]
        fn chunks_come_back(bytes in proptest::collection::vec(0u8..4, 0..3000)) {
            prop_assert_eq!(decoded(&lzw(&bytes), bytes.len()).unwrap(), bytes);
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), length in 0usize..600) {
            let _ = decoded(&bytes, length);
        }
    }
}
