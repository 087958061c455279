//! The document of a folder: of an array or of a group, of Zarr v3 or v2.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::metadata::{array_of, json_of, ArrayMetadata};
use super::version2::array_as_v3;
use crate::array::annotations::{Annotation, AnnotationValue, Annotations};
use crate::array::stored::{StoredGroup, StoredMember};
use crate::backend::stamp::Stamp;
use crate::base::words::JSON_MAX;
use crate::StoreError;

const V3: &str = "zarr.json";
const V2_ARRAY: &str = ".zarray";
const V2_GROUP: &str = ".zgroup";
const V2_ATTRIBUTES: &str = ".zattrs";
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
    let there = |name: &str| Some(dir.join(name)).filter(|file| file.is_file());
    if let Some(file) = there(V3) {
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
    if let Some(file) = there(V2_ARRAY) {
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
    if there(V2_GROUP).is_some() {
        return Ok(ZarrNode::Group(attributes_of(Some(&v2_attributes(dir)?))));
    }
    Err(refused("not a Zarr array or group: no zarr.json".into()))
}

fn array(metadata: ArrayMetadata, annotations: Annotations, file: PathBuf, stamp: Stamp) -> ZarrNode {
    ZarrNode::Array(Box::new(ZarrDocument {
        metadata,
        annotations,
        file,
        stamp,
    }))
}

/// The JSON of a file, and its stamp.
fn document(file: &Path) -> Result<(Value, Stamp), StoreError> {
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
    if !file.is_file() {
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
    members.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(StoredGroup {
        path: dir.to_path_buf(),
        format: "zarr",
        attributes,
        members,
    })
}

/// Whether a folder is a group or an array; nothing for one that is neither. One whose document is damaged is an array that opening
/// refuses.
fn is_group(folder: &Path) -> Result<Option<bool>, StoreError> {
    let file = folder.join(V3);
    if file.is_file() {
        let value = document(&file).map_or(Value::Null, |(value, _)| value);
        return Ok(Some(value.get("node_type").and_then(Value::as_str) == Some("group")));
    }
    if folder.join(V2_ARRAY).is_file() {
        return Ok(Some(false));
    }
    Ok(folder.join(V2_GROUP).is_file().then_some(true))
}
