//! Rows of numbers stored as differences from the number before (TIFF's predictor 2, numcodecs' delta).

/// How rows were told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Numbers of a row; 0 where all numbers are one.
    pub row: u32,
    /// The distance to the number before: samples of a pixel.
    pub distance: u32,
    /// Bytes of a number: 1, 2, 4 or 8.
    pub item: u32,
    pub big_endian: bool,
}

impl Differences {
    /// Adds up the rows into the front of `out`.
    pub fn decode(self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let (item, distance) = (self.item as usize, self.distance as usize);
        let row = match self.row {
            0 => bytes.len(),
            row => row as usize * item,
        };
        if row == 0 {
            return Ok(0);
        }
        if !bytes.len().is_multiple_of(row) || !row.is_multiple_of(item) {
            return Err(format!("differences: {} bytes are no rows of {row}", bytes.len()));
        }
        let limit = out.len();
        let out = out
            .get_mut(..bytes.len())
            .ok_or_else(|| format!("differences: a chunk is larger than the {limit} bytes expected"))?;
        out.copy_from_slice(bytes);
        macro_rules! add_up {
            ($Number:ty, $from:ident, $to:ident) => {
                for row in out.chunks_exact_mut(row) {
                    let numbers = row.as_chunks_mut::<{ size_of::<$Number>() }>().0;
                    for at in distance..numbers.len() {
                        let sum = <$Number>::$from(numbers[at]).wrapping_add(<$Number>::$from(numbers[at - distance]));
                        numbers[at] = sum.$to();
                    }
                }
            };
        }
        match (item, self.big_endian) {
            (1, _) => add_up!(u8, from_le_bytes, to_le_bytes),
            (2, false) => add_up!(u16, from_le_bytes, to_le_bytes),
            (2, true) => add_up!(u16, from_be_bytes, to_be_bytes),
            (4, false) => add_up!(u32, from_le_bytes, to_le_bytes),
            (4, true) => add_up!(u32, from_be_bytes, to_be_bytes),
            (8, false) => add_up!(u64, from_le_bytes, to_le_bytes),
            (8, true) => add_up!(u64, from_be_bytes, to_be_bytes),
            _ => return Err(format!("differences: numbers of {item} bytes are not supported")),
        }
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_in_either_byte_order() {
        let numbers = [3u16, 9, 65_535, 2, 500, 4, 7, 7];
        for (row, distance, big_endian) in [(4, 1, false), (4, 2, true), (0, 1, true), (8, 3, false)] {
            let step = if row == 0 { 8 } else { row };
            let stored: Vec<u16> = (0..8usize)
                .map(|at| match at % step >= distance {
                    true => numbers[at].wrapping_sub(numbers[at - distance]),
                    false => numbers[at],
                })
                .collect();
            let to_bytes = |number: &u16| match big_endian {
                true => number.to_be_bytes(),
                false => number.to_le_bytes(),
            };
            let bytes: Vec<u8> = stored.iter().flat_map(to_bytes).collect();
            let differences = Differences {
                row: row as u32,
                distance: distance as u32,
                item: 2,
                big_endian,
            };
            let mut out = [0; 20];
            assert_eq!(differences.decode(&bytes, &mut out), Ok(16));
            let expected: Vec<u8> = numbers.iter().flat_map(to_bytes).collect();
            assert_eq!(out[..16], expected);
            assert!(row == 0 || differences.decode(&bytes[..7], &mut out).is_err());
            assert!(differences.decode(&bytes, &mut out[..15]).is_err());
        }
    }
}
