//! The header of a NetCDF-3 file.
//!
//! After "NetCDF Classic Format Specification" and "CDF-5 Format Specification" (Unidata; Northwestern University and Argonne):
//!
//! ```text
//! header   = "CDF" version  numrecs  dim_list  attribute_list  var_list
//! list     = tag  count  item*                     (both zero where there is none)
//! dim      = name  length                          (0 is the unlimited one)
//! attribute = name  type  count  value*            (padded to 4 bytes)
//! var      = name  count  dim_id*  attribute_list  type  vsize  begin
//! ```
//!
//! Numbers are big-endian; counts have 4 bytes, 8 in CDF-5; `begin` has 4 bytes, 8 from CDF-2 on. `vsize` follows from the shape, and is
//! wrong in files with variables beyond 4 GiB: no use is made of it.

use std::collections::HashSet;

use outcore_dtype::DType;

use crate::array::region::checked_elements;

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;
/// Variables and attributes are padded to so many bytes.
const PADDING: u64 = 4;
/// Elements of a variable have less bytes than this.
const VARIABLE_BYTES_MAX: u64 = i64::MAX as u64 / 4;

/// What the header of a file says.
#[derive(Debug)]
pub struct NetCdf3Header {
    pub(super) dimensions: Vec<Dimension>,
    pub(super) attributes: Vec<NcAttribute>,
    pub(super) variables: Vec<NcVariable>,
    /// Length of the unlimited dimension.
    pub(super) records: u64,
    /// From one record to the next.
    pub(super) record_bytes: u64,
}

/// A dimension of a file.
#[derive(Debug)]
pub(super) struct Dimension {
    pub name: String,
    /// 0 is the unlimited one.
    pub length: u64,
}

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NcType {
    Char,
    Number(DType),
}

/// An attribute: its elements as they lie in the file.
#[derive(Debug)]
pub(super) struct NcAttribute {
    pub name: String,
    pub kind: NcType,
    pub bytes: Vec<u8>,
}

/// A variable.
#[derive(Debug)]
pub(super) struct NcVariable {
    pub name: String,
    /// Places in the list of dimensions.
    pub dimensions: Vec<usize>,
    pub attributes: Vec<NcAttribute>,
    pub kind: NcType,
    pub begin: u64,
    pub is_record: bool,
    /// Bytes of all elements, of a record variable those of a record; without padding.
    pub bytes: u64,
}

impl NcType {
    pub fn size(self) -> usize {
        match self {
            NcType::Char => 1,
            NcType::Number(dtype) => dtype.size(),
        }
    }
}

impl NetCdf3Header {
    pub(super) fn shape(&self, variable: &NcVariable) -> Vec<u64> {
        let lengths = variable.dimensions.iter().map(|&at| self.dimensions[at].length);
        lengths
            .map(|length| if length == 0 { self.records } else { length })
            .collect()
    }
}

/// Why a header ends: it is damaged, or goes on behind the bytes.
enum Ended {
    Damaged(String),
    Cut,
}

impl From<String> for Ended {
    fn from(reason: String) -> Ended {
        Ended::Damaged(reason)
    }
}

/// The header at the beginning of a file of `file_bytes`, of which these are the first; nothing where they end before it does.
///
/// # Errors
/// One line: what is not as the format has it, and the byte where that is.
pub fn parse_netcdf3_header(bytes: &[u8], file_bytes: u64) -> Result<Option<NetCdf3Header>, String> {
    let version = match bytes.strip_prefix(b"CDF") {
        Some([version @ (1 | 2 | 5), ..]) => *version,
        _ => return Err("not a NetCDF-3 file".into()),
    };
    let mut cursor = NcCursor { bytes, at: 4, version };
    match cursor.header(file_bytes) {
        Ok(header) => Ok(Some(header)),
        Err(Ended::Cut) => Ok(None),
        Err(Ended::Damaged(reason)) => Err(reason),
    }
}

struct NcCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    version: u8,
}

impl<'a> NcCursor<'a> {
    fn header(&mut self, file_bytes: u64) -> Result<NetCdf3Header, Ended> {
        let streaming = if self.version == 5 { u64::MAX } else { u32::MAX.into() };
        let records = self.count()?;
        let dimensions = self.list(DIMENSIONS, "dimensions", NcCursor::dimension)?;
        if dimensions.iter().filter(|dimension| dimension.length == 0).count() > 1 {
            return Err(self.damaged("two dimensions are unlimited"));
        }
        let attributes = self.list(ATTRIBUTES, "attributes", NcCursor::attribute)?;
        let variables = self.list(VARIABLES, "variables", |cursor| cursor.variable(&dimensions))?;
        let mut names = HashSet::new();
        if let Some(twice) = variables.iter().find(|variable| !names.insert(&variable.name)) {
            return Err(self.damaged(&format!("two variables are called {:?}", twice.name)));
        }
        let record_bytes = record_bytes(&variables).ok_or_else(|| self.damaged("records overflow"))?;
        let records = match records == streaming {
            true => whole_records(&variables, record_bytes, file_bytes),
            false => records,
        };
        Ok(NetCdf3Header {
            dimensions,
            attributes,
            variables,
            records,
            record_bytes,
        })
    }

    fn damaged(&self, reason: &str) -> Ended {
        Ended::Damaged(format!("damaged before byte {}: {reason}", self.at))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Ended> {
        let left = &self.bytes[self.at..];
        let taken = usize::try_from(length).ok().and_then(|length| left.get(..length));
        let taken = taken.ok_or(Ended::Cut)?;
        self.at += taken.len();
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, Ended> {
        let bytes = self.take(4)?.first_chunk().ok_or(Ended::Cut)?;
        Ok(u32::from_be_bytes(*bytes))
    }

    fn u64(&mut self) -> Result<u64, Ended> {
        let bytes = self.take(8)?.first_chunk().ok_or(Ended::Cut)?;
        Ok(u64::from_be_bytes(*bytes))
    }

    fn count(&mut self) -> Result<u64, Ended> {
        match self.version {
            5 => self.u64(),
            _ => self.u32().map(u64::from),
        }
    }

    /// Bytes, and their padding.
    fn padded(&mut self, length: u64) -> Result<&'a [u8], Ended> {
        let padded = length.checked_next_multiple_of(PADDING).ok_or(Ended::Cut)?;
        let taken = self.take(padded)?;
        Ok(&taken[..length as usize])
    }

    fn name(&mut self) -> Result<String, Ended> {
        let length = self.count()?;
        let bytes = self.padded(length)?;
        match std::str::from_utf8(bytes) {
            Ok(name) if !name.is_empty() => Ok(name.into()),
            _ => Err(self.damaged("a name is empty or no text")),
        }
    }

    fn list<T>(
        &mut self,
        tag: u32,
        what: &str,
        mut item: impl FnMut(&mut NcCursor<'a>) -> Result<T, Ended>,
    ) -> Result<Vec<T>, Ended> {
        let (found, count) = (self.u32()?, self.count()?);
        if found != tag && (found, count) != (0, 0) {
            return Err(self.damaged(&format!("a list of {what} has the tag {found}")));
        }
        // Each item has some bytes: a list is not longer than the header.
        let mut items = vec![];
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn dimension(&mut self) -> Result<Dimension, Ended> {
        Ok(Dimension {
            name: self.name()?,
            length: self.count()?,
        })
    }

    fn kind(&mut self) -> Result<NcType, Ended> {
        let kind = match self.u32()? {
            1 => NcType::Number(DType::I8),
            2 => NcType::Char,
            3 => NcType::Number(DType::I16),
            4 => NcType::Number(DType::I32),
            5 => NcType::Number(DType::F32),
            6 => NcType::Number(DType::F64),
            7 => NcType::Number(DType::U8),
            8 => NcType::Number(DType::U16),
            9 => NcType::Number(DType::U32),
            10 => NcType::Number(DType::I64),
            11 => NcType::Number(DType::U64),
            other => return Err(self.damaged(&format!("no type has the number {other}"))),
        };
        Ok(kind)
    }

    fn attribute(&mut self) -> Result<NcAttribute, Ended> {
        let (name, kind) = (self.name()?, self.kind()?);
        let length = self.count()?.checked_mul(kind.size() as u64).ok_or(Ended::Cut)?;
        Ok(NcAttribute {
            name,
            kind,
            bytes: self.padded(length)?.to_vec(),
        })
    }

    fn variable(&mut self, dimensions: &[Dimension]) -> Result<NcVariable, Ended> {
        let name = self.name()?;
        let mut places = vec![];
        for axis in 0..self.count()? {
            let id = self.count()?;
            let place = usize::try_from(id).ok().filter(|at| *at < dimensions.len());
            let place = place.ok_or_else(|| self.damaged(&format!("{name:?} has dimension {id}, which is none")))?;
            if axis > 0 && dimensions[place].length == 0 {
                return Err(self.damaged(&format!("{name:?} has the unlimited dimension behind its first")));
            }
            places.push(place);
        }
        let attributes = self.list(ATTRIBUTES, "attributes", NcCursor::attribute)?;
        let kind = self.kind()?;
        self.count()?; // vsize
        let begin = match self.version {
            1 => self.u32()?.into(),
            _ => self.u64()?,
        };
        let is_record = places.first().is_some_and(|&first| dimensions[first].length == 0);
        let lengths: Vec<u64> = places[usize::from(is_record)..]
            .iter()
            .map(|&at| dimensions[at].length)
            .collect();
        let bytes = checked_elements(&lengths).and_then(|elements| elements.checked_mul(kind.size() as u64));
        let bytes = bytes.filter(|bytes| *bytes < VARIABLE_BYTES_MAX);
        Ok(NcVariable {
            bytes: bytes.ok_or_else(|| self.damaged(&format!("{name:?} of shape {lengths:?} overflows")))?,
            name,
            dimensions: places,
            attributes,
            kind,
            begin,
            is_record,
        })
    }
}

/// From one record to the next: all record variables, each padded; one alone is not.
fn record_bytes(variables: &[NcVariable]) -> Option<u64> {
    let mut records = variables.iter().filter(|variable| variable.is_record);
    match (records.next(), records.next()) {
        (None, _) => Some(0),
        (Some(sole), None) => Some(sole.bytes),
        _ => {
            let records = variables.iter().filter(|variable| variable.is_record);
            let mut padded = records.map(|variable| variable.bytes.next_multiple_of(PADDING));
            let sum = padded.try_fold(0, u64::checked_add)?;
            (sum < VARIABLE_BYTES_MAX).then_some(sum)
        }
    }
}

/// Records that lie in the file with all their variables, where the header says no number because the file was written as a stream.
fn whole_records(variables: &[NcVariable], record_bytes: u64, file_bytes: u64) -> u64 {
    let records = || variables.iter().filter(|variable| variable.is_record);
    let ends = records().map(|variable| variable.begin.saturating_add(variable.bytes));
    match (record_bytes, ends.max()) {
        (0, _) | (_, None) => 0,
        (each, Some(end)) if end <= file_bytes => (file_bytes - end) / each + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// A file with the record variables `a`, of one short, and `b`, of a double, with so many records.
    fn sample(records: u32) -> Vec<u8> {
        let mut bytes = b"CDF\x01".to_vec();
        let name = |letter: u8| u32::from(letter) << 24;
        bytes.extend(words(&[records, DIMENSIONS, 1, 1, name(b't'), 0, 0, 0]));
        bytes.extend(words(&[VARIABLES, 2]));
        bytes.extend(words(&[1, name(b'a'), 1, 0, 0, 0, 3, 4, 200]));
        bytes.extend(words(&[1, name(b'b'), 1, 0, 0, 0, 6, 8, 204]));
        bytes
    }

    #[test]
    fn records_of_several_variables_are_padded() {
        let header = parse_netcdf3_header(&sample(7), 1000).unwrap().unwrap();
        assert_eq!((header.records, header.record_bytes), (7, 12));
        assert_eq!(header.shape(&header.variables[1]), [7]);
    }

    #[test]
    fn a_stream_has_the_records_that_lie_in_the_file() {
        let records = |bytes| parse_netcdf3_header(&sample(u32::MAX), bytes).unwrap().unwrap().records;
        assert_eq!([0, 211, 212, 223, 224].map(records), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn every_beginning_of_a_header_is_known_to_be_one() {
        let whole = sample(1);
        for cut in 4..whole.len() {
            assert!(parse_netcdf3_header(&whole[..cut], 1000).unwrap().is_none(), "{cut}");
        }
    }

    #[test]
    fn any_changed_word_is_an_answer_or_an_error_of_one_line() {
        let whole = sample(1);
        for at in (4..whole.len()).step_by(4) {
            for word in [0, 1, 2, 5, 0x7fff_ffff, u32::MAX] {
                let mut changed = whole.clone();
                changed[at..at + 4].copy_from_slice(&word.to_be_bytes());
                if let Err(reason) = parse_netcdf3_header(&changed, 1000) {
                    assert!(!reason.contains('\n'), "{reason}");
                }
            }
        }
    }
}
