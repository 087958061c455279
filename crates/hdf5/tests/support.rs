//! Files in memory that count, and the listing of a file as text; the same as `data/listing.py` writes by h5py.
#![allow(dead_code)] // each test uses its part

use std::cell::Cell;
use std::fmt::{Display, Write};
use std::path::PathBuf;

use outcore_hdf5::{
    chunks, Attribute, AttributeValues, Charset, ChunkPlace, DataLayout, DatasetFacts, Datatype, FileBytes,
    GroupListing, Hdf5Error, Hdf5File, Hdf5Object, MemberKind, TextPadding, TypeClass,
};

/// Objects that a listing goes through, and groups within each other: more than any fixture has.
const OBJECTS_MAX: usize = 1 << 16;
const DEPTH_MAX: usize = 16;

/// Bytes that count reads and the memory that is asked for, which has a limit.
pub struct CountingFile {
    pub bytes: Vec<u8>,
    pub limit: usize,
    pub kept: Cell<usize>,
    pub asked: Cell<usize>,
    pub read: Cell<u64>,
}

impl CountingFile {
    pub fn new(bytes: Vec<u8>, limit: usize) -> CountingFile {
        CountingFile {
            bytes,
            limit,
            kept: Cell::new(0),
            asked: Cell::new(0),
            read: Cell::new(0),
        }
    }
}

impl FileBytes for CountingFile {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Hdf5Error> {
        self.read.set(self.read.get() + into.len() as u64);
        let from = offset as usize;
        into.copy_from_slice(&self.bytes[from..from + into.len()]);
        Ok(())
    }

    fn keep(&self, bytes: usize) -> Result<(), Hdf5Error> {
        self.kept.set(self.kept.get() + bytes);
        self.asked.set(self.asked.get() + 1);
        if self.kept.get() > self.limit {
            return Err(Hdf5Error::Interrupted(format!("more than {} bytes", self.limit)));
        }
        Ok(())
    }
}

/// Runs of each kind for each file.
pub fn runs() -> usize {
    std::env::var("OUTCORE_TEST_MUTATIONS").map_or(150, |count| count.parse().unwrap())
}

/// The folder of the fixtures.
pub fn data_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The fixtures, by name.
pub fn fixtures() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data_folder()).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|suffix| suffix == "h5" || suffix == "nc"));
    paths.sort();
    paths
}

/// Places of all chunks with their coordinates in the grid, in the order of the grid.
pub fn places(facts: &DatasetFacts, file: &dyn FileBytes) -> Result<Vec<(Vec<u64>, ChunkPlace)>, Hdf5Error> {
    let DataLayout::Chunked(stored) = &facts.layout else {
        return Ok(Vec::new());
    };
    let sides = facts.shape.iter().zip(&stored.shape);
    let counts: Vec<u64> = sides.map(|(length, side)| length.div_ceil(*side)).collect();
    let mut found = Vec::new();
    chunks(facts, file, &mut |place| {
        let mut number = place.number;
        let mut coordinates = vec![0; counts.len()];
        for (coordinate, count) in coordinates.iter_mut().zip(&counts).rev() {
            *coordinate = number % count;
            number /= count;
        }
        found.push((coordinates, place));
        Ok(())
    })?;
    found.sort_by_key(|(_, place)| place.number);
    Ok(found)
}

/// All that is in a file, from the root down. Links are not followed.
pub fn listing(file: &dyn FileBytes) -> Result<String, Hdf5Error> {
    let opened = Hdf5File::open(file)?;
    let mut lines = Lines {
        file,
        opened: &opened,
        text: String::new(),
        objects: 0,
    };
    lines.group("/", &opened.root()?, 0)?;
    Ok(lines.text)
}

struct Lines<'l> {
    file: &'l dyn FileBytes,
    opened: &'l Hdf5File<'l>,
    text: String,
    objects: usize,
}

fn joined<T: Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn short(name: &str) -> String {
    if name.len() < 80 {
        return name.into();
    }
    let head: String = name.chars().take(40).collect();
    format!("{head} and {} bytes", name.len() - head.len())
}

fn bits(value: f64) -> String {
    if value.is_nan() {
        "nan".into()
    } else {
        hex(&value.to_bits().to_be_bytes())
    }
}

fn or_dash<T: Display>(value: &Option<T>) -> String {
    value.as_ref().map_or("-".into(), T::to_string)
}

fn text_details(datatype: &Datatype) -> String {
    let (charset, padding) = match &datatype.class {
        TypeClass::FixedText { padding, charset } => (charset, Some(padding)),
        TypeClass::VariableText { charset } => (charset, None),
        _ => return String::new(),
    };
    let charset = if *charset == Charset::Utf8 { " utf8" } else { " ascii" };
    let padding = match padding {
        None => "",
        Some(TextPadding::ZeroTerminated) => " terminated",
        Some(TextPadding::Zeros) => " zeros",
        Some(TextPadding::Spaces) => " spaces",
    };
    format!("{charset}{padding}")
}

fn values_text(values: &AttributeValues) -> String {
    let references = |values: &[Option<u64>]| joined(&values.iter().map(or_dash).collect::<Vec<_>>());
    match values {
        AttributeValues::Empty => "empty".into(),
        AttributeValues::Signed(values) => joined(values),
        AttributeValues::Unsigned(values) => joined(values),
        AttributeValues::Floats(values) => joined(&values.iter().map(|value| bits(*value)).collect::<Vec<_>>()),
        AttributeValues::Texts(texts) => joined(&texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>()),
        AttributeValues::Booleans(values) => joined(values),
        AttributeValues::Complexes(values) => {
            let pair = |[real, imaginary]: &[f64; 2]| format!("{}+{}", bits(*real), bits(*imaginary));
            joined(&values.iter().map(pair).collect::<Vec<_>>())
        }
        AttributeValues::References(values) => references(values),
        AttributeValues::ReferenceLists(lists) => joined(
            &lists
                .iter()
                .map(|list| format!("[{}]", references(list)))
                .collect::<Vec<_>>(),
        ),
        AttributeValues::Other(name) => format!("other {name}"),
    }
}

impl Lines<'_> {
    fn add(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").unwrap();
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        let mut attributes: Vec<&Attribute> = attributes.iter().collect();
        attributes.sort_by(|one, other| one.name.cmp(&other.name));
        for Attribute {
            name,
            datatype,
            shape,
            values,
        } in attributes
        {
            if name == "REFERENCE_LIST" {
                self.add(format!("  attribute {name}"));
                continue;
            }
            let details = text_details(datatype);
            let line = format!(
                "  attribute {name}: {datatype}{details} {shape:?} = {}",
                values_text(values)
            );
            self.add(line.trim_end());
        }
    }

    fn group(&mut self, path: &str, group: &GroupListing, depth: usize) -> Result<(), Hdf5Error> {
        self.add(format!("group {path}"));
        let mut inner = Vec::new();
        for member in &group.members {
            let kind = match &member.kind {
                MemberKind::Group => "group",
                MemberKind::Dataset => "dataset",
                MemberKind::NamedType => "type",
                MemberKind::SoftLink(target) => {
                    self.add(format!("  member {}: soft link {target}", member.name));
                    continue;
                }
                MemberKind::ExternalLink { file, path } => {
                    self.add(format!("  member {}: external link {file} {path}", member.name));
                    continue;
                }
            };
            let order = member
                .created
                .map_or(String::new(), |created| format!(" created {created}"));
            self.add(format!(
                "  member {}: {kind} {}{order}",
                short(&member.name),
                or_dash(&member.address)
            ));
            inner.push(format!("{}/{}", path.trim_end_matches('/'), member.name));
        }
        self.attributes(&group.attributes);
        for path in inner {
            // Damaged files have groups within themselves.
            self.objects += 1;
            if depth == DEPTH_MAX || self.objects > OBJECTS_MAX {
                return Ok(());
            }
            let path = &path;
            match self.opened.object(path)? {
                Hdf5Object::Group(group) => self.group(path, &group, depth + 1)?,
                Hdf5Object::Dataset(facts) => self.dataset(path, &facts)?,
                Hdf5Object::NamedType { datatype, attributes } => {
                    self.add(format!("type {path}: {datatype}{}", text_details(&datatype)));
                    self.attributes(&attributes);
                }
            }
        }
        Ok(())
    }

    fn dataset(&mut self, path: &str, facts: &DatasetFacts) -> Result<(), Hdf5Error> {
        self.add(format!("dataset {}", short(path)));
        self.add(format!("  type {}{}", facts.datatype, text_details(&facts.datatype)));
        if facts.is_null {
            self.add("  shape null");
        } else {
            self.add(format!("  shape {:?}", facts.shape));
        }
        self.add(format!(
            "  maximum {}",
            joined(&facts.maximum.iter().map(or_dash).collect::<Vec<_>>())
        ));
        if let Some(fill) = &facts.fill {
            self.add(format!("  fill {}", hex(fill)));
        }
        for filter in &facts.filters {
            let optional = if filter.is_optional { " optional" } else { "" };
            self.add(format!("  filter {} {:?}{optional}", filter.id, filter.values));
        }
        match &facts.layout {
            DataLayout::Compact { bytes } => self.add(format!("  compact {}", hex(bytes))),
            DataLayout::Contiguous { offset, bytes } => self.add(format!("  contiguous {} {bytes}", or_dash(offset))),
            DataLayout::Chunked(stored) => {
                self.add(format!("  chunked {:?}", stored.shape));
                for (coordinates, place) in places(facts, self.file)? {
                    let ChunkPlace {
                        offset, bytes, mask, ..
                    } = place;
                    self.add(format!("  chunk {coordinates:?} {offset} {bytes} {mask}"));
                }
            }
        }
        if facts.is_scale {
            self.add("  scale");
        }
        self.add(format!(
            "  dimensions {}",
            joined(&facts.dimensions.iter().map(or_dash).collect::<Vec<_>>())
        ));
        self.attributes(&facts.attributes);
        Ok(())
    }
}
