//! Elements and filters of datasets.

use outcore_dtype::DType;
use outcore_hdf5::{ByteOrder, Datatype, Filter, TypeClass};

use crate::chunked::chain::CodecStage;

/// The type of elements, and whether the bytes of one are in the order opposite to this machine's. Nothing for types that are no
/// numbers.
pub(super) fn element_type(datatype: &Datatype) -> Option<(DType, bool)> {
    let is_swapped = match datatype.order() {
        ByteOrder::Little => cfg!(target_endian = "big"),
        ByteOrder::Big => cfg!(target_endian = "little"),
        ByteOrder::Vax => return None,
    };
    let found = match &datatype.class {
        TypeClass::Integer { is_signed, bits } => {
            let is_whole = bits.offset == 0 && u32::from(bits.precision) == 8 * datatype.bytes;
            integer(datatype.bytes, *is_signed).filter(|_| is_whole)?
        }
        TypeClass::Bits { bits } => {
            let is_whole = bits.offset == 0 && u32::from(bits.precision) == 8 * datatype.bytes;
            integer(datatype.bytes, false).filter(|_| is_whole)?
        }
        TypeClass::Float { .. } => float(datatype)?,
        TypeClass::Enumeration { base, members } => {
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            // The truths of h5py and PyTables.
            let is_truth = datatype.bytes == 1 && names == ["FALSE", "TRUE"];
            return match is_truth {
                true => Some((DType::Bool, false)),
                false => element_type(base),
            };
        }
        TypeClass::Complex { base } => return complex_of(base),
        TypeClass::Compound { fields } => {
            let [real, imaginary] = &fields[..] else { return None };
            let is_complex = real.name == "r"
                && imaginary.name == "i"
                && real.offset == 0
                && imaginary.offset == real.datatype.bytes
                && datatype.bytes == 2 * real.datatype.bytes
                && real.datatype == imaginary.datatype;
            return complex_of(&real.datatype).filter(|_| is_complex);
        }
        _ => return None,
    };
    Some((found, is_swapped))
}

fn integer(bytes: u32, is_signed: bool) -> Option<DType> {
    Some(match (bytes, is_signed) {
        (1, true) => DType::I8,
        (2, true) => DType::I16,
        (4, true) => DType::I32,
        (8, true) => DType::I64,
        (1, false) => DType::U8,
        (2, false) => DType::U16,
        (4, false) => DType::U32,
        (8, false) => DType::U64,
        _ => return None,
    })
}

fn float(datatype: &Datatype) -> Option<DType> {
    Some(match datatype.bytes {
        _ if !datatype.is_ieee() => return None,
        2 => DType::F16,
        4 => DType::F32,
        8 => DType::F64,
        _ => return None,
    })
}

fn complex_of(base: &Datatype) -> Option<(DType, bool)> {
    let (part, is_swapped) = element_type(base)?;
    let whole = match part {
        DType::F32 => DType::C64,
        DType::F64 => DType::C128,
        _ => return None,
    };
    Some((whole, is_swapped))
}

/// The kind of elements in words.
pub(super) fn class_name(class: &TypeClass) -> &'static str {
    match class {
        TypeClass::Integer { .. } => "an integer of an odd size",
        TypeClass::Float { .. } => "a number of no IEEE format",
        TypeClass::Time => "a time",
        TypeClass::FixedText { .. } => "text of a fixed length",
        TypeClass::VariableText { .. } => "text of any length",
        TypeClass::Bits { .. } => "bits",
        TypeClass::Opaque { .. } => "opaque bytes",
        TypeClass::Compound { .. } => "a record",
        TypeClass::Reference(_) => "a reference",
        TypeClass::Enumeration { .. } => "an enumeration",
        TypeClass::VariableList { .. } => "a list",
        TypeClass::Array { .. } => "an array",
        TypeClass::Complex { .. } => "a complex number of an odd size",
    }
}

/// What undoes a filter, or its name where none does.
pub(super) fn stage_of(filter: &Filter, item: usize) -> Result<CodecStage, String> {
    Ok(match filter.id {
        1 => CodecStage::Zlib,
        2 => CodecStage::Shuffle(filter.values.first().copied().unwrap_or(item as u32).max(1)),
        3 => CodecStage::Fletcher32,
        32000 => CodecStage::Lzf,
        32001 => CodecStage::Blosc,
        32015 => CodecStage::Zstd,
        id if filter.name.is_empty() => return Err(format!("filter {id}")),
        id => return Err(format!("filter {id} ({})", filter.name)),
    })
}
