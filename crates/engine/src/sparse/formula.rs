//! Formulas over the entries of a sparse matrix, one by one: their values, and which of them are kept.
//!
//! A formula is evaluated tile by tile while the tiles pass by, so products, streams of entries and files of a changed
//! matrix need no file of it. Values alone that change leave the coding of places as it is; a tile that loses entries
//! is encoded again, as a file would have it, so a product has the same bits either way.

use std::sync::Arc;

use outcore_coding::tiles::{segments_bytes_most, RowLimits, Tile, TileEncoder, LISTED_BYTES};
use outcore_coding::Malformed;
use outcore_dtype::DType;
use outcore_store::{SparseFile, SparseShape, TileRowRecord};

use super::fields::Field;
use super::order::{sort_kept, TileEntry};
use crate::expr::{topological, Digest, Expr, Op};
use crate::strips::{self, Buffers, Fused, FusedInput, REGISTER_BYTES, STRIP};
use crate::{ops, EngineError};

/// Entries that are evaluated together.
const TOGETHER: usize = 8 * STRIP;
/// Bytes at which memory of workspaces begins anew.
const ALIGN: usize = 16;
/// Bytes of a tile at least: its line in the list, and a segment of one entry.
const TILE_BYTES_LEAST: u64 = LISTED_BYTES as u64 + 8;

/// A formula over entries.
#[derive(Clone, Debug)]
pub struct Formula {
    fields: Vec<Field>,
    /// Nothing where values stay as they are.
    value: Option<Arc<Fused>>,
    /// Nothing where all are kept.
    kept: Option<Arc<Fused>>,
    /// The same as nodes.
    nodes: [Option<Expr>; 2],
    stored: Option<DType>,
    dtype: Option<DType>,
    key: Vec<u8>,
}

/// Memory that formulas are evaluated in.
pub(super) struct Desk<'w> {
    registers: Buffers<&'w mut [u8]>,
    /// One for each field that follows from places.
    strips: Vec<&'w mut [u8]>,
    /// Memory of the entries of one tile while they pass by.
    passing: &'w mut [u8],
    /// Memory of the results.
    memory: &'w mut [u8],
    pub encoder: TileEncoder,
    pub counts: Vec<u32>,
    places: [Vec<u16>; 2],
}

/// A tile row in its matrix.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPlace {
    /// Its first row.
    pub first: u64,
    pub height: u64,
    pub side: u64,
    pub columns: u64,
}

impl RowPlace {
    pub(super) fn of(file: &SparseFile, number: u64) -> RowPlace {
        let matrix = file.matrix();
        let side = u64::from(matrix.side);
        RowPlace {
            first: number * side,
            height: side.min(matrix.rows - number * side),
            side,
            columns: matrix.columns,
        }
    }

    pub(super) fn width(&self, block: u32) -> u64 {
        self.side.min(self.columns.saturating_sub(u64::from(block) * self.side))
    }
}

pub(super) fn aligned(bytes: u64) -> u64 {
    bytes.saturating_add(ALIGN as u64 - 1) / ALIGN as u64 * ALIGN as u64
}

/// Memory of the length that is asked for, aligned for any type.
pub(super) fn take<'w>(memory: &mut &'w mut [u8], bytes: usize) -> &'w mut [u8] {
    let (taken, rest) = std::mem::take(memory).split_at_mut(bytes.next_multiple_of(ALIGN));
    *memory = rest;
    &mut taken[..bytes]
}

impl<'w> Desk<'w> {
    pub(super) fn take(&mut self, bytes: usize) -> &'w mut [u8] {
        take(&mut self.memory, bytes)
    }
}

impl Formula {
    /// A formula over the entries of a matrix with values of the type `stored`: the values, of the type `dtype`, and which
    /// are kept. Types are none of patterns.
    ///
    /// # Errors
    /// Nodes that are not element-wise functions of fields; values of another type than `dtype`.
    pub fn new(
        value: Option<&Expr>,
        kept: Option<&Expr>,
        [stored, dtype]: [Option<DType>; 2],
    ) -> Result<Formula, EngineError> {
        let is_field = |node: &&Expr| Field::of(node).is_some();
        let value = value.filter(|_| dtype.is_some());
        if let Some((value, dtype)) = value.zip(dtype) {
            if value.dtype != dtype {
                let found = value.dtype;
                return Err(EngineError::DType(format!(
                    "sparse: values of {found} for a matrix of {dtype}"
                )));
            }
        }
        if kept.is_some_and(|kept| kept.dtype != DType::Bool) {
            return Err(EngineError::DType("sparse: what is kept is told by bool".into()));
        }
        let roots: Vec<Expr> = [value, kept].into_iter().flatten().cloned().collect();
        let leaves: Vec<Expr> = topological(&roots).into_iter().filter(|node| is_field(&node)).collect();
        let fields = leaves.iter().filter_map(|leaf| Field::of(leaf).cloned()).collect();
        let place = |node: &crate::expr::Node| leaves.iter().position(|leaf| leaf.id == node.id);
        // A field alone, or one number for all, is copied; but for the value, which is where it is.
        let program = |node: &Expr| match node.op {
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_) => strips::compile(node, &place),
            _ => strips::compile(&ops::copy_tiled(node, node.tile.clone()), &place),
        };
        let is_same = |node: &&Expr| stored == dtype && matches!(Field::of(node), Some(Field::Value(_)));
        let mut key: Vec<u8> = dtype.map_or("pattern".into(), |dtype| dtype.to_string()).into_bytes();
        for node in [value, kept] {
            key.extend(node.map_or(Digest::of(b""), |node| node.digest()).0);
        }
        Ok(Formula {
            fields,
            value: value
                .filter(|node| !is_same(node))
                .map(program)
                .transpose()?
                .map(Arc::new),
            kept: kept.map(program).transpose()?.map(Arc::new),
            nodes: [value.cloned(), kept.cloned()],
            stored,
            dtype,
            key,
        })
    }

    /// Refuses dense operands that are not as long as the rows, the columns or all places of a matrix.
    ///
    /// # Errors
    /// There is one.
    pub fn check(&self, matrix: &SparseShape) -> Result<(), EngineError> {
        for field in &self.fields {
            let (operand, expected) = match field {
                Field::AtRow(_, operand) => (operand, Some(matrix.rows)),
                Field::AtColumn(_, operand) => (operand, Some(matrix.columns)),
                Field::AtPlace(_, operand, width) if *width == matrix.columns => {
                    (operand, matrix.rows.checked_mul(matrix.columns))
                }
                Field::AtPlace(_, operand, _) => (operand, None),
                Field::Value(_) | Field::Other(_) | Field::Row | Field::Column => continue,
            };
            let elements = (operand.elements().len() / field.dtype().size()) as u64;
            if expected != Some(elements) {
                return Err(EngineError::Shape(format!(
                    "sparse: a dense operand of {elements} elements for a matrix of shape ({}, {})",
                    matrix.rows, matrix.columns
                )));
            }
        }
        Ok(())
    }

    /// The formula that leaves all as it is.
    ///
    /// # Errors
    /// As [`Formula::new`].
    pub fn identity(dtype: Option<DType>) -> Result<Formula, EngineError> {
        let value = dtype.map(|dtype| Field::Value(dtype).node()).transpose()?;
        Formula::new(value.as_ref(), None, [dtype, dtype])
    }

    /// The same with values of another type.
    ///
    /// # Errors
    /// As [`Formula::new`].
    pub fn converted(&self, dtype: DType) -> Result<Formula, EngineError> {
        let value = match &self.nodes[0] {
            Some(value) => value.clone(),
            None => Field::Value(self.dtype.unwrap_or(DType::Bool)).node()?,
        };
        let value = ops::astype(&value, dtype)?;
        Formula::new(Some(&value), self.nodes[1].as_ref(), [self.stored, Some(dtype)])
    }

    /// Its value, and which entries are kept, as nodes.
    pub(super) fn nodes(&self) -> &[Option<Expr>; 2] {
        &self.nodes
    }

    /// The type of the entries that it is of, and that of its values.
    pub(super) fn types(&self) -> [Option<DType>; 2] {
        [self.stored, self.dtype]
    }

    /// The type of the values that it gives; nothing for a pattern.
    pub fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether the result has all entries that there are.
    pub fn keeps_all(&self) -> bool {
        self.kept.is_none()
    }

    pub(super) fn item(&self) -> usize {
        self.dtype.map_or(0, |dtype| dtype.size())
    }

    fn needs_places(&self) -> bool {
        self.fields.iter().any(Field::is_of_place)
    }

    fn registers(&self) -> usize {
        let programs = [&self.value, &self.kept];
        programs
            .into_iter()
            .flatten()
            .map(|program| program.registers)
            .max()
            .unwrap_or(0)
    }

    fn strip_bytes(&self) -> impl Iterator<Item = usize> + '_ {
        self.fields.iter().map(|field| match field.is_of_place() {
            true => field.dtype().size() * TOGETHER,
            false => 0,
        })
    }

    /// Tiles that a tile row of so many entries, in so many bytes, has at most.
    pub(super) fn tiles_most(file: &SparseFile, entries: u64, bytes: u64) -> u64 {
        let matrix = file.matrix();
        let blocks = matrix.columns.div_ceil(u64::from(matrix.side));
        entries.min(blocks).min(bytes / TILE_BYTES_LEAST)
    }

    /// Bytes that the segments of a tile row take in the result, at most.
    fn segments_most(file: &SparseFile, record: &TileRowRecord) -> u64 {
        let entries = record.entries;
        segments_bytes_most(Formula::tiles_most(file, entries, record.bytes), entries)
    }

    /// Bytes of a tile row in the result: exactly where all entries are kept, else at most.
    pub(super) fn row_bytes(&self, file: &SparseFile, record: &TileRowRecord) -> u64 {
        let values = |item: usize| record.entries.saturating_mul(item as u64).next_multiple_of(8);
        let own = values(self.item());
        if self.keeps_all() {
            let stored = file.matrix().dtype.map_or(0, |dtype| dtype.size());
            return (record.bytes.saturating_sub(values(stored))).saturating_add(own);
        }
        let tiles = Formula::tiles_most(file, record.entries, record.bytes);
        let limits = RowLimits {
            tiles,
            entries: record.entries,
            item: self.item(),
        };
        limits.bytes()
    }

    /// Bytes of the registers and strips of [`Formula::desk`].
    pub(super) fn fixed_bytes(&self) -> u64 {
        let strips: u64 = self.strip_bytes().map(|bytes| aligned(bytes as u64)).sum();
        (self.registers() * REGISTER_BYTES) as u64 + strips
    }

    /// Bytes for each entry of a tile while it passes by: its place, whether it is kept, its value in order.
    fn passing_bytes(&self, entries: u64) -> u64 {
        match &self.kept {
            None => 0,
            Some(_) => aligned(entries) + aligned(4 * entries) + aligned(entries * self.item() as u64),
        }
    }

    /// Bytes of a desk for the tile rows of `records`, one after the other, whose results all stay.
    pub(super) fn desk_bytes<'r>(&self, file: &SparseFile, records: impl Iterator<Item = &'r TileRowRecord>) -> u64 {
        let (mut passing, mut results) = (0, 0u64);
        for record in records {
            passing = self.passing_bytes(record.entries).max(passing);
            results = results.saturating_add(self.result_bytes(file, record));
        }
        aligned(self.fixed_bytes().saturating_add(passing).saturating_add(results))
    }

    fn result_bytes(&self, file: &SparseFile, record: &TileRowRecord) -> u64 {
        let entries = record.entries;
        let tiles = Formula::tiles_most(file, entries, record.bytes) * ALIGN as u64;
        let values = match self.value.is_some() || self.kept.is_some() {
            true => (entries * self.item() as u64).saturating_add(tiles),
            false => 0,
        };
        let segments = match &self.kept {
            Some(_) => Formula::segments_most(file, record).saturating_add(tiles),
            None => 0,
        };
        values.saturating_add(segments)
    }

    /// A desk in memory of at least [`Formula::desk_bytes`]; `entries` are the most of a tile row.
    pub(super) fn desk<'w>(&self, memory: &'w mut [u8], entries: u64) -> Desk<'w> {
        let mut desk = Desk {
            registers: Buffers::places(self.registers()),
            strips: vec![],
            passing: &mut [],
            memory,
            encoder: TileEncoder::default(),
            counts: vec![],
            places: [vec![], vec![]],
        };
        for register in 0..self.registers() {
            let memory = desk.take(REGISTER_BYTES);
            desk.registers.put(register, memory);
        }
        desk.strips = self.strip_bytes().map(|bytes| desk.take(bytes)).collect();
        desk.passing = desk.take(self.passing_bytes(entries) as usize);
        desk
    }

    /// The tiles of a tile row as the formula makes them, without those that keep no entry.
    ///
    /// # Errors
    /// An entry that a check of the formula refuses; those of `malformed`, for places that cannot be.
    pub(super) fn apply<'w>(
        &self,
        tiles: impl Iterator<Item = Tile<'w>>,
        place: RowPlace,
        desk: &mut Desk<'w>,
        malformed: &dyn Fn(Malformed) -> EngineError,
    ) -> Result<Vec<Tile<'w>>, EngineError> {
        let mut made = vec![];
        for tile in tiles {
            if let Some(tile) = self.apply_to_tile(tile, place, desk, malformed)? {
                made.push(tile);
            }
        }
        Ok(made)
    }

    fn apply_to_tile<'w>(
        &self,
        tile: Tile<'w>,
        place: RowPlace,
        desk: &mut Desk<'w>,
        malformed: &dyn Fn(Malformed) -> EngineError,
    ) -> Result<Option<Tile<'w>>, EngineError> {
        let (count, item) = (tile.entries, self.item());
        let is_made = self.value.is_some() || (self.kept.is_some() && item > 0);
        let values = desk.take(if is_made { count * item } else { 0 });
        let passing = std::mem::take(&mut desk.passing);
        let mask_bytes = if self.kept.is_some() { count } else { 0 };
        let (mask, rest) = passing.split_at_mut(aligned(mask_bytes as u64) as usize);
        self.evaluate(&tile, place, desk, (&mut *values, &mut mask[..mask_bytes]), malformed)?;
        let kept = mask[..mask_bytes].iter().map(|kept| usize::from(*kept)).sum::<usize>();
        let plain = match item {
            0 => &[][..],
            _ => tile.values,
        };
        if self.kept.is_none() || kept == count {
            desk.passing = passing;
            return Ok(Some(match self.value {
                Some(_) => tile.with_values(values),
                None => tile.with_values(plain),
            }));
        }
        if kept == 0 {
            desk.passing = passing;
            return Ok(None);
        }
        let (entries, rest) = rest.split_at_mut(aligned(4 * count as u64) as usize);
        let entries: &mut [u32] = &mut bytemuck::cast_slice_mut(entries)[..kept];
        let ordered = &mut rest[..kept * item];
        let from = match self.value {
            Some(_) => &*values,
            None => plain,
        };
        let entry = TileEntry {
            kept: Some(&mask[..count]),
            values: from,
            item,
        };
        let extent = (place.height as usize, place.width(tile.block) as usize);
        sort_kept(&tile, extent, entry, (&mut desk.counts, entries, ordered)).map_err(malformed)?;
        let segments = desk.take(segments_bytes_most(1, kept as u64) as usize);
        let values = &mut values[..kept * item];
        let length = desk.encoder.encode(entries, ordered, item, segments, values);
        desk.passing = passing;
        Ok(Some(Tile {
            block: tile.block,
            entries: kept,
            bytes: &segments[..length.bytes],
            segments: length.segments as usize,
            values,
        }))
    }

    /// Evaluates values and whether entries are kept, of entries in order, as row · 2¹⁶ + column, with their values in two
    /// matrices.
    ///
    /// # Errors
    /// An entry that a check of the formula refuses.
    pub(super) fn evaluate_both(
        &self,
        entries: &[u32],
        operands: [&[u8]; 2],
        origin: [u64; 2],
        desk: &mut Desk<'_>,
        (values, mask): (&mut [u8], &mut [u8]),
    ) -> Result<(), EngineError> {
        let mut results = StripResults {
            formula: self,
            origin,
            values,
            mask,
            done: 0,
        };
        for strip in entries.chunks(TOGETHER) {
            let of = |values: &'_ [u8]| {
                let item = values.len() / entries.len();
                results.done * item..(results.done + strip.len()) * item
            };
            let [rows, columns] = &mut desk.places;
            rows.clear();
            columns.clear();
            if self.needs_places() {
                rows.extend(strip.iter().map(|entry| (entry >> 16) as u16));
                columns.extend(strip.iter().map(|entry| *entry as u16));
            }
            let values = operands.map(|values| &values[of(values)]);
            results.strip(
                strip.len(),
                values,
                [rows, columns],
                (&mut desk.registers, &mut desk.strips),
            )?;
        }
        Ok(())
    }

    /// Evaluates values and whether entries are kept, for all entries of a tile in their order.
    fn evaluate(
        &self,
        tile: &Tile<'_>,
        place: RowPlace,
        desk: &mut Desk<'_>,
        (values, mask): (&mut [u8], &mut [u8]),
        malformed: &dyn Fn(Malformed) -> EngineError,
    ) -> Result<(), EngineError> {
        let mut results = StripResults {
            formula: self,
            origin: [place.first, u64::from(tile.block) * place.side],
            values,
            mask,
            done: 0,
        };
        let stored = tile.values.len() / tile.entries.max(1);
        let operand = |done: usize, count: usize| tile.values.get(done * stored..(done + count) * stored);
        if !self.needs_places() {
            while results.done < tile.entries {
                let (done, count) = (results.done, TOGETHER.min(tile.entries - results.done));
                let value = operand(done, count).unwrap_or_default();
                results.strip(count, [value, &[]], [&[], &[]], (&mut desk.registers, &mut desk.strips))?;
            }
            return Ok(());
        }
        let [rows, columns] = &mut desk.places;
        rows.clear();
        columns.clear();
        let (mut failed, registers, strips) = (None, &mut desk.registers, &mut desk.strips);
        let mut end = |rows: &mut Vec<u16>, columns: &mut Vec<u16>| {
            let value = operand(results.done, rows.len()).unwrap_or_default();
            let ended = results.strip(
                rows.len(),
                [value, &[]],
                [rows, columns],
                (&mut *registers, &mut *strips),
            );
            rows.clear();
            columns.clear();
            ended
        };
        let extent = (place.height as usize, place.width(tile.block) as usize);
        let walked = tile.for_each(extent.0, extent.1, |row, column| {
            rows.push(row);
            columns.push(column);
            if rows.len() == TOGETHER && failed.is_none() {
                failed = end(rows, columns).err();
            }
        });
        walked.map_err(malformed)?;
        match failed {
            Some(error) => Err(error),
            None if rows.is_empty() => Ok(()),
            None => end(rows, columns),
        }
    }
}

/// Where the results of a tile's entries go, one strip after the other.
struct StripResults<'a> {
    formula: &'a Formula,
    /// The first row and column of the tile.
    origin: [u64; 2],
    values: &'a mut [u8],
    mask: &'a mut [u8],
    /// Entries that are evaluated.
    done: usize,
}

impl StripResults<'_> {
    /// Evaluates the next `count` entries: their values in both matrices, and their rows and columns in the tile.
    fn strip(
        &mut self,
        count: usize,
        values: [&[u8]; 2],
        places: [&[u16]; 2],
        (registers, strips): (&mut Buffers<&mut [u8]>, &mut [&mut [u8]]),
    ) -> Result<(), EngineError> {
        let formula = self.formula;
        for (field, strip) in formula.fields.iter().zip(strips.iter_mut()) {
            fill(field, self.origin, places, strip);
        }
        let strips = &*strips;
        let mut run = |program: &Fused, output: &mut [u8]| {
            let inputs = program.inputs.iter().map(|&(place, item)| {
                let data = match &formula.fields[place] {
                    Field::Value(_) => values[0],
                    Field::Other(_) => values[1],
                    _ => &strips[place][..count * item],
                };
                // A pattern is true at all its entries.
                match data {
                    [] => FusedInput::new(&[1], item, 0),
                    data => FusedInput::new(data, item, 1),
                }
            });
            strips::run(program, &[count], inputs.collect(), registers, output)
        };
        if let Some(value) = &formula.value {
            let item = formula.item();
            run(value, &mut self.values[self.done * item..(self.done + count) * item])?;
        }
        if let Some(kept) = &formula.kept {
            run(kept, &mut self.mask[self.done..self.done + count])?;
        }
        self.done += count;
        Ok(())
    }
}

/// Puts a field that follows from places where programs read it.
fn fill(field: &Field, origin: [u64; 2], [rows, columns]: [&[u16]; 2], strip: &mut [u8]) {
    let numbers = |from: &[u16], first: u64, strip: &mut [u8]| {
        for (number, to) in from.iter().zip(strip.chunks_exact_mut(size_of::<i64>())) {
            to.copy_from_slice(&((first + u64::from(*number)) as i64).to_ne_bytes());
        }
    };
    match field {
        Field::Row => numbers(rows, origin[0], strip),
        Field::Column => numbers(columns, origin[1], strip),
        Field::AtRow(dtype, vector) => gather(vector.elements(), dtype.size(), rows, origin[0], strip),
        Field::AtColumn(dtype, vector) => gather(vector.elements(), dtype.size(), columns, origin[1], strip),
        Field::AtPlace(dtype, matrix, width) => {
            let item = dtype.size();
            for ((row, column), to) in rows.iter().zip(columns).zip(strip.chunks_exact_mut(item)) {
                let place = (origin[0] + u64::from(*row)) * width + origin[1] + u64::from(*column);
                to.copy_from_slice(&matrix.elements()[place as usize * item..][..item]);
            }
        }
        Field::Value(_) | Field::Other(_) => {}
    }
}

fn gather(vector: &[u8], item: usize, places: &[u16], first: u64, strip: &mut [u8]) {
    let own = vector.get(first as usize * item..).unwrap_or_default();
    for (place, to) in places.iter().zip(strip.chunks_exact_mut(item)) {
        let at = usize::from(*place) * item;
        to.copy_from_slice(&own[at..at + item]);
    }
}
