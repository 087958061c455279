//! The JSON of an array as Zarr v3 lays it out, before anything in it is judged.

use serde_json::{Map, Value};

/// The members of `zarr.json` that say how an array lies in its chunks.
#[derive(Debug)]
pub(super) struct ArrayJson {
    pub shape: Vec<u64>,
    pub data_type: Extension,
    pub chunk_grid: Extension,
    pub chunk_key_encoding: Extension,
    pub fill_value: Value,
    pub codecs: Vec<Extension>,
    pub storage_transformers: Vec<Extension>,
}

/// An extension point: a name, and what it is configured by.
#[derive(Debug)]
pub(super) struct Extension {
    pub name: String,
    configuration: Map<String, Value>,
}

impl ArrayJson {
    /// # Errors
    /// A member that is missing or of another kind than the specification has it.
    pub(super) fn from_value(value: &Value) -> Result<ArrayJson, String> {
        let extension = |name: &str| {
            let member = value.get(name).ok_or_else(|| format!("it has no {name}"))?;
            Extension::from_value(member).ok_or_else(|| format!("{name} is not a name with its configuration"))
        };
        let extensions = |name: &str| match value.get(name) {
            Some(list) => Extension::list(list).ok_or_else(|| format!("{name} is not a list of names")),
            None => Err(format!("it has no {name}")),
        };
        let shape = value.get("shape").and_then(Value::as_array).ok_or("it has no shape")?;
        let shape: Option<Vec<u64>> = shape.iter().map(Value::as_u64).collect();
        let attributes = value.get("attributes").unwrap_or(&Value::Null);
        if !attributes.is_null() && !attributes.is_object() {
            return Err("its attributes are not an object".into());
        }
        if !are_dimension_names(value.get("dimension_names").unwrap_or(&Value::Null)) {
            return Err("its dimension names are not a list of names".into());
        }
        Ok(ArrayJson {
            shape: shape.ok_or("its shape is not a list of whole numbers")?,
            data_type: extension("data_type")?,
            chunk_grid: extension("chunk_grid")?,
            chunk_key_encoding: extension("chunk_key_encoding")?,
            fill_value: value.get("fill_value").ok_or("it has no fill_value")?.clone(),
            codecs: extensions("codecs")?,
            storage_transformers: match value.get("storage_transformers") {
                Some(_) => extensions("storage_transformers")?,
                None => Vec::new(),
            },
        })
    }
}

/// Names or nulls in a list, or no list.
fn are_dimension_names(value: &Value) -> bool {
    let names = value.as_array();
    value.is_null() || names.is_some_and(|names| names.iter().all(|name| name.is_string() || name.is_null()))
}

impl Extension {
    /// A name, or an object with a name, a configuration and whether it must be understood, and nothing else.
    pub(super) fn from_value(value: &Value) -> Option<Extension> {
        if let Some(name) = value.as_str() {
            let (name, configuration) = (name.to_string(), Map::new());
            return Some(Extension { name, configuration });
        }
        let members = value.as_object()?;
        let known = |name: &str| matches!(name, "name" | "configuration" | "must_understand");
        if !members.keys().all(|name| known(name))
            || members.get("must_understand").is_some_and(|own| !own.is_boolean())
        {
            return None;
        }
        let configuration = match members.get("configuration") {
            None | Some(Value::Null) => Map::new(),
            Some(configuration) => configuration.as_object()?.clone(),
        };
        Some(Extension {
            name: members.get("name")?.as_str()?.to_string(),
            configuration,
        })
    }

    pub(super) fn list(value: &Value) -> Option<Vec<Extension>> {
        value.as_array()?.iter().map(Extension::from_value).collect()
    }

    /// Whether the configuration has no other entries than these.
    pub(super) fn has_only(&self, names: &[&str]) -> bool {
        self.configuration.keys().all(|name| names.contains(&name.as_str()))
    }

    /// One entry of the configuration.
    pub(super) fn setting(&self, name: &str) -> Option<&Value> {
        self.configuration.get(name)
    }
}
