//! Attributes (specification IV.A.2.m and v): in the header of their object, or in a heap beside it.

use super::header::{HeaderMessage, ObjectHeader};
use super::metadata::Metadata;
use super::values::{decode_values, AttributeValues};
use crate::base::{text_before_zero, ByteBlock, ByteFields, Hdf5Error};
use crate::heaps::FractalHeap;
use crate::messages::{kinds, Dataspace, Datatype};
use crate::trees::RecordTree;

/// Bytes of an attribute in memory beside its name and values.
const ATTRIBUTE_BYTES: usize = 256;
/// Types of the records of attributes, by name and by order of creation.
const BY_NAME: u8 = 8;
const BY_ORDER: u8 = 9;

/// A small named array beside an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The name of the attribute.
    pub name: String,
    /// The type of its values as stored.
    pub datatype: Datatype,
    /// No axes for a single value.
    pub shape: Vec<u64>,
    /// In C order.
    pub values: AttributeValues,
}

/// The attributes of an object: in the order of creation where the file keeps one, else in the order of the header, or
/// by name where they lie in a heap.
pub(super) fn read_attributes(metadata: &Metadata<'_>, header: &ObjectHeader) -> Result<Vec<Attribute>, Hdf5Error> {
    let mut attributes = Vec::new();
    for message in header
        .messages
        .iter()
        .filter(|message| message.kind == kinds::ATTRIBUTE)
    {
        let attribute = parse_attribute(metadata, &metadata.body(message)?)?;
        attributes.push((u32::from(message.created.unwrap_or(0)), attribute));
    }
    if let Some(info) = header.message(kinds::ATTRIBUTE_INFO) {
        read_dense(metadata, info, &mut attributes)?;
    }
    // A stable sort: without an order of creation all numbers are 0.
    attributes.sort_by_key(|(created, _)| *created);
    Ok(attributes.into_iter().map(|(_, attribute)| attribute).collect())
}

fn read_dense(
    metadata: &Metadata<'_>,
    info: &HeaderMessage,
    attributes: &mut Vec<(u32, Attribute)>,
) -> Result<(), Hdf5Error> {
    let body = metadata.body(info)?;
    let mut fields = body.fields();
    fields.version(&[0], "attribute information")?;
    let flags = fields.u8()?;
    if flags & 1 != 0 {
        fields.u16()?; // the next number in the order of creation
    }
    let heap = fields.address()?;
    let by_name = fields.address()?;
    let by_order = if flags & 2 != 0 { fields.address()? } else { None };
    let Some(heap) = heap else {
        return Ok(());
    };
    let tree = by_order
        .or(by_name)
        .ok_or_else(|| fields.damaged("attributes in a heap without an index"))?;
    let view = &metadata.view;
    let mut heap = FractalHeap::open(view, heap)?;
    let tree = RecordTree::open(view, tree, &[BY_NAME, BY_ORDER])?;
    let first = attributes.len();
    tree.walk(view, &mut |record| {
        let mut name = record.part(8)?;
        let is_shared = record.u8()? & 2 != 0;
        let created = record.u32()?;
        let body = if is_shared {
            metadata.body_in_heap(kinds::ATTRIBUTE, &mut name)?
        } else {
            heap.object(view, &mut name)?
        };
        let created = if flags & 1 != 0 { created } else { 0 };
        attributes.push((created, parse_attribute(metadata, &body)?));
        Ok(())
    })?;
    if flags & 1 == 0 {
        attributes[first..].sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    }
    Ok(())
}

/// The attribute message, versions 1 to 3: sizes of three parts, then the parts, then the values.
fn parse_attribute(metadata: &Metadata<'_>, body: &ByteBlock) -> Result<Attribute, Hdf5Error> {
    let mut fields = body.fields();
    let version = fields.version(&[1, 2, 3], "attributes")?;
    let flags = fields.u8()?;
    let [name_bytes, type_bytes, space_bytes] = [fields.u16()?, fields.u16()?, fields.u16()?].map(usize::from);
    if version == 3 {
        fields.u8()?; // the character set of the name: read as UTF-8, which ASCII is
    }
    let padded = |bytes: usize| if version == 1 { bytes.next_multiple_of(8) } else { bytes };
    let name = text_before_zero(fields.bytes(padded(name_bytes))?);
    let mut part = |bytes: usize, kind: u16, is_shared: bool| {
        let mut part = fields.part(padded(bytes))?;
        if is_shared && version > 1 {
            metadata.shared_body(kind, &mut part)
        } else {
            Ok(part.block())
        }
    };
    let datatype = part(type_bytes, kinds::DATATYPE, flags & 1 != 0)?;
    let dataspace = part(space_bytes, kinds::DATASPACE, flags & 2 != 0)?;
    let datatype = metadata.datatype(&datatype)?;
    let dataspace = Dataspace::parse(&mut dataspace.fields())?;
    metadata.view.keep(ATTRIBUTE_BYTES + name.len())?;
    let values = values_of(metadata, &datatype, &dataspace, &mut fields)?;
    Ok(Attribute {
        name,
        datatype,
        shape: dataspace.shape,
        values,
    })
}

fn values_of(
    metadata: &Metadata<'_>,
    datatype: &Datatype,
    dataspace: &Dataspace,
    fields: &mut ByteFields<'_>,
) -> Result<AttributeValues, Hdf5Error> {
    if dataspace.is_null {
        return Ok(AttributeValues::Empty);
    }
    let bytes = dataspace
        .elements()
        .and_then(|elements| elements.checked_mul(datatype.bytes.into()));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| fields.damaged(format!("an attribute of shape {:?}", dataspace.shape)))?;
    decode_values(metadata, datatype, &mut fields.part(bytes)?)
}
