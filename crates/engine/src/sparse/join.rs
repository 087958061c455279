//! Several stored matrices, put together to one file.

use std::path::Path;

use outcore_store::{Io, SparseShape, SparseWriter};

use super::SparseMatrix;
use crate::EngineError;

/// Writes the tile rows of several matrices of one shape, none of which has some behind those of the next, to one file.
///
/// # Errors
/// Files that cannot be read or written, or are not so. No file is left behind then.
pub fn join(parts: &[SparseMatrix], path: &Path, overwrite: bool, io: &Io) -> Result<SparseShape, EngineError> {
    let refuse = |what: &str| EngineError::Argument(format!("sparse: parts that are put together {what}"));
    let first = parts.first().ok_or_else(|| refuse("are none"))?.file.matrix();
    let mut writer = SparseWriter::create(path, first.clone(), overwrite, io)?;
    let mut last = None;
    for part in parts {
        let shape = part.file.matrix();
        if (SparseShape {
            entries: first.entries,
            ..shape.clone()
        }) != *first
        {
            return Err(refuse("differ in shape or type"));
        }
        for tile in 0..part.file.tiles() {
            let (frame, offset) = part.read_tile(tile, io)?;
            for (record, place) in part.file.tile_rows(tile) {
                if last.is_some_and(|last| last >= record.number) {
                    return Err(refuse("overlap"));
                }
                last = Some(record.number);
                let buffer = writer.buffer();
                let begin = buffer.len();
                buffer.extend_from_slice(&frame[offset..][place]);
                writer.add(record.number, begin, record.entries, io)?;
            }
        }
    }
    Ok(writer.finish(io)?)
}
