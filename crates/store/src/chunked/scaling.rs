//! Numbers that were stored as others: scaled, offset, in fewer bits.

use outcore_dtype::DType;

/// Filter 6 of HDF5: differences from the least, in as many bits as the largest needs, the upper bits first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScaleOffset {
    item: usize,
    /// Elements of a chunk.
    count: u32,
    /// Decimal digits behind the point that floats were rounded to.
    digits: Option<i32>,
    /// Elements are stored as they are.
    is_whole: bool,
    is_big_endian: bool,
    /// The bytes of an element that all ones stand for, the lowest first.
    fill: Option<u64>,
}

/// Bytes before the bits of a chunk: their number for an element, bytes of the least, and the least, padded.
const HEADER: usize = 21;

impl ScaleOffset {
    /// By the numbers that the filter is set by (HDF5, `H5Zscaleoffset.c`).
    ///
    /// # Errors
    /// Numbers that no such filter has, or a kind that nobody writes, as a name for the filter.
    pub(crate) fn from_values(values: &[u32], item: usize) -> Result<ScaleOffset, String> {
        let value = |at: usize| values.get(at).copied().unwrap_or(0);
        let (kind, factor) = (value(0), value(1) as i32);
        let is_integer = match (kind, value(3), item) {
            (2, 0, 1 | 2 | 4 | 8) => true,
            (0, 1, 4 | 8) => false,
            (1, ..) => return Err("scaleoffset by an exponent".into()),
            _ => return Err(format!("scaleoffset of kind {kind} for {item} bytes")),
        };
        if value(4) as usize != item {
            return Err(format!("scaleoffset of {} bytes for elements of {item}", value(4)));
        }
        let fill = u64::from(value(8)) | u64::from(value(9)) << 32;
        Ok(ScaleOffset {
            item,
            count: value(2),
            digits: (!is_integer).then_some(factor),
            is_whole: is_integer && factor == 8 * item as i32,
            is_big_endian: value(6) == 1,
            fill: (value(7) == 1).then_some(fill),
        })
    }

    /// The elements of a chunk.
    pub(super) fn decode(self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let damaged = || String::from("scaleoffset: a chunk is damaged");
        let too_long = || String::from("scaleoffset: a chunk is larger than expected");
        if self.is_whole {
            out.get_mut(..bytes.len()).ok_or_else(too_long)?.copy_from_slice(bytes);
            return Ok(bytes.len());
        }
        let length = (self.count as usize).checked_mul(self.item);
        let out = length.and_then(|length| out.get_mut(..length)).ok_or_else(too_long)?;
        let (header, packed) = bytes.split_first_chunk::<HEADER>().ok_or_else(damaged)?;
        let [b0, b1, b2, b3, width, least @ ..] = header;
        let bits = u32::from_le_bytes([*b0, *b1, *b2, *b3]);
        let mut minimum = [0; 8];
        let width = usize::from(*width).min(8);
        minimum[..width].copy_from_slice(&least[..width]);
        let minimum = u64::from_le_bytes(minimum);
        let all = 8 * self.item as u32;
        if bits > all {
            return Err(damaged());
        }
        if bits == all {
            let raw = packed.get(..out.len()).ok_or_else(damaged)?;
            out.copy_from_slice(raw);
            if self.is_big_endian {
                out.chunks_exact_mut(self.item).for_each(<[u8]>::reverse);
            }
            return Ok(out.len());
        }
        let needed = u64::from(self.count).checked_mul(bits.into()).ok_or_else(damaged)?;
        if needed > 8 * packed.len() as u64 {
            return Err(damaged());
        }
        match (self.item, self.digits) {
            (1, _) => self.integers::<1>(bits, packed, minimum, out),
            (2, _) => self.integers::<2>(bits, packed, minimum, out),
            (4, None) => self.integers::<4>(bits, packed, minimum, out),
            (_, None) => self.integers::<8>(bits, packed, minimum, out),
            (4, Some(digits)) => {
                let (unit, least) = (10f32.powf(digits as f32), f32::from_bits(minimum as u32));
                self.values::<4>(bits, packed, out, |value| {
                    u64::from((value as i32 as f32 / unit + least).to_bits())
                });
            }
            (_, Some(digits)) => {
                let (unit, least) = (10f64.powf(f64::from(digits)), f64::from_bits(minimum));
                self.values::<8>(bits, packed, out, |value| {
                    (value as i64 as f64 / unit + least).to_bits()
                });
            }
        }
        Ok(out.len())
    }

    fn integers<const ITEM: usize>(self, bits: u32, packed: &[u8], minimum: u64, out: &mut [u8]) {
        self.values::<ITEM>(bits, packed, out, |value| value.wrapping_add(minimum));
    }

    /// Elements of what `number` makes of their bits.
    fn values<const ITEM: usize>(self, bits: u32, packed: &[u8], out: &mut [u8], number: impl Fn(u64) -> u64) {
        let ones = (1u64 << bits) - 1;
        for (at, element) in out.as_chunks_mut::<ITEM>().0.iter_mut().enumerate() {
            let value = bits_at(packed, at as u64 * u64::from(bits), bits);
            let value = match self.fill {
                Some(fill) if value == ones => fill,
                _ => number(value),
            };
            element.copy_from_slice(&value.to_le_bytes()[..ITEM]);
            if self.is_big_endian {
                element.reverse();
            }
        }
    }
}

/// So many bits, fewer than 64, from a bit on, the upper ones first; bytes beyond the end are zeros.
fn bits_at(bytes: &[u8], from: u64, bits: u32) -> u64 {
    if bits == 0 {
        return 0;
    }
    let rest = &bytes[(from / 8) as usize..];
    let window = rest.first_chunk::<16>().copied().unwrap_or_else(|| {
        let mut window = [0; 16];
        window[..rest.len()].copy_from_slice(rest);
        window
    });
    ((u128::from_be_bytes(window) << (from % 8)) >> (128 - bits)) as u64
}

/// `stored / scale + offset`, as numcodecs computes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FixedScaleOffset {
    pub scale: f64,
    pub offset: f64,
    pub stored: DType,
    pub dtype: DType,
}

impl FixedScaleOffset {
    pub(super) fn decode(self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let (from, to) = (self.stored.size(), self.dtype.size());
        let count = bytes.len() / from;
        if !bytes.len().is_multiple_of(from) || count.checked_mul(to).is_none_or(|length| length > out.len()) {
            return Err("fixedscaleoffset: a chunk has another length than expected".into());
        }
        macro_rules! from_type {
            ($($dtype:ident: $Stored:ty => $Float:ty),*) => {
                match self.stored {
                    $(DType::$dtype => {
                        let (scale, offset) = (self.scale as $Float, self.offset as $Float);
                        let elements = bytes.as_chunks::<{ size_of::<$Stored>() }>().0;
                        let values = elements.iter().map(|bytes| {
                            f64::from(<$Stored>::from_le_bytes(*bytes) as $Float / scale + offset)
                        });
                        put_numbers(values, self.dtype, out);
                    })*
                    _ => return Err(format!("fixedscaleoffset: {} is not supported", self.stored)),
                }
            };
        }
        from_type!(
            I8: i8 => f64, I16: i16 => f64, I32: i32 => f64, I64: i64 => f64,
            U8: u8 => f64, U16: u16 => f64, U32: u32 => f64, U64: u64 => f64,
            F32: f32 => f32, F64: f64 => f64
        );
        Ok(count * to)
    }

    /// Whether both types are numbers that are computed with.
    pub(crate) fn is_supported(self) -> bool {
        let is_number = |dtype| {
            use DType::{F32, F64, I16, I32, I64, I8, U16, U32, U64, U8};
            matches!(dtype, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 | F32 | F64)
        };
        is_number(self.stored) && is_number(self.dtype)
    }
}

/// Numbers as elements of a type, the lowest byte first.
fn put_numbers(values: impl Iterator<Item = f64>, dtype: DType, out: &mut [u8]) {
    macro_rules! to_type {
        ($($dtype:ident: $Type:ty),*) => {
            match dtype {
                $(DType::$dtype => {
                    let places = out.as_chunks_mut::<{ size_of::<$Type>() }>().0;
                    places.iter_mut().zip(values).for_each(|(place, value)| *place = (value as $Type).to_le_bytes());
                })*
                _ => {}
            }
        };
    }
    to_type!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64);
}

/// Truths, eight to a byte, the first in the upper bit, behind the number of bits that pad the last byte (numcodecs).
pub(super) fn unpack_bits(bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let (&padding, packed) = bytes.split_first().ok_or("packbits: a chunk is empty")?;
    let count = (8 * packed.len()).checked_sub(padding.into());
    let count = count.filter(|&count| count <= out.len() && padding < 8);
    let count = count.ok_or("packbits: a chunk has another length than expected")?;
    for (at, truth) in out[..count].iter_mut().enumerate() {
        *truth = packed[at / 8] >> (7 - at % 8) & 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_taken_across_bytes_and_at_the_end() {
        let bytes = [0b1010_1100, 0b0101_0011, 0b1111_0000];
        assert_eq!(bits_at(&bytes, 0, 3), 0b101);
        assert_eq!(bits_at(&bytes, 6, 5), 0b00010);
        assert_eq!(bits_at(&bytes, 20, 4), 0);
        assert_eq!(bits_at(&[0xff; 9], 7, 63), (1 << 63) - 1);
    }

    #[test]
    fn damaged_chunks_of_scaled_numbers_are_refused() {
        let stage = ScaleOffset::from_values(&[2, 0, 4, 0, 4], 4).unwrap();
        let mut chunk = [0; HEADER + 4];
        (chunk[0], chunk[4], chunk[5]) = (8, 8, 7);
        assert_eq!(stage.decode(&chunk, &mut [0; 16]), Ok(16));
        assert!(stage.decode(&chunk, &mut [0; 12]).is_err());
        assert!(stage.decode(&chunk[..HEADER + 3], &mut [0; 16]).is_err());
        assert!(stage.decode(&chunk[..20], &mut [0; 16]).is_err());
        chunk[0] = 33;
        assert!(stage.decode(&chunk, &mut [0; 16]).is_err());
    }

    #[test]
    fn packed_truths_have_their_padding_checked() {
        let mut out = [0; 16];
        assert_eq!(unpack_bits(&[4, 0b1010_0000], &mut out), Ok(4));
        assert_eq!(out[..4], [1, 0, 1, 0]);
        for damaged in [&[][..], &[9, 1, 1], &[1], &[0, 1, 1, 1]] {
            assert!(unpack_bits(damaged, &mut out).is_err());
        }
    }
}
