//! `outcore-volume.json`, which makes a directory a volume, and `outcore-member.json`, which makes one a disk of it.
//!
//! Both are small and untrusted: sizes, counts and names are checked before anything is made of them.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::{crc32c, crc32c_append};
use rustix::fs::OFlags;
use serde_json::{json, Value};

use super::layout::{BlockLayout, Rounds};
use super::stub::{from_hex, hex, Id};
use crate::StoreError;

pub(crate) const VOLUME_JSON: &str = "outcore-volume.json";
pub(crate) const MEMBER_JSON: &str = "outcore-member.json";
/// Where a disk's directory holds the parts of files.
pub(crate) const PARTS: &str = "parts";
pub const MEMBERS_MAX: usize = 64;
pub const WEIGHT_MAX: u32 = 1000;
const GENERATIONS_MAX: usize = 1000;
const VERSION: u64 = 1;
const BYTES_MAX: u64 = 4 << 20;

/// A disk of a volume: its directory, which is known again by its identifier wherever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: Id,
    /// Where it was last.
    pub path: PathBuf,
}

/// How files were laid out that were made in one time of a volume. Members that came later have no weight in it.
#[derive(Clone, Debug)]
pub struct Generation {
    pub number: u32,
    pub layout: BlockLayout,
    pub block_bytes: u64,
    pub weights: Vec<u32>,
    pub(crate) rounds: Arc<Rounds>,
}

impl Generation {
    /// # Errors
    /// What is wrong with it.
    pub fn new(number: u32, layout: BlockLayout, block_bytes: u64, weights: Vec<u32>) -> Result<Generation, String> {
        if let Some(weight) = weights.iter().find(|&&weight| weight > WEIGHT_MAX) {
            return Err(format!("a weight of {weight}; weights go up to {WEIGHT_MAX}"));
        }
        let rounds = Arc::new(Rounds::new(layout, block_bytes, &weights)?);
        Ok(Generation {
            number,
            layout,
            block_bytes,
            weights,
            rounds,
        })
    }
}

/// A volume: its disks, and its generations, the last of which is that of new files.
#[derive(Clone, Debug)]
pub struct Description {
    pub id: Id,
    pub members: Vec<Member>,
    pub generations: Vec<Generation>,
}

fn number(value: &Value, name: &str, most: u64) -> Result<u64, String> {
    let number = value[name].as_u64().filter(|number| *number <= most);
    number.ok_or_else(|| format!("{name} is no whole number up to {most}"))
}

fn id(value: &Value, name: &str) -> Result<Id, String> {
    let id = value[name].as_str().and_then(from_hex);
    id.ok_or_else(|| format!("{name} is not 32 hexadecimal digits"))
}

fn list<'a>(value: &'a Value, name: &str, most: usize) -> Result<&'a [Value], String> {
    let list = value[name].as_array().filter(|list| (1..=most).contains(&list.len()));
    list.map(Vec::as_slice)
        .ok_or_else(|| format!("{name} is no list of 1 to {most}"))
}

fn document(text: &[u8], key: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
    match number(&value, key, u64::MAX)? {
        VERSION => Ok(value),
        version => Err(format!("version {version}; {VERSION} is known")),
    }
}

impl Description {
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &[u8]) -> Result<Description, String> {
        let value = document(text, "outcore_volume")?;
        let mut members: Vec<Member> = Vec::new();
        for member in list(&value, "members", MEMBERS_MAX)? {
            let path = PathBuf::from(member["path"].as_str().unwrap_or_default());
            let plain = path.components().all(|part| part != std::path::Component::ParentDir);
            if !path.is_absolute() || !plain || path.as_os_str().len() > 4095 {
                return Err(format!("members: {} is no path from the root", path.display()));
            }
            let id = id(member, "id")?;
            if members.iter().any(|other| other.id == id) {
                return Err("members: two have one id".into());
            }
            members.push(Member { id, path });
        }
        let mut generations: Vec<Generation> = Vec::new();
        for generation in list(&value, "generations", GENERATIONS_MAX)? {
            let layout = generation["layout"].as_str().and_then(BlockLayout::from_name);
            let layout = layout.ok_or("layout is none of striped, rotated, hashed")?;
            let weights = list(generation, "weights", members.len())?;
            let weights = weights.iter().map(|weight| weight.as_u64()?.try_into().ok());
            let weights: Vec<u32> = weights.collect::<Option<_>>().ok_or("weights are no whole numbers")?;
            let number = number(generation, "number", u64::from(u32::MAX))? as u32;
            if generations.last().is_some_and(|last| last.number >= number) {
                return Err("generations do not ascend".into());
            }
            let block_bytes = generation["block_bytes"].as_u64().unwrap_or(0);
            generations.push(Generation::new(number, layout, block_bytes, weights)?);
        }
        Ok(Description {
            id: id(&value, "id")?,
            members,
            generations,
        })
    }

    pub fn text(&self) -> String {
        let members = self.members.iter();
        let generations = self.generations.iter();
        let value = json!({
            "outcore_volume": VERSION,
            "id": hex(&self.id),
            "members": members
                .map(|member| json!({"id": hex(&member.id), "path": member.path.to_string_lossy()}))
                .collect::<Vec<_>>(),
            "generations": generations
                .map(|one| json!({
                    "number": one.number, "layout": one.layout.name(),
                    "block_bytes": one.block_bytes, "weights": one.weights,
                }))
                .collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }

    /// That of new files.
    pub fn current(&self) -> &Generation {
        self.generations.last().expect("a description has generations")
    }

    pub(crate) fn generation(&self, number: u32) -> Option<&Generation> {
        self.generations.iter().find(|one| one.number == number)
    }

    /// What tells the layout of a generation from others of its number: layout, blocks, and which disks, in their order,
    /// have how many of them. Never 0.
    pub(crate) fn layout_sum(&self, generation: &Generation) -> u32 {
        let weights = self.members.iter().zip(&generation.weights);
        let name = crc32c(generation.layout.name().as_bytes());
        let begin = crc32c_append(name, &generation.block_bytes.to_le_bytes());
        let sum = weights
            .filter(|(_, &weight)| weight > 0)
            .fold(begin, |sum, (member, weight)| {
                crc32c_append(crc32c_append(sum, &member.id), &weight.to_le_bytes())
            });
        sum.max(1)
    }

    /// Begins another generation.
    ///
    /// # Errors
    /// What is wrong with it, or there have been too many.
    pub(crate) fn begin(&mut self, layout: BlockLayout, block_bytes: u64, weights: Vec<u32>) -> Result<(), String> {
        let number = self.current().number.checked_add(1);
        let number = number.filter(|_| self.generations.len() < GENERATIONS_MAX);
        let number = number.ok_or_else(|| format!("a volume changes {GENERATIONS_MAX} times at most"))?;
        self.generations
            .push(Generation::new(number, layout, block_bytes, weights)?);
        Ok(())
    }

    /// Reads that of the volume in `home`.
    pub(crate) fn read(home: &Path) -> Result<Description, StoreError> {
        let path = home.join(VOLUME_JSON);
        let text = read_small(&path).map_err(|cause| StoreError::io(&path, 0, "read", cause))?;
        Description::parse(&text).map_err(|reason| StoreError::format(&path, reason))
    }

    pub(crate) fn write(&self, home: &Path) -> Result<(), StoreError> {
        let path = home.join(VOLUME_JSON);
        write_whole(&path, &self.text()).map_err(|cause| StoreError::io(&path, 0, "write", cause))
    }
}

fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // A FIFO without a writer would be waited for.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "it is no regular file",
        ));
    }
    file.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "too long"));
    }
    Ok(text)
}

/// Replaces a small file: who reads it finds the old text or the new one.
pub(crate) fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let written = fs::File::create(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })?;
    fs::File::open(crate::base::directory::parent_of(path))?.sync_all()
}

/// The text that makes a directory a disk.
pub(crate) fn member_text(volume: &Id, member: &Id) -> String {
    let value = json!({"outcore_member": VERSION, "volume": hex(volume), "id": hex(member)});
    format!("{value:#}\n")
}

/// Of which volume a directory is which disk.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_member(text: &[u8]) -> Result<(Id, Id), String> {
    let value = document(text, "outcore_member")?;
    Ok((id(&value, "volume")?, id(&value, "id")?))
}

/// As `parse_member`, of a directory; nothing where it is none.
///
/// # Errors
/// What hinders a look, or what is wrong with the text.
pub(crate) fn member_at(directory: &Path) -> std::io::Result<Option<(Id, Id)>> {
    use std::io::{Error, ErrorKind};
    match read_small(&directory.join(MEMBER_JSON)) {
        Ok(text) => parse_member(&text)
            .map(Some)
            .map_err(|reason| Error::new(ErrorKind::InvalidData, format!("{MEMBER_JSON}: {reason}"))),
        Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(cause) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::stub::new_id;
    use super::*;

    fn description() -> Description {
        Description {
            id: new_id(),
            members: (0..3)
                .map(|disk| Member {
                    id: new_id(),
                    path: format!("/mnt/{disk}").into(),
                })
                .collect(),
            generations: vec![
                Generation::new(1, BlockLayout::Striped, 1 << 20, vec![1, 2]).unwrap(),
                Generation::new(4, BlockLayout::Hashed, 4096, vec![1, 2, 0]).unwrap(),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = description();
        let read = Description::parse(written.text().as_bytes()).unwrap();
        assert_eq!((read.id, &read.members), (written.id, &written.members));
        assert_eq!(read.text(), written.text());
        let member = member_text(&written.id, &written.members[0].id);
        assert_eq!(parse_member(member.as_bytes()), Ok((written.id, written.members[0].id)));
    }

    #[test]
    fn untrue_descriptions_are_refused() {
        let whole: Value = serde_json::from_str(&description().text()).unwrap();
        let mut spoilt = Vec::new();
        let mut spoil = |pointer: &str, value: Value| {
            let mut document = whole.clone();
            *document.pointer_mut(pointer).unwrap() = value;
            spoilt.push(document);
        };
        spoil("/outcore_volume", json!(2));
        spoil("/id", json!("../../etc"));
        spoil("/members", json!([]));
        spoil("/members/0/path", json!("mnt/0"));
        spoil("/members/0/path", json!("/mnt/../0"));
        spoil("/members/1/id", whole["members"][0]["id"].clone());
        spoil("/generations", json!([]));
        spoil("/generations/0/number", json!(4));
        spoil("/generations/0/layout", json!("raid"));
        spoil("/generations/0/block_bytes", json!(0));
        spoil("/generations/0/block_bytes", json!(-4096));
        spoil("/generations/0/block_bytes", json!(u64::MAX));
        spoil("/generations/0/weights", json!([1, 1, 1, 1]));
        spoil("/generations/0/weights", json!([0, 0]));
        spoil("/generations/0/weights", json!([1001]));
        spoil("/generations/0/weights", json!([1.5]));
        for document in spoilt {
            let text = document.to_string();
            assert!(Description::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in ".{0,200}") {
            let _ = Description::parse(text.as_bytes());
            prop_assert!(parse_member(text.as_bytes()).is_err());
        }
    }
}
