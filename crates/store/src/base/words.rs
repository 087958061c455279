//! Numbers and names in headers of our own files, whose length was looked at.

use outcore_dtype::DType;

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the length was looked at"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the length was looked at"))
}

/// The type whose name stands there, filled with zeros; nothing where it is `none`.
///
/// # Errors
/// The name, of a type that there is not.
pub(crate) fn dtype_named(field: &[u8], none: &str) -> Result<Option<DType>, String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    match std::str::from_utf8(&field[..end]).unwrap_or("?") {
        name if name == none => Ok(None),
        name => DType::from_name(name).map(Some).ok_or_else(|| name.to_string()),
    }
}

/// Metadata documents larger than this are refused.
pub(crate) const JSON_MAX: u64 = 16 << 20;
