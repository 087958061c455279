//! The datatype message (specification IV.A.2.d), versions 1 to 5: class and version, 24 flags, bytes, then what
//! belongs to the class.

use super::datatype::{
    BitRange, ByteOrder, Charset, CompoundField, Datatype, EnumerationMember, FloatFormat, ReferenceKind, TextPadding,
    TypeClass,
};
use super::AXES_MAX;
use crate::base::{text_before_zero, ByteFields, Hdf5Error};

/// Datatypes within each other.
const BASES_MAX: usize = 32;

/// Version, flags and bytes at the head of a datatype.
struct TypeHead {
    version: u8,
    flags: u32,
    bytes: u32,
    depth: usize,
}

/// The datatype at the next field.
pub(crate) fn parse_datatype(fields: &mut ByteFields<'_>) -> Result<Datatype, Hdf5Error> {
    datatype(fields, 0)
}

fn datatype(fields: &mut ByteFields<'_>, depth: usize) -> Result<Datatype, Hdf5Error> {
    if depth > BASES_MAX {
        return Err(fields.damaged(format!("more than {BASES_MAX} datatypes within each other")));
    }
    let at = fields.offset();
    let first = fields.u8()?;
    let (class, version) = (first & 15, first >> 4);
    if !(1..=5).contains(&version) {
        return Err(Hdf5Error::unsupported(format!("version {version} of datatypes")));
    }
    let flags = fields.number(3)? as u32;
    let bytes = fields.u32()?;
    let head = TypeHead {
        version,
        flags,
        bytes,
        depth,
    };
    let class = match class {
        0 => TypeClass::Integer {
            is_signed: flags & 8 != 0,
            bits: head.bits(fields)?,
        },
        1 => head.float(fields)?,
        2 => {
            fields.u16()?;
            TypeClass::Time
        }
        3 => TypeClass::FixedText {
            padding: head.padding(fields)?,
            charset: charset(flags >> 4, fields)?,
        },
        4 => TypeClass::Bits {
            bits: head.bits(fields)?,
        },
        5 => TypeClass::Opaque {
            tag: text_before_zero(fields.bytes((flags & 0xff) as usize)?),
        },
        6 => head.compound(fields)?,
        7 => TypeClass::Reference(match flags & 15 {
            0 => ReferenceKind::Object,
            1 => ReferenceKind::Region,
            2..=4 => ReferenceKind::Encoded,
            kind => return Err(Hdf5Error::unsupported(format!("references of kind {kind}"))),
        }),
        8 => head.enumeration(fields)?,
        9 => {
            let base = Box::new(datatype(fields, depth + 1)?);
            match flags & 15 {
                0 => TypeClass::VariableList { base },
                1 => TypeClass::VariableText {
                    charset: charset(flags >> 8, fields)?,
                },
                kind => return Err(fields.damaged(format!("values of variable length of kind {kind}"))),
            }
        }
        10 => head.array(fields)?,
        11 => TypeClass::Complex {
            base: Box::new(datatype(fields, depth + 1)?),
        },
        _ => return Err(Hdf5Error::unsupported(format!("datatypes of class {class}"))),
    };
    if bytes == 0 && !matches!(class, TypeClass::FixedText { .. }) {
        return Err(Hdf5Error::damaged(at, "a datatype of no bytes"));
    }
    Ok(Datatype { bytes, class })
}

fn charset(flags: u32, fields: &ByteFields<'_>) -> Result<Charset, Hdf5Error> {
    match flags & 15 {
        0 => Ok(Charset::Ascii),
        1 => Ok(Charset::Utf8),
        other => Err(fields.damaged(format!("character set {other}"))),
    }
}

impl TypeHead {
    /// Base and names of the enclosing type's own version.
    fn base(&self, fields: &mut ByteFields<'_>) -> Result<Datatype, Hdf5Error> {
        datatype(fields, self.depth + 1)
    }

    fn order(&self) -> ByteOrder {
        if self.flags & 1 == 0 {
            ByteOrder::Little
        } else {
            ByteOrder::Big
        }
    }

    /// Significant bits, which lie in the bytes.
    fn bits(&self, fields: &mut ByteFields<'_>) -> Result<BitRange, Hdf5Error> {
        let bits = BitRange {
            order: self.order(),
            offset: fields.u16()?,
            precision: fields.u16()?,
        };
        let end = u64::from(bits.offset) + u64::from(bits.precision);
        if bits.precision == 0 || end > 8 * u64::from(self.bytes) {
            return Err(fields.damaged(format!("{bits:?} in {} bytes", self.bytes)));
        }
        Ok(bits)
    }

    fn float(&self, fields: &mut ByteFields<'_>) -> Result<TypeClass, Hdf5Error> {
        let mut bits = self.bits(fields)?;
        bits.order = match self.flags & 0x41 {
            0 => ByteOrder::Little,
            1 => ByteOrder::Big,
            0x41 => ByteOrder::Vax,
            _ => return Err(fields.damaged("an order of bytes that does not exist")),
        };
        let has_implied_bit = match self.flags >> 4 & 3 {
            0 | 1 => false,
            2 => true,
            other => return Err(fields.damaged(format!("mantissas of kind {other}"))),
        };
        let sign = (self.flags >> 8) as u8;
        let (exponent, exponent_bits) = (fields.u8()?, fields.u8()?);
        let (mantissa, mantissa_bits) = (fields.u8()?, fields.u8()?);
        let exponent_bias = fields.u32()?;
        let end = |from: u8, bits: u8| u64::from(from) + u64::from(bits);
        let last = end(exponent, exponent_bits)
            .max(end(mantissa, mantissa_bits))
            .max(end(sign, 1));
        if last > 8 * u64::from(self.bytes) {
            return Err(fields.damaged(format!("a float of {} bytes with a bit {last}", self.bytes)));
        }
        let format = FloatFormat {
            sign,
            exponent,
            exponent_bits,
            exponent_bias,
            mantissa,
            mantissa_bits,
            has_implied_bit,
        };
        Ok(TypeClass::Float { bits, format })
    }

    fn padding(&self, fields: &ByteFields<'_>) -> Result<TextPadding, Hdf5Error> {
        match self.flags & 15 {
            0 => Ok(TextPadding::ZeroTerminated),
            1 => Ok(TextPadding::Zeros),
            2 => Ok(TextPadding::Spaces),
            other => Err(fields.damaged(format!("padding {other} of text"))),
        }
    }

    /// Offsets of fields have as many bytes as the size of the compound needs, from version 3 on.
    fn compound(&self, fields: &mut ByteFields<'_>) -> Result<TypeClass, Hdf5Error> {
        let offset_bytes = if self.version < 3 {
            4
        } else {
            (self.bytes.max(1).ilog2() / 8 + 1) as usize
        };
        let mut members = Vec::new();
        for _ in 0..self.flags & 0xffff {
            let name = fields.terminated_text(self.version < 3)?;
            let offset = fields.number(offset_bytes)? as u32;
            let mut shape = Vec::new();
            if self.version == 1 {
                let axes = usize::from(fields.u8()?);
                fields.bytes(11)?; // the order of the axes, which no library changes
                let sides = (0..4).map(|_| fields.u32()).collect::<Result<Vec<u32>, _>>()?;
                let sides = sides
                    .get(..axes)
                    .ok_or_else(|| fields.damaged(format!("a field of {axes} axes")))?;
                shape.extend_from_slice(sides);
            }
            let mut datatype = self.base(fields)?;
            if !shape.is_empty() {
                datatype = array_of(shape, datatype, fields)?;
            }
            if u64::from(offset) + u64::from(datatype.bytes) > u64::from(self.bytes) {
                return Err(fields.damaged(format!("field {name:?} leaves a compound of {} bytes", self.bytes)));
            }
            members.push(CompoundField { name, offset, datatype });
        }
        Ok(TypeClass::Compound { fields: members })
    }

    fn enumeration(&self, fields: &mut ByteFields<'_>) -> Result<TypeClass, Hdf5Error> {
        let base = self.base(fields)?;
        if !matches!(base.class, TypeClass::Integer { .. }) || base.bytes != self.bytes {
            return Err(fields.damaged(format!("an enumeration of {base} in {} bytes", self.bytes)));
        }
        let names = (0..self.flags & 0xffff).map(|_| fields.terminated_text(self.version < 3));
        let names = names.collect::<Result<Vec<String>, _>>()?;
        let member = |name| {
            Ok(EnumerationMember {
                name,
                value: fields.bytes(self.bytes as usize)?.to_vec(),
            })
        };
        let members = names.into_iter().map(member).collect::<Result<_, Hdf5Error>>()?;
        Ok(TypeClass::Enumeration {
            base: Box::new(base),
            members,
        })
    }

    fn array(&self, fields: &mut ByteFields<'_>) -> Result<TypeClass, Hdf5Error> {
        let axes = usize::from(fields.u8()?);
        if axes > AXES_MAX {
            return Err(fields.damaged(format!("an array of {axes} axes")));
        }
        if self.version < 3 {
            fields.bytes(3)?;
        }
        let shape = (0..axes).map(|_| fields.u32()).collect::<Result<Vec<u32>, _>>()?;
        if self.version < 3 {
            fields.bytes(4 * axes)?;
        }
        let base = self.base(fields)?;
        let array = array_of(shape, base, fields)?;
        if array.bytes != self.bytes {
            return Err(fields.damaged(format!("an array of {} bytes in {}", array.bytes, self.bytes)));
        }
        Ok(array.class)
    }
}

/// An array type, whose bytes follow from its shape and base.
fn array_of(shape: Vec<u32>, base: Datatype, fields: &ByteFields<'_>) -> Result<Datatype, Hdf5Error> {
    let bytes = shape
        .iter()
        .try_fold(base.bytes, |product, side| product.checked_mul(*side));
    let bytes = bytes.ok_or_else(|| fields.damaged(format!("an array {shape:?} that is too large")))?;
    Ok(Datatype {
        bytes,
        class: TypeClass::Array {
            shape,
            base: Box::new(base),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_datatype, BASES_MAX};
    use crate::base::{ByteBlock, FieldSizes, Hdf5Error};
    use crate::messages::Datatype;

    const INT16: [u8; 12] = [0x10, 8, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0];

    fn parsed(bytes: &[u8]) -> Result<Datatype, Hdf5Error> {
        let sizes = FieldSizes {
            address_bytes: 8,
            length_bytes: 8,
            base: 0,
        };
        let block = ByteBlock {
            at: 0,
            bytes: bytes.to_vec(),
            sizes,
        };
        parse_datatype(&mut block.fields())
    }

    /// A field of version 1: name, offset, axes, their order, four sides, type.
    fn field(name: &[u8; 8], offset: u8, sides: &[u8]) -> Vec<u8> {
        let mut bytes = name.to_vec();
        bytes.extend([offset, 0, 0, 0, sides.len() as u8]);
        bytes.extend([0; 11]);
        for axis in 0..4 {
            bytes.extend([sides.get(axis).copied().unwrap_or(0), 0, 0, 0]);
        }
        bytes.extend(INT16);
        bytes
    }

    #[test]
    fn compounds_of_the_first_version_have_fields_of_several_axes() {
        let mut bytes = vec![0x16, 2, 0, 0, 16, 0, 0, 0];
        bytes.extend(field(b"one\0\0\0\0\0", 0, &[]));
        bytes.extend(field(b"several\0", 4, &[2, 3]));
        let text = parsed(&bytes).expect("a compound").to_string();
        assert_eq!(
            text,
            "compound of 16 bytes {one at 0: int16, several at 4: array [2, 3] of int16}"
        );
        bytes[4] = 15;
        assert!(
            matches!(parsed(&bytes), Err(Hdf5Error::Damaged { .. })),
            "a field behind the end"
        );
    }

    #[test]
    fn datatypes_within_each_other_have_an_end() {
        let list = [0x19, 0, 0, 0, 16, 0, 0, 0];
        let nested = |depth: usize| [list.repeat(depth), INT16.to_vec()].concat();
        assert!(parsed(&nested(BASES_MAX)).is_ok());
        let error = parsed(&nested(BASES_MAX + 1)).expect_err("too deep");
        assert!(error.to_string().contains("within each other"), "{error}");
    }
}
