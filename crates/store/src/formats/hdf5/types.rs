//! Elements and filters of datasets.

use outcore_dtype::DType;
use outcore_hdf5::{ByteOrder, Datatype, Filter, TypeClass};

use crate::chunked::blocks::Bitshuffle;
use crate::chunked::chain::{CodecChain, CodecStage, DecodeSpace};
use crate::chunked::scaling::ScaleOffset;

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
        6 => CodecStage::ScaleOffset(ScaleOffset::from_values(&filter.values, item)?),
        32000 => CodecStage::Lzf,
        32001 => CodecStage::Blosc,
        32004 => CodecStage::Lz4Blocks,
        32008 => CodecStage::Bitshuffle(Bitshuffle::from_values(&filter.values)?),
        32015 => CodecStage::Zstd,
        id if filter.name.is_empty() => return Err(format!("filter {id}")),
        id => return Err(format!("filter {id} ({})", filter.name)),
    })
}

/// The `decoded` bytes of a chunk whose filters are these, by their registered numbers and what they are set by: for tests of
/// damaged chunks.
///
/// # Errors
/// A filter that is not supported, or a chunk that is damaged; the filter is named.
pub fn decode_hdf5_chunk(
    filters: &[(u16, Vec<u32>)],
    item: usize,
    encoded: &[u8],
    decoded: usize,
) -> Result<Vec<u8>, String> {
    let stages = filters.iter().map(|(id, values)| {
        let filter = Filter {
            id: *id,
            name: String::new(),
            values: values.clone(),
            is_optional: false,
        };
        stage_of(&filter, item)
    });
    let chain = CodecChain::new(None, false, stages.collect::<Result<_, _>>()?);
    let mut space = DecodeSpace::default();
    let bytes = chain.decode(encoded, decoded, 0, &mut space, None)?;
    Ok(bytes.map(<[u8]>::to_vec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILTERS: [u16; 11] = [1, 2, 3, 4, 5, 6, 32000, 32001, 32004, 32008, 32015];

    /// Numbers that filters are set by, most of them those of a filter that there is.
    fn values() -> impl Strategy<Value = Vec<u32>> {
        let number = prop_oneof![0u32..9, Just(16), Just(64), any::<u32>()];
        prop_oneof![
            proptest::collection::vec(number, 0..10),
            (0u32..3, 0u32..2, 0u32..80).prop_map(|(kind, class, count)| vec![kind, 2, count, class, 4, 1, 0, 1, 9]),
            (1u32..9, 0u32..4, 0u32..4).prop_map(|(item, block, codec)| vec![0, 4, item, 8 * block, codec]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(
            std::env::var("OUTCORE_TEST_CHUNKS").ok().and_then(|count| count.parse().ok()).unwrap_or(2000)
        ))]
        #[test]
        fn damaged_chunks_are_refused_without_a_panic(
            filters in proptest::collection::vec((proptest::sample::select(&FILTERS[..]), values()), 1..3),
            head in proptest::collection::vec(prop_oneof![Just(0u8), 0u8..40, any::<u8>()], 0..24),
            tail in proptest::collection::vec(any::<u8>(), 0..300),
            decoded in 0usize..400,
        ) {
            let chunk = [head, tail].concat();
            if let Ok(bytes) = decode_hdf5_chunk(&filters, 4, &chunk, decoded) {
                prop_assert_eq!(bytes.len(), decoded);
            }
        }
    }
}
