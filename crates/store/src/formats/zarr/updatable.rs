//! Arrays that are there and can be written in parts: their documents, and those of larger shapes.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde_json::Value;

use super::json::Extension;
use super::metadata::{array_of, json_of, ArrayMetadata};
use super::written::WrittenFile;
use crate::array::format::UpdatableArray;
use crate::base::words::JSON_MAX;
use crate::StoreError;

const JSON: &str = "zarr.json";

/// An array's document.
#[derive(Debug)]
pub(super) struct UpdatableDocument {
    pub text: String,
    pub metadata: ArrayMetadata,
    pub file: WrittenFile,
}

/// The array at `path`, if it can be written in parts.
///
/// # Errors
/// Nothing is there; another format than Zarr v3; codecs that are not written, which the error names; a volume.
pub(super) fn find_updatable(path: &Path) -> Result<UpdatableArray, StoreError> {
    let ArrayMetadata {
        shape, chunk, dtype, ..
    } = read(path)?.metadata;
    Ok(UpdatableArray { shape, chunk, dtype })
}

/// The document of the array at `path`.
///
/// # Errors
/// Those of `find_updatable`.
pub(super) fn read(path: &Path) -> Result<UpdatableDocument, StoreError> {
    let refused = |reason: String| StoreError::unsupported(path, format!("{reason}; parts of it are not written"));
    let json = path.join(JSON);
    if !json.is_file() {
        return match other_format(path) {
            Some(format) => Err(refused(format!("is {format}, and no array of Zarr v3"))),
            None => Err(StoreError::io(
                path,
                0,
                "open",
                std::io::Error::from(ErrorKind::NotFound),
            )),
        };
    }
    if let Some(home) = crate::volume::home_of(path) {
        return Err(refused(format!("lies in the volume {}", home.display())));
    }
    if cfg!(target_endian = "big") {
        return Err(refused("this machine is big-endian".into()));
    }
    let error = |cause| StoreError::io(&json, 0, "read", cause);
    let mut bytes = Vec::new();
    let file = fs::File::open(&json).map_err(error)?;
    file.take(JSON_MAX + 1).read_to_end(&mut bytes).map_err(error)?;
    let malformed = |reason: String| StoreError::format(path, reason);
    let text = String::from_utf8(bytes).map_err(|_| malformed("zarr.json is not UTF-8".into()))?;
    if text.len() as u64 > JSON_MAX {
        return Err(malformed("its zarr.json is too long".into()));
    }
    let value = json_of(text.as_bytes()).map_err(malformed)?;
    let metadata = array_of(&value).map_err(malformed)?;
    if metadata.edges.is_some() {
        return Err(refused("has a rectilinear chunk grid".into()));
    }
    let codecs = Extension::list(&value["codecs"]).unwrap_or_default();
    let file = WrittenFile::new(&codecs, &metadata.chunk, metadata.dtype, &metadata.fill);
    let file = file.map_err(|reason| refused(format!("has chunks encoded by {} ({reason})", codecs_of(&value))))?;
    Ok(UpdatableDocument { text, metadata, file })
}

/// The format of what is no array of Zarr v3; nothing where there is nothing.
fn other_format(path: &Path) -> Option<&'static str> {
    if path.join(".zarray").is_file() || path.join(".zgroup").is_file() {
        return Some("Zarr v2");
    }
    // A dataset's path goes on behind the name of its file.
    let file = path.ancestors().find(|path| path.exists())?;
    if !file.is_file() {
        return (file == path).then_some("a folder of another kind");
    }
    let mut magic = Vec::new();
    fs::File::open(file).ok()?.take(8).read_to_end(&mut magic).ok()?;
    Some(match magic.as_slice() {
        magic if magic.starts_with(b"\x93NUMPY") => "a .npy file",
        b"\x89HDF\r\n\x1a\n" => "HDF5",
        _ => "a file of another kind",
    })
}

fn codecs_of(value: &Value) -> String {
    let codecs = Extension::list(&value["codecs"]).unwrap_or_default();
    let names = codecs
        .iter()
        .map(|codec| match codec.setting("endian").and_then(Value::as_str) {
            Some("big") => format!("{} (big-endian)", codec.name),
            _ => codec.name.clone(),
        });
    names.collect::<Vec<_>>().join(", ")
}

/// Refuses an array whose shape a group above repeats: readers of the group would go by the old one.
///
/// # Errors
/// The group, by name.
pub(super) fn check_not_consolidated(path: &Path) -> Result<(), StoreError> {
    for group in path.ancestors().skip(1) {
        let Ok(bytes) = fs::read(group.join(JSON)) else {
            return Ok(());
        };
        let value = json_of(&bytes).unwrap_or_default();
        let name = path.strip_prefix(group).ok().and_then(Path::to_str).unwrap_or_default();
        if !value["consolidated_metadata"]["metadata"][name].is_null() {
            let reason = format!(
                "the consolidated metadata in {} have its shape; remove them (member \"consolidated_metadata\") before \
                 the array grows",
                group.join(JSON).display()
            );
            return Err(StoreError::unsupported(path, reason));
        }
    }
    Ok(())
}

impl UpdatableDocument {
    /// The same document of another shape: every other byte stays.
    ///
    /// # Errors
    /// One line: the shape is not where a reader would look for it.
    pub(super) fn with_shape(&self, shape: &[u64]) -> Result<String, String> {
        if shape == self.metadata.shape {
            return Ok(self.text.clone());
        }
        let lost = || "zarr.json does not have its shape in one plain place".to_string();
        let (start, end) = shape_place(&self.text).ok_or_else(lost)?;
        let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
        let text = format!("{}[{}]{}", &self.text[..start], lengths.join(", "), &self.text[end..]);
        let (mut before, after) = (json_of(self.text.as_bytes())?, json_of(text.as_bytes())?);
        before["shape"] = shape.into();
        array_of(&after)?;
        (before == after).then_some(text).ok_or_else(lost)
    }
}

/// Where the value of the member "shape" stands, which is a list of numbers.
fn shape_place(text: &str) -> Option<(usize, usize)> {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(&byte) = text.as_bytes().get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = end_of_text(text, at)?;
                let behind = text[end..].trim_start();
                if depth == 1 && &text[at..end] == "\"shape\"" && behind.starts_with(':') {
                    let value = behind[1..].trim_start();
                    let start = text.len() - value.len();
                    return value
                        .starts_with('[')
                        .then(|| value.find(']').map(|length| (start, start + length + 1)))?;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where a text ends that begins with a quote.
fn end_of_text(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> UpdatableDocument {
        let value = json_of(text.as_bytes()).unwrap();
        let metadata = array_of(&value).unwrap();
        let codecs = Extension::list(&value["codecs"]).unwrap();
        UpdatableDocument {
            text: text.to_string(),
            file: WrittenFile::new(&codecs, &metadata.chunk, metadata.dtype, &metadata.fill).unwrap(),
            metadata,
        }
    }

    #[test]
    fn only_the_shape_of_a_document_changes() {
        let text = r#"{"zarr_format":3, "node_type":"array", "attributes":{"shape":[9],"a":"\"shape\":[1]","x":NaN,"y":1e2},
            "shape" : [ 4,3 ],"data_type":"float64","fill_value":0.10,"codecs":["bytes"],
            "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,2]}},"chunk_key_encoding":"default"}"#;
        let document = self::document(text);
        let grown = document.with_shape(&[7, 3]).unwrap();
        assert_eq!(grown, document.text.replace("[ 4,3 ]", "[7, 3]"));
        assert_eq!(document.with_shape(&[4, 3]).unwrap(), document.text);
        let escaped = document.text.replace("\"shape\" :", "\"sh\\u0061pe\" :");
        assert!(self::document(&escaped).with_shape(&[7, 3]).is_err());
    }
}
