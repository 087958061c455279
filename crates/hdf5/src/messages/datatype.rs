//! Datatypes (specification IV.A.2.d), as values and as text.

use std::fmt;

/// A type of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datatype {
    /// Bytes of an element as stored.
    pub bytes: u32,
    pub class: TypeClass,
}

/// The kind of a datatype with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeClass {
    Integer {
        is_signed: bool,
        bits: BitRange,
    },
    Float {
        bits: BitRange,
        format: FloatFormat,
    },
    /// Time, which no library writes.
    Time,
    FixedText {
        padding: TextPadding,
        charset: Charset,
    },
    VariableText {
        charset: Charset,
    },
    /// Bits without a meaning as a number.
    Bits {
        bits: BitRange,
    },
    Opaque {
        tag: String,
    },
    Compound {
        fields: Vec<CompoundField>,
    },
    Reference(ReferenceKind),
    Enumeration {
        base: Box<Datatype>,
        members: Vec<EnumerationMember>,
    },
    /// Sequences of any length.
    VariableList {
        base: Box<Datatype>,
    },
    Array {
        shape: Vec<u32>,
        base: Box<Datatype>,
    },
    /// Two floats, real and imaginary (HDF5 2.0); h5py's older complex numbers are compounds of `r` and `i`.
    Complex {
        base: Box<Datatype>,
    },
}

/// The significant bits of a number within its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    pub order: ByteOrder,
    /// Bits below the lowest significant bit.
    pub offset: u16,
    /// Significant bits.
    pub precision: u16,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
    /// Pairs of little-endian bytes in big-endian order.
    Vax,
}

/// Places of the parts of a floating-point number, in bits from the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    pub sign: u8,
    pub exponent: u8,
    pub exponent_bits: u8,
    pub exponent_bias: u32,
    pub mantissa: u8,
    pub mantissa_bits: u8,
    /// The highest bit of the mantissa is 1 and is not stored.
    pub has_implied_bit: bool,
}

/// The bytes that fill fixed text up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPadding {
    /// The text ends at its first zero byte.
    ZeroTerminated,
    Zeros,
    Spaces,
}

/// The encoding of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    Ascii,
    Utf8,
}

/// The kind of thing that a reference is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// The address of an object.
    Object,
    /// A selection of a dataset.
    Region,
    /// A reference of HDF5 1.12 and later, to an object, a selection or an attribute.
    Encoded,
}

/// A field of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompoundField {
    pub name: String,
    /// Bytes of the element before the field.
    pub offset: u32,
    pub datatype: Datatype,
}

/// A name of an enumeration, with its value in the bytes of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumerationMember {
    pub name: String,
    pub value: Vec<u8>,
}

impl Datatype {
    /// NumPy's order of bytes of a number; little where there is but one byte.
    pub fn order(&self) -> ByteOrder {
        match &self.class {
            TypeClass::Integer { bits, .. } | TypeClass::Float { bits, .. } | TypeClass::Bits { bits } => bits.order,
            TypeClass::Enumeration { base, .. } | TypeClass::Complex { base } => base.order(),
            _ => ByteOrder::Little,
        }
    }

    /// An IEEE 754 number of 2, 4 or 8 bytes.
    pub fn is_ieee(&self) -> bool {
        let TypeClass::Float { bits, format } = &self.class else {
            return false;
        };
        let (exponent_bits, mantissa_bits, exponent_bias) = match self.bytes {
            2 => (5, 10, 15),
            4 => (8, 23, 127),
            8 => (11, 52, 1023),
            _ => return false,
        };
        let expected = FloatFormat {
            sign: mantissa_bits + exponent_bits,
            exponent: mantissa_bits,
            exponent_bits,
            exponent_bias,
            mantissa: 0,
            mantissa_bits,
            has_implied_bit: true,
        };
        *format == expected && bits.is_whole(self.bytes)
    }

    /// h5py's boolean: an enumeration of bytes, `FALSE` 0 and `TRUE` 1.
    pub fn is_boolean(&self) -> bool {
        let TypeClass::Enumeration { members, .. } = &self.class else {
            return false;
        };
        let is = |name: &str, value: u8| {
            members
                .iter()
                .any(|member| member.name == name && member.value == [value])
        };
        members.len() == 2 && self.bytes == 1 && is("FALSE", 0) && is("TRUE", 1)
    }

    /// The float of which an element has two, real and imaginary: of a compound of `r` and `i`, as h5py writes it, or of HDF5's own
    /// complex numbers.
    pub fn complex_part(&self) -> Option<&Datatype> {
        match &self.class {
            TypeClass::Complex { base } if base.bytes.checked_mul(2) == Some(self.bytes) => Some(base),
            TypeClass::Compound { fields } => {
                let [real, imaginary] = fields.as_slice() else {
                    return None;
                };
                let part = &real.datatype;
                let is_complex = real.name == "r"
                    && imaginary.name == "i"
                    && *part == imaginary.datatype
                    && matches!(part.class, TypeClass::Float { .. })
                    && real.offset == 0
                    && imaginary.offset == part.bytes
                    && part.bytes.checked_mul(2) == Some(self.bytes);
                is_complex.then_some(part)
            }
            _ => None,
        }
    }
}

impl BitRange {
    /// All bits of so many bytes are significant.
    pub fn is_whole(&self, bytes: u32) -> bool {
        self.offset == 0 && u32::from(self.precision) == bytes.saturating_mul(8)
    }
}

/// A number as text: its kind and bits, where they are not all bits of its bytes, and its order, where it is not little-endian.
fn write_number(to: &mut fmt::Formatter<'_>, kind: &str, bits: &BitRange, bytes: u32) -> fmt::Result {
    write!(to, "{kind}{}", bits.precision)?;
    if !bits.is_whole(bytes) {
        write!(to, " at bit {} of {bytes} bytes", bits.offset)?;
    }
    match bits.order {
        ByteOrder::Big if bytes > 1 => write!(to, " big-endian"),
        ByteOrder::Vax => write!(to, " VAX"),
        _ => Ok(()),
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        match &self.class {
            TypeClass::Integer { is_signed: true, bits } => write_number(to, "int", bits, bytes),
            TypeClass::Integer { bits, .. } => write_number(to, "uint", bits, bytes),
            TypeClass::Float { bits, .. } => write_number(to, "float", bits, bytes),
            TypeClass::Time => write!(to, "time of {bytes} bytes"),
            TypeClass::FixedText { .. } => write!(to, "text of {bytes} bytes"),
            TypeClass::VariableText { .. } => write!(to, "text"),
            TypeClass::Bits { bits } => write_number(to, "bits", bits, bytes),
            TypeClass::Opaque { tag } => write!(to, "opaque {tag:?} of {bytes} bytes"),
            TypeClass::Compound { fields } => {
                write!(to, "compound of {bytes} bytes {{")?;
                for (place, field) in fields.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(to, "{comma}{} at {}: {}", field.name, field.offset, field.datatype)?;
                }
                write!(to, "}}")
            }
            TypeClass::Reference(ReferenceKind::Object) => write!(to, "reference"),
            TypeClass::Reference(ReferenceKind::Region) => write!(to, "region reference"),
            TypeClass::Reference(ReferenceKind::Encoded) => write!(to, "encoded reference"),
            TypeClass::Enumeration { base, members } => {
                let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
                write!(to, "enumeration of {base} {{{}}}", names.join(", "))
            }
            TypeClass::VariableList { base } => write!(to, "list of {base}"),
            TypeClass::Array { shape, base } => write!(to, "array {shape:?} of {base}"),
            TypeClass::Complex { base } => write!(to, "complex of {base}"),
        }
    }
}
