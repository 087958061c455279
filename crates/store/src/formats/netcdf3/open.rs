//! From a path in a file to the source of a variable, or to the group of all.

use std::path::Path;
use std::sync::Arc;

use outcore_dtype::DType;

use super::annotations::{attributes_of, of_variable};
use super::header::{parse_netcdf3_header, NcType, NcVariable, NetCdf3Header};
use super::records::RecordPlaces;
use crate::array::format::{Ability, Evidence, Format};
use crate::array::raw::RawSource;
use crate::array::source::{Opened, Opening, RawArray, Source};
use crate::array::stored::{StoredGroup, StoredMember, StoredObject};
use crate::backend::stamp::Stamp;
use crate::base::page::PAGE;
use crate::chunked::chain::CodecChain;
use crate::chunked::manifest::ChunkGrid;
use crate::chunked::one_file::OneFile;
use crate::chunked::source::ChunkArray;
use crate::io::File;
use crate::memory::mapping::AlignedBuffer;
use crate::{Io, StoreError};

/// Headers larger than this are refused.
const HEADER_BYTES_MAX: u64 = 16 << 20;
/// Memory of a parsed header beside its bytes, by each of them at most.
const PARSED_PER_BYTE: usize = 8;
/// Elements of a file are big-endian.
const IS_SWAPPED: bool = cfg!(target_endian = "little");

pub(crate) struct NetCdf3;

impl Format for NetCdf3 {
    fn name(&self) -> &'static str {
        "netcdf3"
    }

    fn abilities(&self) -> &'static [Ability] {
        &[Ability::Attributes, Ability::Groups]
    }

    fn sniff(&self, evidence: Evidence<'_>) -> bool {
        matches!(evidence, Evidence::Head([b'C', b'D', b'F', 1 | 2 | 5, ..]))
    }

    /// Finds a variable of a file, or the group of all variables.
    ///
    /// # Errors
    /// No such variable, with the names of the first ones; elements that are characters; a damaged or truncated file.
    fn find(&self, path: &Path, member: &str, io: &Io, opening: &mut dyn Opening) -> Result<StoredObject, StoreError> {
        let (stamp, file) = Stamp::opened(path, io)?;
        let header = read_header(&file, stamp.bytes, io, opening)?;
        stamp.check(path, |stamp| stamp)?;
        let group = group_of(path, &header);
        if member.is_empty() {
            return Ok(StoredObject::Group(group));
        }
        let Some(variable) = header.variables.iter().find(|variable| variable.name == member) else {
            let reason = format!("no variable {member:?}; {}", group.no_array());
            return Err(StoreError::format(path, reason));
        };
        let place = VariablePlace {
            path,
            stamp,
            header: &header,
            variable,
        };
        Ok(StoredObject::Array(Opened {
            source: place.source()?,
            transposed: false,
            format: "netcdf3",
            annotations: of_variable(&header, variable),
        }))
    }
}

fn group_of(path: &Path, header: &NetCdf3Header) -> StoredGroup {
    let members = header.variables.iter().map(|variable| StoredMember {
        name: variable.name.clone(),
        is_group: false,
    });
    StoredGroup {
        path: path.to_path_buf(),
        format: "netcdf3",
        attributes: attributes_of(&header.attributes),
        members: members.collect(),
    }
}

/// The header, of as many pages as it takes.
fn read_header(file: &File, file_bytes: u64, io: &Io, opening: &mut dyn Opening) -> Result<NetCdf3Header, StoreError> {
    let path = file.path();
    let mut length = PAGE as u64;
    loop {
        opening.look()?;
        let present = length.min(file_bytes) as usize;
        let _granted = opening.keep(present.saturating_mul(PARSED_PER_BYTE))?;
        let mut pages = AlignedBuffer::new(present.next_multiple_of(PAGE).max(PAGE))
            .map_err(|cause| StoreError::io(path, 0, "map memory", cause))?;
        io.read_metadata(file, &mut pages, 0, present)?;
        let header = parse_netcdf3_header(&pages[..present], file_bytes);
        if let Some(header) = header.map_err(|reason| StoreError::format(path, reason))? {
            return Ok(header);
        }
        if length >= file_bytes {
            let reason = format!("truncated: the header goes on behind the {file_bytes} bytes of the file");
            return Err(StoreError::format(path, reason));
        }
        if length >= HEADER_BYTES_MAX {
            let reason = format!("a header of more than {HEADER_BYTES_MAX} bytes");
            return Err(StoreError::unsupported(path, reason));
        }
        length *= 8;
    }
}

struct VariablePlace<'a> {
    path: &'a Path,
    stamp: Stamp,
    header: &'a NetCdf3Header,
    variable: &'a NcVariable,
}

impl VariablePlace<'_> {
    fn source(&self) -> Result<Arc<dyn Source>, StoreError> {
        let (variable, header) = (self.variable, self.header);
        let NcType::Number(dtype) = variable.kind else {
            let reason = format!(
                "{:?} has elements that are characters (NC_CHAR), which are not read",
                variable.name
            );
            return Err(StoreError::unsupported(self.path, reason));
        };
        self.check_end()?;
        let shape = header.shape(variable);
        let is_apart = variable.is_record && header.records > 1 && header.record_bytes != variable.bytes;
        if is_apart {
            return Ok(self.records(shape, dtype));
        }
        let is_empty = variable.is_record && header.records == 0;
        let raw = RawArray {
            // A record variable without records may begin behind the end.
            start: if is_empty { 0 } else { variable.begin },
            shape,
            dtype,
            swapped: IS_SWAPPED,
        };
        Ok(Arc::new(RawSource::placed(self.path, self.stamp, raw)?))
    }

    /// Refuses a variable that the file ends before, by both lengths.
    fn check_end(&self) -> Result<(), StoreError> {
        let (variable, header) = (self.variable, self.header);
        let (count, distance) = match variable.is_record {
            true => (header.records, header.record_bytes),
            false => (1, 0),
        };
        let Some(last) = count.checked_sub(1) else {
            return Ok(());
        };
        let end = last
            .checked_mul(distance)
            .and_then(|before| before.checked_add(variable.begin)?.checked_add(variable.bytes));
        if end.is_some_and(|end| end <= self.stamp.bytes) {
            return Ok(());
        }
        let need = end.map_or("more bytes than files have".into(), |end| format!("{end} bytes"));
        let shape = header.shape(variable);
        let reason = format!(
            "truncated: {:?} of shape {shape:?} from byte {} on needs {need}, the file has {}",
            variable.name, variable.begin, self.stamp.bytes
        );
        Err(StoreError::format(self.path, reason))
    }

    /// Records with those of other variables between them.
    fn records(&self, shape: Vec<u64>, dtype: DType) -> Arc<dyn Source> {
        let variable = self.variable;
        let mut unit = shape.clone();
        unit[0] = 1;
        let grid = ChunkGrid {
            cell: shape.clone(),
            unit,
            fill: vec![0; dtype.size()],
            chain: CodecChain::new(None, true, vec![]),
            shape,
            dtype,
            is_cut: false,
        };
        let units = RecordPlaces {
            begin: variable.begin,
            bytes: variable.bytes,
            distance: self.header.record_bytes,
        };
        let manifest = OneFile::new(self.path, &variable.name, self.stamp, units);
        Arc::new(ChunkArray { grid, manifest })
    }
}
