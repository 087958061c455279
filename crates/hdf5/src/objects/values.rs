//! Values of attributes out of their bytes.

use super::metadata::Metadata;
use crate::base::{text_before_zero, ByteFields, Hdf5Error};
use crate::messages::{BitRange, ByteOrder, Datatype, FloatFormat, ReferenceKind, TextPadding, TypeClass};

/// Bytes of a value in memory, at most, beside those of text.
const VALUE_BYTES: usize = 24;

/// The values of an attribute in C order.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValues {
    /// A dataspace without elements.
    Empty,
    /// Signed integers of at most 8 bytes, and values of enumerations.
    Signed(Vec<i64>),
    /// Unsigned integers of at most 8 bytes.
    Unsigned(Vec<u64>),
    /// Floats of at most 16 bytes, the nearest numbers of 64 bits.
    Floats(Vec<f64>),
    /// Fixed or variable text; bytes that are no UTF-8 are replaced.
    Texts(Vec<String>),
    /// h5py's booleans.
    Booleans(Vec<bool>),
    /// Real and imaginary parts.
    Complexes(Vec<[f64; 2]>),
    /// The addresses of objects, as [`crate::GroupMember`] has them; nothing for a reference to nothing.
    References(Vec<Option<u64>>),
    /// Lists of such, as `DIMENSION_LIST` has them.
    ReferenceLists(Vec<Vec<Option<u64>>>),
    /// Values that are not decoded, by the name of their type.
    Other(String),
}

impl AttributeValues {
    /// The first text, where the values are texts.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            AttributeValues::Texts(texts) => texts.first().map(String::as_str),
            _ => None,
        }
    }
}

/// The values of a type in all of `fields`.
pub(super) fn decode_values(
    metadata: &Metadata<'_>,
    datatype: &Datatype,
    fields: &mut ByteFields<'_>,
) -> Result<AttributeValues, Hdf5Error> {
    let bytes = datatype.bytes as usize;
    let count = fields.left().checked_div(bytes).unwrap_or(0);
    metadata.view.keep(VALUE_BYTES.saturating_mul(count))?;
    let mut elements = (0..count).map(|_| fields.part(bytes));
    if datatype.is_boolean() {
        let values = elements.map(|element| Ok(element?.u8()? != 0));
        return Ok(AttributeValues::Booleans(values.collect::<Result<_, Hdf5Error>>()?));
    }
    if let Some(part) = datatype.complex_part().filter(|part| number_decoder(part).is_some()) {
        let values = elements
            .map(|element| complex_of(part, &mut element?))
            .collect::<Result<_, _>>()?;
        return Ok(AttributeValues::Complexes(values));
    }
    let number = |element: Result<ByteFields<'_>, Hdf5Error>, base: &Datatype| -> Result<i64, Hdf5Error> {
        Ok(integer_of(base, element?.bytes(bytes)?))
    };
    match &datatype.class {
        TypeClass::Integer { is_signed, .. } if bytes <= 8 => {
            let values = elements
                .map(|element| number(element, datatype))
                .collect::<Result<Vec<i64>, _>>()?;
            Ok(if *is_signed {
                AttributeValues::Signed(values)
            } else {
                AttributeValues::Unsigned(values.into_iter().map(|value| value as u64).collect())
            })
        }
        TypeClass::Enumeration { base, .. } if bytes <= 8 => {
            let values = elements
                .map(|element| number(element, base))
                .collect::<Result<_, _>>()?;
            Ok(AttributeValues::Signed(values))
        }
        TypeClass::Float { .. } if number_decoder(datatype).is_some() => {
            let values = elements.map(|element| Ok(float_of(datatype, element?.bytes(bytes)?)));
            Ok(AttributeValues::Floats(values.collect::<Result<_, Hdf5Error>>()?))
        }
        TypeClass::FixedText { padding, .. } => {
            metadata.view.keep(fields.left())?;
            let elements = (0..count).map(|_| Ok(fixed_text(fields.bytes(bytes)?, *padding)));
            Ok(AttributeValues::Texts(elements.collect::<Result<_, Hdf5Error>>()?))
        }
        TypeClass::Reference(ReferenceKind::Object) => {
            let values = elements
                .map(|element| reference(&mut element?))
                .collect::<Result<_, _>>()?;
            Ok(AttributeValues::References(values))
        }
        TypeClass::VariableText { .. } => {
            let texts = elements.by_ref().collect::<Result<Vec<_>, _>>()?;
            variable(metadata, texts, 1, |bytes| {
                Ok(text_before_zero(bytes.bytes(bytes.left())?))
            })
            .map(AttributeValues::Texts)
        }
        TypeClass::VariableList { base } if base.class == TypeClass::Reference(ReferenceKind::Object) => {
            let lists = elements.by_ref().collect::<Result<Vec<_>, _>>()?;
            let bytes = base.bytes as usize;
            let list = |fields: &mut ByteFields<'_>| {
                (0..fields.left() / bytes)
                    .map(|_| reference(&mut fields.part(bytes)?))
                    .collect()
            };
            variable(metadata, lists, base.bytes.into(), list).map(AttributeValues::ReferenceLists)
        }
        _ => Ok(AttributeValues::Other(datatype.to_string())),
    }
}

/// Values of variable length: a count, the address of a collection of the global heap, and the number of an object
/// there. All together have no more bytes than the file.
fn variable<T>(
    metadata: &Metadata<'_>,
    elements: Vec<ByteFields<'_>>,
    item_bytes: u64,
    decode: impl Fn(&mut ByteFields<'_>) -> Result<T, Hdf5Error>,
) -> Result<Vec<T>, Hdf5Error> {
    let mut values = Vec::new();
    let mut sum: u64 = 0;
    for mut element in elements {
        let bytes = u64::from(element.u32()?).saturating_mul(item_bytes);
        let start = element.sizes.base;
        let at = element.address()?.filter(|at| *at != start);
        let number = element.u32()?;
        let collection = match at {
            Some(at) if bytes > 0 => Some(metadata.heaps.collection(&metadata.view, at)?),
            _ => None,
        };
        let object: &[u8] = match &collection {
            Some(collection) => collection.object(number)?,
            None => &[],
        };
        sum = sum.saturating_add(bytes);
        if sum > metadata.view.length() {
            return Err(element.damaged("values of variable length with more bytes than the file"));
        }
        let bytes = if collection.is_some() { bytes as usize } else { 0 };
        let object = object
            .get(..bytes)
            .ok_or_else(|| element.damaged(format!("{bytes} bytes of a shorter object")))?;
        // Text grows where bytes are no UTF-8; lists have wider items.
        metadata.view.keep(3 * bytes)?;
        values.push(decode(&mut element.with(object))?);
    }
    Ok(values)
}

/// A reference to an object; all zeros or all ones are one to nothing.
fn reference(fields: &mut ByteFields<'_>) -> Result<Option<u64>, Hdf5Error> {
    let start = fields.sizes.base;
    Ok(fields.address()?.filter(|at| *at != start))
}

fn fixed_text(bytes: &[u8], padding: TextPadding) -> String {
    let pad = match padding {
        TextPadding::ZeroTerminated => return text_before_zero(bytes),
        TextPadding::Zeros => 0,
        TextPadding::Spaces => b' ',
    };
    let end = bytes.iter().rposition(|byte| *byte != pad).map_or(0, |last| last + 1);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Bits and format of a float of at most 16 bytes.
fn number_decoder(datatype: &Datatype) -> Option<(&BitRange, &FloatFormat)> {
    match &datatype.class {
        TypeClass::Float { bits, format } if datatype.bytes <= 16 && bits.order != ByteOrder::Vax => {
            Some((bits, format))
        }
        _ => None,
    }
}

/// The bytes of a number, of which there are at most 16, as bits.
fn bits_of(bytes: &[u8], order: ByteOrder) -> u128 {
    let join = |bits: u128, byte: &u8| bits << 8 | u128::from(*byte);
    match order {
        ByteOrder::Big => bytes.iter().fold(0, join),
        _ => bytes.iter().rev().fold(0, join),
    }
}

/// `count` bits from `from` on.
fn range_of(bits: u128, from: u32, count: u32) -> u128 {
    let mask = u128::MAX.checked_shr(128 - count.min(128)).unwrap_or(0);
    bits.checked_shr(from).unwrap_or(0) & mask
}

/// An integer of at most 8 bytes, its sign extended.
fn integer_of(datatype: &Datatype, bytes: &[u8]) -> i64 {
    let TypeClass::Integer { is_signed, bits } = &datatype.class else {
        return 0;
    };
    let precision = u32::from(bits.precision);
    let value = range_of(bits_of(bytes, bits.order), bits.offset.into(), precision) as u64;
    let unused = 64 - precision.min(64);
    if *is_signed && unused < 64 {
        (value << unused) as i64 >> unused
    } else {
        value as i64
    }
}

/// A real and an imaginary part.
fn complex_of(part: &Datatype, element: &mut ByteFields<'_>) -> Result<[f64; 2], Hdf5Error> {
    let bytes = part.bytes as usize;
    Ok([
        float_of(part, element.bytes(bytes)?),
        float_of(part, element.bytes(bytes)?),
    ])
}

/// The nearest number of 64 bits: (-1)^sign × mantissa × 2^(exponent - bias).
fn float_of(datatype: &Datatype, bytes: &[u8]) -> f64 {
    let Some((range, format)) = number_decoder(datatype) else {
        return f64::NAN;
    };
    let bits = bits_of(bytes, range.order);
    if datatype.is_ieee() && datatype.bytes == 8 {
        return f64::from_bits(bits as u64);
    }
    let mantissa_bits = u32::from(format.mantissa_bits);
    let mantissa = range_of(bits, format.mantissa.into(), mantissa_bits);
    let exponent_bits = u32::from(format.exponent_bits);
    let exponent = range_of(bits, format.exponent.into(), exponent_bits) as i64;
    let sign = if range_of(bits, format.sign.into(), 1) == 0 {
        1.0
    } else {
        -1.0
    };
    // The bit before the point: stored as the highest of the mantissa where it is not implied.
    let fraction_bits = if format.has_implied_bit {
        mantissa_bits
    } else {
        mantissa_bits.saturating_sub(1)
    };
    if exponent_bits > 0 && exponent_bits < 63 && exponent == (1 << exponent_bits) - 1 {
        let fraction = range_of(mantissa, 0, fraction_bits);
        return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
    }
    let implied = if format.has_implied_bit && exponent != 0 {
        2f64.powi(mantissa_bits as i32)
    } else {
        0.0
    };
    let power = exponent
        .max(1)
        .saturating_sub(format.exponent_bias.into())
        .saturating_sub(fraction_bits.into());
    let power = power.clamp(-3000, 3000) as i32;
    // Two steps, neither of which leaves the range where the result does not.
    sign * (mantissa as f64 + implied) * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)
}
