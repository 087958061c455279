//! Datatypes (specification IV.A.2.d), as values and as text.

use std::fmt;

/// A type of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datatype {
    /// Bytes of an element as stored.
    pub bytes: u32,
    /// The kind of type.
    pub class: TypeClass,
}

/// The kind of a datatype with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeClass {
    /// A whole number.
    Integer {
        /// Negative numbers are stored as two's complements.
        is_signed: bool,
        /// The bits that count.
        bits: BitRange,
    },
    /// A floating-point number.
    Float {
        /// The bits that count.
        bits: BitRange,
        /// The parts of the number.
        format: FloatFormat,
    },
    /// Time, which no library writes.
    Time,
    /// Text of the same bytes for each element.
    FixedText {
        /// The bytes behind shorter text.
        padding: TextPadding,
        /// The encoding.
        charset: Charset,
    },
    /// Text of any length, in the file's heap.
    VariableText {
        /// The encoding.
        charset: Charset,
    },
    /// Bits without a meaning as a number.
    Bits {
        /// The bits that count.
        bits: BitRange,
    },
    /// Bytes without a meaning to the format.
    Opaque {
        /// A word on what they are.
        tag: String,
    },
    /// Fields beside each other.
    Compound {
        /// The fields in the order of the file.
        fields: Vec<CompoundField>,
    },
    /// A reference to another part of the file.
    Reference(ReferenceKind),
    /// Whole numbers with names.
    Enumeration {
        /// The type of an item.
        base: Box<Datatype>,
        /// The names in the order of the file.
        members: Vec<EnumerationMember>,
    },
    /// Sequences of any length.
    VariableList {
        /// The type of an item.
        base: Box<Datatype>,
    },
    /// An array as one element.
    Array {
        /// Elements of the base along each axis.
        shape: Vec<u32>,
        /// The type of an item.
        base: Box<Datatype>,
    },
    /// Two floats, real and imaginary (HDF5 2.0); h5py's older complex numbers are compounds of `r` and `i`.
    Complex {
        /// The type of an item.
        base: Box<Datatype>,
    },
}

/// The significant bits of a number within its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    /// The order of the bytes that hold the bits.
    pub order: ByteOrder,
    /// Bits below the lowest significant bit.
    pub offset: u16,
    /// Significant bits.
    pub precision: u16,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
    /// Pairs of little-endian bytes in big-endian order.
    Vax,
}

/// Places of the parts of a floating-point number, in bits from the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    /// The bit that is 1 for negative numbers.
    pub sign: u8,
    /// The lowest bit of the exponent.
    pub exponent: u8,
    /// Bits of the exponent.
    pub exponent_bits: u8,
    /// The exponent as stored of a number from 1 to 2.
    pub exponent_bias: u32,
    /// The lowest bit of the mantissa.
    pub mantissa: u8,
    /// Bits of the mantissa as stored.
    pub mantissa_bits: u8,
    /// The highest bit of the mantissa is 1 and is not stored.
    pub has_implied_bit: bool,
}

/// The bytes that fill fixed text up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPadding {
    /// The text ends at its first zero byte.
    ZeroTerminated,
    /// Zero bytes follow the text up to its end.
    Zeros,
    /// Spaces follow the text up to its end.
    Spaces,
}

/// The encoding of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Seven bits a character; other bytes are in many files all the same.
    Ascii,
    /// Unicode in one to four bytes a character.
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
    /// The name of the field.
    pub name: String,
    /// Bytes of the element before the field.
    pub offset: u32,
    /// The type of the field.
    pub datatype: Datatype,
}

/// A name of an enumeration, with its value in the bytes of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumerationMember {
    /// The name of the value.
    pub name: String,
    /// The bytes of the value.
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

    /// The float of which an element has two, real and imaginary: of a compound of `r` and `i`, as h5py writes it, or
    /// of HDF5's own complex numbers.
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

/// A number as text: its kind and bits, where they are not all bits of its bytes, and its order, where it is not
/// little-endian.
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
