//! What an HDF5 file says of datasets and groups beside elements.

use std::path::Path;

use outcore_dtype::DType;
use outcore_hdf5::{
    Attribute, AttributeValues, DatasetFacts, Datatype, GroupListing, GroupMember, Hdf5File, Hdf5Object, MemberKind,
    TypeClass,
};

use crate::array::annotations::{Annotation, AnnotationValue, Annotations};
use crate::array::stored::{StoredGroup, StoredMember};

/// Attributes by which dimension scales and netCDF-4 are stored: how, not what.
const INTERNAL: [&str; 8] = [
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_nc3_strict",
    "_NCCOPY",
];
/// The same, of a dimension scale.
const OF_SCALES: [&str; 2] = ["CLASS", "NAME"];
/// The name that netCDF-4 gives to a dimension scale without values, as its beginning.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// Those of the dataset `member`.
pub(super) fn of_dataset(member: &str, facts: &DatasetFacts) -> Annotations {
    let shown = |attribute: &&Attribute| {
        let name = attribute.name.as_str();
        !(INTERNAL.contains(&name) || facts.is_scale && OF_SCALES.contains(&name))
    };
    Annotations {
        name: member
            .rsplit('/')
            .next()
            .map(String::from)
            .filter(|name| !name.is_empty()),
        dims: facts.dimensions.clone(),
        attributes: facts.attributes.iter().filter(shown).map(annotation).collect(),
    }
}

/// The group `member` of a file.
pub(super) fn group_of(file: &Hdf5File<'_>, path: &Path, member: &str, listing: GroupListing) -> StoredGroup {
    let kept = |attribute: &&Attribute| !INTERNAL.contains(&attribute.name.as_str());
    let attributes = listing.attributes.iter().filter(kept).map(annotation).collect();
    let members = listing.members.into_iter().filter_map(|found| {
        let within = format!("{member}/{}", found.name);
        let is_group = is_group(file, &found, &within)?;
        Some(StoredMember {
            name: found.name,
            is_group,
        })
    });
    StoredGroup {
        path: path.join(member),
        format: "hdf5",
        attributes,
        members: members.collect(),
    }
}

/// Whether a member is a group or an array; nothing for what is neither. A damaged member is an array that opening refuses.
fn is_group(file: &Hdf5File<'_>, member: &GroupMember, within: &str) -> Option<bool> {
    match &member.kind {
        MemberKind::Group => Some(true),
        MemberKind::NamedType => None,
        MemberKind::ExternalLink { .. } => Some(false),
        MemberKind::Dataset | MemberKind::SoftLink(_) => match file.object(within) {
            Ok(Hdf5Object::Dataset(facts)) => (!is_bare_dimension(&facts)).then_some(false),
            Ok(Hdf5Object::Group(_)) => Some(true),
            Ok(Hdf5Object::NamedType { .. }) => None,
            Err(_) => Some(false),
        },
    }
}

/// Whether a dataset is there for the length of a dimension alone.
fn is_bare_dimension(facts: &DatasetFacts) -> bool {
    let name = facts.attributes.iter().find(|attribute| attribute.name == "NAME");
    facts.is_scale
        && name.is_some_and(|name| match &name.values {
            AttributeValues::Texts(texts) => texts.first().is_some_and(|text| text.starts_with(NO_VARIABLE)),
            _ => false,
        })
}

fn annotation(attribute: &Attribute) -> Annotation {
    Annotation {
        name: attribute.name.clone(),
        value: value_of(attribute),
    }
}

/// A list of one is its only value: netCDF-4 stores single values so.
fn value_of(attribute: &Attribute) -> AnnotationValue {
    let bytes = attribute.datatype.bytes;
    let shape = if attribute.shape == [1] {
        &[][..]
    } else {
        &attribute.shape
    };
    let numbers = |dtype: DType, bytes: Vec<u8>| AnnotationValue::Numbers {
        dtype,
        shape: shape.to_vec(),
        bytes,
    };
    match &attribute.values {
        AttributeValues::Texts(texts) if shape.is_empty() => {
            AnnotationValue::Text(texts.first().cloned().unwrap_or_default())
        }
        AttributeValues::Texts(texts) => AnnotationValue::Texts(texts.clone()),
        AttributeValues::Signed(values) => match base_bytes(&attribute.datatype) {
            1 => numbers(DType::I8, cut(values, |value| (*value as i8).to_ne_bytes())),
            2 => numbers(DType::I16, cut(values, |value| (*value as i16).to_ne_bytes())),
            4 => numbers(DType::I32, cut(values, |value| (*value as i32).to_ne_bytes())),
            _ => numbers(DType::I64, cut(values, |value| value.to_ne_bytes())),
        },
        AttributeValues::Unsigned(values) => match bytes {
            1 => numbers(DType::U8, cut(values, |value| (*value as u8).to_ne_bytes())),
            2 => numbers(DType::U16, cut(values, |value| (*value as u16).to_ne_bytes())),
            4 => numbers(DType::U32, cut(values, |value| (*value as u32).to_ne_bytes())),
            _ => numbers(DType::U64, cut(values, |value| value.to_ne_bytes())),
        },
        // Halves are exact as singles.
        AttributeValues::Floats(values) if bytes <= 4 => {
            numbers(DType::F32, cut(values, |value| (*value as f32).to_ne_bytes()))
        }
        AttributeValues::Floats(values) => numbers(DType::F64, cut(values, |value| value.to_ne_bytes())),
        AttributeValues::Booleans(values) => numbers(DType::Bool, values.iter().map(|&value| value.into()).collect()),
        AttributeValues::Complexes(values) => numbers(
            DType::C128,
            values.iter().flatten().flat_map(|part| part.to_ne_bytes()).collect(),
        ),
        AttributeValues::Empty => AnnotationValue::Json("null".into()),
        AttributeValues::References(_) | AttributeValues::ReferenceLists(_) => {
            AnnotationValue::Text("<references to objects of the file>".into())
        }
        AttributeValues::Other(name) => AnnotationValue::Text(format!("<{name}>")),
    }
}

/// Bytes of a number; those of an enumeration are its base's.
fn base_bytes(datatype: &Datatype) -> u32 {
    match &datatype.class {
        TypeClass::Enumeration { base, .. } => base.bytes,
        _ => datatype.bytes,
    }
}

fn cut<T, const BYTES: usize>(values: &[T], bytes: impl Fn(&T) -> [u8; BYTES]) -> Vec<u8> {
    values.iter().flat_map(bytes).collect()
}
