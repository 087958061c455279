//! Names of chunks: from coordinates to files below the array's folder, and back.

use std::fmt::Write;

use serde_json::Value;

use super::json::Extension;
use crate::backend::remote::RemotePlace;

/// Chunk coordinates to file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyEncoding {
    /// `c` stands before the coordinates (`default`), or nothing does (`v2`).
    prefixed: bool,
    separator: char,
}

impl KeyEncoding {
    pub(super) fn from_metadata(metadata: &Extension) -> Result<KeyEncoding, String> {
        let (prefixed, usual) = match metadata.name.as_str() {
            "default" => (true, "/"),
            "v2" => (false, "."),
            other => return Err(format!("chunk key encoding {other:?} is not supported")),
        };
        let separator = match metadata.setting("separator").map_or(Some(usual), Value::as_str) {
            Some("/") => '/',
            Some(".") => '.',
            _ => return Err("the chunk key separator is neither \"/\" nor \".\"".into()),
        };
        Ok(KeyEncoding { prefixed, separator })
    }

    /// The name of a chunk's file below the array's folder.
    pub(super) fn name(&self, index: &[u64]) -> String {
        let mut name = String::from(if self.prefixed { "c" } else { "" });
        for &at in index {
            if !name.is_empty() {
                name.push(self.separator);
            }
            let _ = write!(name, "{at}");
        }
        if name.is_empty() {
            name.push('0');
        }
        name
    }

    /// The coordinates of a chunk's file below the array's folder; nothing for any other file.
    pub(super) fn index(&self, name: &str, axes: usize) -> Option<Vec<u64>> {
        let mut parts: Vec<&str> = name.split(self.separator).collect();
        if self.prefixed || axes == 0 {
            parts.remove(0);
        }
        let index: Option<Vec<u64>> = parts.iter().map(|part| part.parse().ok()).collect();
        index.filter(|index| index.len() == axes && self.name(index) == name)
    }

    /// Where each coordinate but the last is a folder: the one that holds those of the first axis.
    pub(super) fn folders(&self, axes: usize) -> Option<&'static str> {
        (self.separator == '/' && axes > 0).then_some(if self.prefixed { "c" } else { "." })
    }

    /// The coordinates in a name that has them all; false for any other name.
    pub(super) fn parse(&self, name: &[u8], counts: &[u64], into: &mut Vec<u64>) -> bool {
        into.clear();
        if counts.is_empty() {
            return name == self.name(&[]).as_bytes();
        }
        let rest = if self.prefixed {
            name.strip_prefix(b"c.")
        } else {
            Some(name)
        };
        let Some(rest) = rest else { return false };
        for (part, &count) in rest.split(|&byte| byte == b'.').zip(counts) {
            match coordinate(part, count) {
                Some(at) => into.push(at),
                None => return false,
            }
        }
        into.len() == counts.len() && rest.iter().filter(|&&byte| byte == b'.').count() + 1 == counts.len()
    }
}

/// How keys of all that is below a folder of a store begin.
pub(super) fn prefix_of(place: &RemotePlace) -> String {
    if place.key.is_empty() {
        return String::new();
    }
    format!("{}/", place.key)
}

/// A coordinate below `count`, written as we would write it.
pub(super) fn coordinate(text: &[u8], count: u64) -> Option<u64> {
    let plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit) && (text[0] != b'0' || text.len() == 1);
    let number = std::str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()?;
    (number < count).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_we_would_write_are_chunks() {
        let flat = KeyEncoding {
            prefixed: true,
            separator: '.',
        };
        let mut found = vec![];
        assert_eq!(flat.name(&[3, 10]), "c.3.10");
        assert!(flat.parse(b"c.3.10", &[4, 11], &mut found));
        assert_eq!(found, [3, 10]);
        for other in [
            "c.3",
            "c.3.10.0",
            "c.03.1",
            "c.4.0",
            "c.3.",
            "3.10",
            "c.3.+1",
            "zarr.json",
            "c",
        ] {
            assert!(!flat.parse(other.as_bytes(), &[4, 11], &mut found), "{other}");
        }
        assert_eq!(coordinate(b"99999999999999999999", u64::MAX), None);
    }
}
