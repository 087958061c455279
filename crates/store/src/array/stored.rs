//! Objects that paths lead to: arrays, and groups of them.

use std::path::PathBuf;

use super::annotations::Annotation;
use super::record::StoredRecords;
use super::source::Opened;
use crate::StoreError;

/// Members that a refusal names at most.
const NAMED_MAX: usize = 12;

/// A group of arrays and further groups.
#[derive(Clone, Debug)]
pub struct StoredGroup {
    /// `path/member` opens a member.
    pub path: PathBuf,
    /// The format, by its short name.
    pub format: &'static str,
    pub attributes: Vec<Annotation>,
    /// By name.
    pub members: Vec<StoredMember>,
}

impl StoredGroup {
    /// The refusal of a group where an array is asked for.
    pub fn no_array(&self) -> StoreError {
        let arrays = self.members.iter().filter(|member| !member.is_group);
        let names: Vec<&str> = arrays.map(|member| member.name.as_str()).collect();
        let shown = names[..names.len().min(NAMED_MAX)].join(", ");
        let more = if names.len() > NAMED_MAX { " and others" } else { "" };
        StoreError::format(
            &self.path,
            format!("a group, not an array; its arrays are {shown}{more}"),
        )
    }
}

/// A name in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMember {
    pub name: String,
    pub is_group: bool,
}

/// The object that a path leads to.
#[derive(Clone, Debug)]
pub enum StoredObject {
    Array(Opened),
    Records(StoredRecords),
    Group(StoredGroup),
}
