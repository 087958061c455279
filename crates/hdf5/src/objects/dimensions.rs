//! Names of axes: of dimension scales (HDF5 Dimension Scales, 2005), with the additions of netCDF-4.

use super::attribute::{read_attributes, Attribute};
use super::dataset::{text_of, DatasetFacts, SCALE_CLASS};
use super::group::{GroupMember, MemberKind};
use super::header::ObjectHeader;
use super::metadata::Metadata;
use super::trail::GroupTrail;
use super::values::AttributeValues;
use crate::base::Hdf5Error;

/// The name that netCDF gives to scales without values.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// The names of the axes of a dataset that is called `name` in the last group of a trail.
///
/// An axis has the name of its first scale in the groups on the way to the dataset, from the last to the root, or else
/// the name that the scale has of itself. A scale names its own axis; one with several axes (netCDF) has the numbers of
/// their dimensions. An axis without a scale may have a label.
pub(super) fn dimension_names(
    metadata: &Metadata<'_>,
    trail: &GroupTrail,
    name: &str,
    facts: &DatasetFacts,
) -> Result<Vec<Option<String>>, Hdf5Error> {
    let axes = facts.shape.len();
    let mut names = vec![None; axes];
    let values = |name: &str| {
        facts
            .attributes
            .iter()
            .find(|attribute| attribute.name == name)
            .map(|attribute| &attribute.values)
    };
    if let Some(AttributeValues::ReferenceLists(lists)) = values("DIMENSION_LIST") {
        for (axis, list) in names.iter_mut().zip(lists) {
            if let Some(at) = list.iter().flatten().next() {
                *axis = scale_name(metadata, trail, *at)?;
            }
        }
    } else if facts.is_scale && axes == 1 {
        names[0] = Some(name.to_string());
    } else if let (true, Some(numbers)) = (facts.is_scale, values("_Netcdf4Coordinates").and_then(integers)) {
        let named = numbered_scales(metadata, trail)?;
        for (axis, number) in names.iter_mut().zip(numbers) {
            *axis = named
                .iter()
                .find(|(own, _)| *own == number)
                .map(|(_, name)| name.clone());
        }
    }
    if let Some(AttributeValues::Texts(labels)) = values("DIMENSION_LABELS") {
        for (axis, label) in names.iter_mut().zip(labels) {
            if axis.is_none() && !label.is_empty() {
                *axis = Some(label.clone());
            }
        }
    }
    Ok(names)
}

fn integers(values: &AttributeValues) -> Option<Vec<i64>> {
    match values {
        AttributeValues::Signed(numbers) => Some(numbers.clone()),
        _ => None,
    }
}

fn scale_name(metadata: &Metadata<'_>, trail: &GroupTrail, at: u64) -> Result<Option<String>, Hdf5Error> {
    for members in trail.backwards() {
        if let Some(member) = members.iter().find(|member| member.address == Some(at)) {
            return Ok(Some(member.name.clone()));
        }
    }
    let attributes = attributes_at(metadata, at)?;
    let name = text_of(&attributes, "NAME").filter(|name| !name.is_empty() && !name.starts_with(NO_VARIABLE));
    Ok(name.map(String::from))
}

fn attributes_at(metadata: &Metadata<'_>, at: u64) -> Result<Vec<Attribute>, Hdf5Error> {
    read_attributes(metadata, &ObjectHeader::read(&metadata.view, at)?)
}

/// The scales of a trail with the numbers that netCDF gave to them.
fn numbered_scales(metadata: &Metadata<'_>, trail: &GroupTrail) -> Result<Vec<(i64, String)>, Hdf5Error> {
    let mut named = Vec::new();
    let of_dataset = |member: &&GroupMember| member.kind == MemberKind::Dataset;
    for member in trail.backwards().flat_map(|members| members.iter()).filter(of_dataset) {
        let Some(at) = member.address else {
            continue;
        };
        let attributes = attributes_at(metadata, at)?;
        // netCDF numbers variables that are no scales as well, by their first dimension.
        if text_of(&attributes, "CLASS") != Some(SCALE_CLASS) {
            continue;
        }
        let number = attributes.iter().find(|attribute| attribute.name == "_Netcdf4Dimid");
        let number = number
            .and_then(|number| integers(&number.values))
            .and_then(|numbers| numbers.first().copied());
        if let Some(number) = number {
            metadata.view.keep(48 + member.name.len())?;
            named.push((number, member.name.clone()));
        }
    }
    Ok(named)
}
