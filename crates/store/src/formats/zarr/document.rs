//! The document of a folder: of an array or of a group, of Zarr v3 or v2.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::keys::prefix_of;
use super::metadata::{array_of, json_of, ArrayMetadata};
use super::version2::array_as_v3;
use crate::array::annotations::{Annotation, AnnotationValue, Annotations};
use crate::array::stored::{StoredGroup, StoredMember};
use crate::backend::remote::{place_of, RemotePlace};
use crate::backend::stamp::Stamp;
use crate::base::words::JSON_MAX;
use crate::StoreError;

/// The refusal of a folder that Zarr did not write.
pub(crate) const NO_DOCUMENT: &str = "not a Zarr array or group: no zarr.json";
const V3: &str = "zarr.json";
const V2_ARRAY: &str = ".zarray";
const V2_GROUP: &str = ".zgroup";
const V2_ATTRIBUTES: &str = ".zattrs";
const V2_CONSOLIDATED: &str = ".zmetadata";
/// The attribute in which xarray keeps names of axes in Zarr v2.
const V2_DIMS: &str = "_ARRAY_DIMENSIONS";
/// Members of a group at most: a folder of more is no group.
const MEMBERS_MAX: usize = 1 << 20;

/// What the document of a folder says.
pub(super) enum ZarrNode {
    Array(Box<ZarrDocument>),
    Group(Vec<Annotation>),
}

/// The document of an array, and the file that it was read from.
pub(super) struct ZarrDocument {
    pub metadata: ArrayMetadata,
    pub annotations: Annotations,
    pub file: PathBuf,
    pub stamp: Stamp,
}

/// Whether a path is below a folder that is a group of v3.
pub(super) fn is_in_group(path: &Path) -> bool {
    let document = path.parent().map(|parent| document(&parent.join(V3)));
    let node = |value: &Value| value.get("node_type").and_then(Value::as_str) == Some("group");
    document.is_some_and(|found| found.is_ok_and(|(value, _)| node(&value)))
}

/// Reads the document of a folder.
///
/// # Errors
/// No document; one that cannot be read or is not supported.
pub(super) fn read(dir: &Path) -> Result<ZarrNode, StoreError> {
    let refused = |reason: String| StoreError::format(dir, reason);
    let present = |name: &str| {
        let file = dir.join(name);
        is_present(&file).map(|is_present| is_present.then_some(file))
    };
    if let Some(file) = present(V3)? {
        let (value, stamp) = document(&file)?;
        let attributes = attributes_of(value.get("attributes"));
        if value.get("node_type").and_then(Value::as_str) == Some("group") {
            return Ok(ZarrNode::Group(attributes));
        }
        let metadata = array_of(&value).map_err(refused)?;
        let dims = value.get("dimension_names").and_then(Value::as_array);
        let annotations = annotated(dir, &metadata, dims, attributes);
        return Ok(array(metadata, annotations, file, stamp));
    }
    if let Some(file) = present(V2_ARRAY)? {
        let (value, stamp) = document(&file)?;
        let fill = value.get("fill_value").filter(|fill| !fill.is_null()).cloned();
        let metadata = array_as_v3(&value)
            .and_then(|value| array_of(&value))
            .map_err(refused)?;
        let mut attributes = v2_attributes(dir)?;
        let dims = attributes.as_object_mut().and_then(|members| members.remove(V2_DIMS));
        let dims = dims.as_ref().and_then(Value::as_array);
        if let (Some(fill), Some(_), Some(members)) = (fill, dims, attributes.as_object_mut()) {
            // Of xarray: what was never written is what is missing.
            members.entry("_FillValue").or_insert(fill);
        }
        let annotations = annotated(dir, &metadata, dims, attributes_of(Some(&attributes)));
        return Ok(array(metadata, annotations, file, stamp));
    }
    if present(V2_GROUP)?.is_some() {
        return Ok(ZarrNode::Group(attributes_of(Some(&v2_attributes(dir)?))));
    }
    Err(refused(NO_DOCUMENT.into()))
}

fn array(metadata: ArrayMetadata, annotations: Annotations, file: PathBuf, stamp: Stamp) -> ZarrNode {
    ZarrNode::Array(Box::new(ZarrDocument {
        metadata,
        annotations,
        file,
        stamp,
    }))
}

/// Whether a document is there.
fn is_present(file: &Path) -> Result<bool, StoreError> {
    match place_of(file) {
        Some(place) => match place.store.facts(&place.key) {
            Ok(_) => Ok(true),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(StoreError::io(file, 0, "open", cause)),
        },
        None => Ok(file.is_file()),
    }
}

/// The JSON of a file, and its stamp.
fn document(file: &Path) -> Result<(Value, Stamp), StoreError> {
    if let Some(place) = place_of(file) {
        let read = place.store.content(&place.key, JSON_MAX);
        let (text, facts) = read.map_err(|cause| StoreError::io(file, 0, "read", cause))?;
        let value = json_of(&text).map_err(|reason| StoreError::format(file, reason))?;
        return Ok((value, Stamp::of_object(&place, facts)));
    }
    let stamp = Stamp::settled(file)?;
    if stamp.bytes > JSON_MAX {
        return Err(StoreError::format(
            file,
            format!("{} bytes of metadata are too many", stamp.bytes),
        ));
    }
    let text = std::fs::read(file).map_err(|cause| StoreError::io(file, 0, "read", cause))?;
    let value = json_of(&text).map_err(|reason| StoreError::format(file, reason))?;
    Ok((value, stamp))
}

fn v2_attributes(dir: &Path) -> Result<Value, StoreError> {
    let file = dir.join(V2_ATTRIBUTES);
    if !is_present(&file)? {
        return Ok(Value::Null);
    }
    Ok(document(&file)?.0)
}

fn annotated(
    dir: &Path,
    metadata: &ArrayMetadata,
    dims: Option<&Vec<Value>>,
    attributes: Vec<Annotation>,
) -> Annotations {
    let axes = metadata.axes();
    let named = |value: &Value| value.as_str().map(String::from);
    let dims = dims.filter(|dims| dims.len() == axes);
    Annotations {
        name: dir.file_stem().and_then(|name| name.to_str()).map(String::from),
        dims: dims.map_or_else(|| vec![None; axes], |dims| dims.iter().map(named).collect()),
        attributes,
    }
}

fn attributes_of(value: Option<&Value>) -> Vec<Annotation> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    let annotation = |(name, value): (&String, &Value)| Annotation {
        name: name.clone(),
        value: annotation_value(value),
    };
    members.map(annotation).collect()
}

fn annotation_value(value: &Value) -> AnnotationValue {
    let texts = |values: &Vec<Value>| values.iter().map(|value| value.as_str().map(String::from)).collect();
    match value {
        Value::String(text) => AnnotationValue::Text(text.clone()),
        Value::Array(values) if !values.is_empty() => match texts(values) {
            Some(texts) => AnnotationValue::Texts(texts),
            None => AnnotationValue::Json(value.to_string()),
        },
        other => AnnotationValue::Json(other.to_string()),
    }
}

/// The group in a folder: its members are folders with a document of their own.
pub(super) fn group_in(dir: &Path, attributes: Vec<Annotation>) -> Result<StoredGroup, StoreError> {
    if let Some(place) = place_of(dir) {
        return remote_group(dir, &place, attributes);
    }
    let error = |cause| StoreError::io(dir, 0, "list", cause);
    let mut members = vec![];
    for entry in std::fs::read_dir(dir).map_err(error)? {
        let entry = entry.map_err(error)?;
        let folder = entry.path();
        let (Ok(name), true) = (entry.file_name().into_string(), folder.is_dir()) else {
            continue;
        };
        let Some(is_group) = is_group(&folder)? else {
            continue;
        };
        if members.len() == MEMBERS_MAX {
            return Err(StoreError::format(
                dir,
                format!("a group of more than {MEMBERS_MAX} members"),
            ));
        }
        members.push(StoredMember { name, is_group });
    }
    Ok(group_of(dir, attributes, members))
}

fn group_of(dir: &Path, attributes: Vec<Annotation>, mut members: Vec<StoredMember>) -> StoredGroup {
    members.sort_by(|left, right| left.name.cmp(&right.name));
    StoredGroup {
        path: dir.to_path_buf(),
        format: "zarr",
        attributes,
        members,
    }
}

/// The group below a prefix, by its consolidated metadata where it has them, else by a list of keys.
fn remote_group(dir: &Path, place: &RemotePlace, attributes: Vec<Annotation>) -> Result<StoredGroup, StoreError> {
    if let Some(members) = consolidated(dir)? {
        return Ok(group_of(dir, attributes, members));
    }
    if !place.store.is_listed() {
        let reason = "a group without consolidated metadata, whose members this server does not list; open them by \
                      their URLs";
        return Err(StoreError::unsupported(dir, reason));
    }
    let folders = place.store.folders(&prefix_of(place));
    let mut members = vec![];
    for name in folders.map_err(|cause| StoreError::io(dir, 0, "list", cause))? {
        if let Some(is_group) = is_group(&dir.join(&name))? {
            members.push(StoredMember { name, is_group });
        }
    }
    Ok(group_of(dir, attributes, members))
}

/// The members that the document of a group lists; nothing where it does not.
fn consolidated(dir: &Path) -> Result<Option<Vec<StoredMember>>, StoreError> {
    let v3 = dir.join(V3);
    if is_present(&v3)? {
        let value = document(&v3)?.0;
        let nodes = value
            .pointer("/consolidated_metadata/metadata")
            .and_then(Value::as_object);
        let is_group = |node: &Value| node.get("node_type").and_then(Value::as_str) == Some("group");
        let member = |(name, node): (&String, &Value)| StoredMember {
            name: name.clone(),
            is_group: is_group(node),
        };
        let direct = |nodes: &serde_json::Map<String, Value>| {
            let nodes = nodes.iter().filter(|(name, _)| !name.contains('/'));
            nodes.map(member).collect()
        };
        return Ok(nodes.map(direct));
    }
    let v2 = dir.join(V2_CONSOLIDATED);
    if !is_present(&v2)? {
        return Ok(None);
    }
    let value = document(&v2)?.0;
    let names = value.get("metadata").and_then(Value::as_object);
    let member = |name: &String| match name.split('/').collect::<Vec<_>>()[..] {
        [name, file] if [V2_ARRAY, V2_GROUP].contains(&file) => Some(StoredMember {
            name: name.into(),
            is_group: file == V2_GROUP,
        }),
        _ => None,
    };
    Ok(names.map(|names| names.keys().filter_map(member).collect()))
}

/// Whether a folder is a group or an array; nothing for one that is neither. One whose document is damaged is an array that opening
/// refuses.
fn is_group(folder: &Path) -> Result<Option<bool>, StoreError> {
    let file = folder.join(V3);
    if is_present(&file)? {
        let value = document(&file).map_or(Value::Null, |(value, _)| value);
        return Ok(Some(value.get("node_type").and_then(Value::as_str) == Some("group")));
    }
    if is_present(&folder.join(V2_ARRAY))? {
        return Ok(Some(false));
    }
    Ok(is_present(&folder.join(V2_GROUP))?.then_some(true))
}
