use serde_json::Value;
use zarrs::metadata::v3::MetadataV3;

/// One entry of an extension's configuration.
pub(super) fn setting<'a>(metadata: &'a MetadataV3, name: &str) -> Option<&'a Value> {
    metadata
        .configuration()
        .and_then(|configuration| configuration.get(name))
}
