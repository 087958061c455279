//! Facts of columns' chunks in a file's footer. pyarrow reads footers too, but ends the process over some that are damaged.

use super::header::{damaged_footer, FieldKey, ThriftFields, DEPTH_MAX, INTEGER, LIST, LONG, STRUCTURE, TEXT};

/// Facts of a chunk: its type and its codec by the specification's numbers, its first byte, the bytes that are stored, those before
/// they were compressed, its elements, how many of them are missing, or -1, and whether it is in another file.
pub const CHUNK_FACTS: usize = 8;

/// Rows of row groups, and for each of them the facts of each column's chunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ParquetChunks {
    pub rows: Vec<i64>,
    pub columns: usize,
    pub facts: Vec<[i64; CHUNK_FACTS]>,
}

/// Reads a footer, without its length and the letters behind it.
///
/// # Errors
/// One that is damaged.
pub fn parquet_chunks(footer: &[u8]) -> Result<ParquetChunks, String> {
    let mut chunks = ParquetChunks::default();
    let mut groups = Ok(());
    ThriftFields::new(footer).each(DEPTH_MAX, &mut |fields, key| match key {
        (4, LIST) => {
            groups = fields.structures(&mut |fields| row_group(fields, &mut chunks));
            groups.clone().map(|()| true)
        }
        _ => Ok(false),
    })?;
    groups.map(|()| chunks)
}

fn row_group(fields: &mut ThriftFields<'_>, all: &mut ParquetChunks) -> Result<(), String> {
    let (mut rows, before) = (None, all.facts.len());
    fields.each(DEPTH_MAX, &mut |fields, key| match key {
        (1, LIST) => fields
            .structures(&mut |fields| column_chunk(fields).map(|facts| all.facts.push(facts)))
            .map(|()| true),
        (3, LONG) => {
            rows = Some(fields.integer()?);
            Ok(true)
        }
        _ => Ok(false),
    })?;
    let columns = all.facts.len() - before;
    if all.rows.is_empty() {
        all.columns = columns;
    }
    let rows = rows.filter(|&rows| rows >= 0 && columns == all.columns);
    all.rows.push(rows.ok_or_else(damaged_footer)?);
    Ok(())
}

fn column_chunk(fields: &mut ThriftFields<'_>) -> Result<[i64; CHUNK_FACTS], String> {
    let (mut facts, mut is_elsewhere) = (None, false);
    fields.each(DEPTH_MAX, &mut |fields, key| match key {
        (1, TEXT) => {
            is_elsewhere = true;
            Ok(false)
        }
        (3, STRUCTURE) => {
            facts = Some(column_facts(fields)?);
            Ok(true)
        }
        _ => Ok(false),
    })?;
    let mut facts = facts.ok_or_else(damaged_footer)?;
    facts[7] = is_elsewhere.into();
    Ok(facts)
}

fn column_facts(fields: &mut ThriftFields<'_>) -> Result<[i64; CHUNK_FACTS], String> {
    let (mut facts, mut dictionary) = ([0; CHUNK_FACTS], 0);
    facts[6] = -1;
    let place = |key: FieldKey| match key {
        (1, INTEGER) => Some(0),
        (4, INTEGER) => Some(1),
        (5, LONG) => Some(5),
        (6, LONG) => Some(4),
        (7, LONG) => Some(3),
        (9, LONG) => Some(2),
        _ => None,
    };
    fields.each(DEPTH_MAX, &mut |fields, key| {
        if let Some(place) = place(key) {
            facts[place] = fields.integer()?;
            return Ok(true);
        }
        match key {
            (11, LONG) => dictionary = fields.integer()?,
            (12, STRUCTURE) => fields.each(DEPTH_MAX, &mut |fields, key| match key {
                (3, LONG) => {
                    facts[6] = fields.integer()?;
                    Ok(true)
                }
                _ => Ok(false),
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    // A dictionary comes first, where there is one.
    if 0 < dictionary && dictionary < facts[2] {
        facts[2] = dictionary;
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One row group of 3 rows with one column: INT64, zstd, 3 elements, 40 bytes of which 20 are stored, at 100, with a dictionary
    /// at 50, and 1 missing.
    const FOOTER: [u8; 41] = [
        21, 4, 38, 0, 25, 28, 25, 28, 60, 21, 4, 53, 12, 22, 6, 22, 80, 22, 40, 38, 200, 1, 38, 100, 28, 54, 2, 0, 0,
        0, 38, 6, 0, 24, 3, 97, 98, 99, 0, 7, 7,
    ];

    #[test]
    fn facts_of_chunks_are_read() {
        let chunks = parquet_chunks(&FOOTER).unwrap();
        let facts = vec![[2, 6, 50, 20, 40, 3, 1, 0]];
        let expected = ParquetChunks {
            rows: vec![3],
            columns: 1,
            facts,
        };
        assert_eq!(chunks, expected);
        for cut in 0..39 {
            assert!(parquet_chunks(&FOOTER[..cut]).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_footer_or_none(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), at in 0usize..41, bit in 0u8..8) {
            let _ = parquet_chunks(&bytes);
            bytes = FOOTER.to_vec();
            bytes[at] ^= 1 << bit;
            let _ = parquet_chunks(&bytes);
        }
    }
}
