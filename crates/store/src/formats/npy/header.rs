//! The header of a `.npy` file, versions 1 to 3. Everything in it is untrusted.

use outcore_dtype::DType;

use crate::array::region::checked_elements;
use crate::base::page::PAGE;

/// Longer headers than this are refused.
pub(super) const HEADER_MAX: usize = 1 << 20;
/// Axes that an array may have.
const AXES_MAX: usize = 64;
pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    pub dtype: DType,
    /// Bytes of an element are in the order opposite to this machine's.
    pub swapped: bool,
    pub fortran: bool,
    pub shape: Vec<u64>,
    /// Where the data starts.
    pub data_start: u64,
}

/// Where the data starts, from the first 12 bytes.
pub(super) fn header_bytes(bytes: &[u8]) -> Result<usize, String> {
    let prefix = bytes.get(..12).ok_or("not a .npy file: it is too short for a header")?;
    if &prefix[..6] != MAGIC {
        return Err("not a .npy file: the magic bytes are missing".into());
    }
    let (length, start) = match prefix[6] {
        1 => (usize::from(u16::from_le_bytes([prefix[8], prefix[9]])), 10),
        2 | 3 => (
            u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]) as usize,
            12,
        ),
        other => return Err(format!("unknown .npy version {other}")),
    };
    if length > HEADER_MAX {
        return Err(format!("the .npy header claims {length} bytes, more than {HEADER_MAX}"));
    }
    Ok(start + length)
}

/// Reads a header from the first bytes of a file.
///
/// # Errors
/// One line: truncated, malformed, a type that is not supported, or a shape that overflows.
pub fn parse_npy_header(bytes: &[u8]) -> Result<NpyHeader, String> {
    let end = header_bytes(bytes)?;
    let start = if bytes[6] == 1 { 10 } else { 12 };
    let text = bytes.get(start..end).ok_or("the .npy header is truncated")?;
    let text = std::str::from_utf8(text).map_err(|_| "the .npy header is not text")?;
    let fields = Fields::parse(text)?;
    let descr = fields.descr.ok_or("the .npy header has no 'descr'")?;
    let (dtype, swapped) = parse_descr(&descr)?;
    let shape = fields.shape.ok_or("the .npy header has no 'shape'")?;
    let bytes = checked_elements(&shape).and_then(|elements| elements.checked_mul(dtype.size() as u64));
    if bytes.is_none_or(|bytes| bytes > i64::MAX as u64 / 2) {
        return Err(format!("shape {shape:?} of {dtype} overflows"));
    }
    let fortran = fields.fortran.ok_or("the .npy header has no 'fortran_order'")?;
    Ok(NpyHeader {
        dtype,
        swapped,
        fortran,
        shape,
        data_start: end as u64,
    })
}

fn parse_descr(descr: &str) -> Result<(DType, bool), String> {
    let order = descr.chars().next().filter(|first| "<>|=".contains(*first));
    let letters = &descr[order.map_or(0, |_| 1)..];
    if letters.starts_with('O') {
        return Err("arrays of Python objects are not supported".into());
    }
    let letters = if letters == "?" { "b1" } else { letters };
    let dtype = DType::from_letters(letters).ok_or_else(|| format!("element type {descr:?} is not supported"))?;
    let foreign = if cfg!(target_endian = "little") { '>' } else { '<' };
    Ok((dtype, order == Some(foreign) && dtype.size() > 1))
}

#[derive(Default)]
struct Fields {
    descr: Option<String>,
    fortran: Option<bool>,
    shape: Option<Vec<u64>>,
}

impl Fields {
    fn parse(text: &str) -> Result<Fields, String> {
        let mut fields = Fields::default();
        let mut cursor = HeaderCursor(text);
        cursor.expect('{')?;
        while !cursor.accept('}') {
            let key = cursor.string()?;
            cursor.expect(':')?;
            match key {
                "descr" if cursor.peek('[') => return Err("structured element types are not supported".into()),
                "descr" => fields.descr = Some(cursor.string()?.to_string()),
                "fortran_order" => fields.fortran = Some(cursor.boolean()?),
                "shape" => fields.shape = Some(cursor.tuple()?),
                other => return Err(format!("the .npy header has an unknown key {other:?}")),
            }
            if !cursor.accept(',') {
                cursor.expect('}')?;
                break;
            }
        }
        if !cursor.0.trim().is_empty() {
            return Err("the .npy header goes on after its end".into());
        }
        Ok(fields)
    }
}

/// What is left of the header's text.
struct HeaderCursor<'a>(&'a str);

impl<'a> HeaderCursor<'a> {
    fn peek(&mut self, wanted: char) -> bool {
        self.0 = self.0.trim_start();
        self.0.starts_with(wanted)
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek(wanted);
        if found {
            self.0 = &self.0[wanted.len_utf8()..];
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.accept(wanted) {
            return Ok(());
        }
        let found: String = self.0.chars().take(10).collect();
        Err(format!(
            "the .npy header is malformed: {wanted:?} expected, {found:?} found"
        ))
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.peek('"') { '"' } else { '\'' };
        self.expect(quote)?;
        let (inside, rest) = self.0.split_once(quote).ok_or("the .npy header has an open string")?;
        self.0 = rest;
        Ok(inside)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.0 = self.0.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err("the .npy header's 'fortran_order' is neither True nor False".into())
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        let mut values = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            self.0 = self.0.trim_start();
            let digits = self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let value = self.0[..digits]
                .parse()
                .map_err(|_| "the .npy header's 'shape' is malformed or too large")?;
            self.0 = &self.0[digits..];
            self.accept('L'); // written by Python 2
            values.push(value);
            if values.len() > AXES_MAX {
                return Err(format!("arrays of more than {AXES_MAX} axes are not supported"));
            }
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(values)
    }
}

/// The header of the files written here: version 1, one page, so that the data can be written past the page cache.
pub(crate) fn header_page(shape: &[u64], dtype: DType) -> Vec<u8> {
    let axes: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let axes = if shape.len() == 1 {
        axes.trim_end()
    } else {
        axes.trim_end_matches(", ")
    };
    let mut page = MAGIC.to_vec();
    page.extend([1, 0]);
    page.extend((PAGE as u16 - 10).to_le_bytes());
    page.extend(
        format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({axes}), }}",
            descr(dtype)
        )
        .bytes(),
    );
    page.resize(PAGE - 1, b' ');
    page.push(b'\n');
    page
}

fn descr(dtype: DType) -> String {
    let order = if dtype.size() == 1 { '|' } else { '<' };
    format!("{order}{}", dtype.letters())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(text: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for dtype in DType::ALL {
            for shape in [vec![], vec![5], vec![3, 4], vec![0, 2, 1]] {
                let page = header_page(&shape, dtype);
                assert_eq!(page.len(), PAGE);
                let read = parse_npy_header(&page).unwrap();
                assert_eq!(
                    (read.dtype, read.shape, read.fortran, read.swapped),
                    (dtype, shape, false, false)
                );
                assert_eq!(read.data_start, PAGE as u64);
            }
        }
    }

    #[test]
    fn lies_are_refused_in_one_line() {
        let refused = |text: &str| parse_npy_header(&header(text)).unwrap_err();
        let rest = "'fortran_order': False, 'shape': (1,)}";
        assert_eq!(
            refused(&format!("{{'descr': [('a', '<i4')], {rest}")),
            "structured element types are not supported"
        );
        assert_eq!(
            refused(&format!("{{'descr': '|O', {rest}")),
            "arrays of Python objects are not supported"
        );
        assert_eq!(
            refused(&format!("{{'descr': '<f16', {rest}")),
            "element type \"<f16\" is not supported"
        );
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
        assert_eq!(refused(huge), "shape [4294967296, 4294967296] of float64 overflows");
        assert!(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}").contains("malformed"));
        assert!(parse_npy_header(&header("{")[..11]).unwrap_err().contains("too short"));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0u8..4) {
            let _ = parse_npy_header(&bytes);
            let mut started = MAGIC.to_vec();
            started.extend([version, 0]);
            started.extend(&bytes);
            let _ = parse_npy_header(&started);
        }

        #[test]
        fn damaged_headers_never_panic(at in 0usize..80, byte in any::<u8>(), cut in 0usize..200) {
            let mut page = header_page(&[3, 4], DType::F32);
            page[at] = byte;
            let _ = parse_npy_header(&page);
            page.truncate(cut);
            let _ = parse_npy_header(&page);
        }
    }
}
