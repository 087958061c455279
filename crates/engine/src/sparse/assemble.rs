//! A stored sparse matrix made of entries that come in the order of its tiles.

use std::path::Path;

use outcore_dtype::DType;
use outcore_kernels::{binary_kernel, Binary, BinaryKernel};
use outcore_sparse::{TileRowEncoder, ENTRIES_MAX};
use outcore_store::{Io, SparseShape, SparseWriter};

use crate::EngineError;

/// How the place of an entry is one number, by which entries are sorted: the bits of the tile row, of the column of tiles, of
/// the row in the tile and of the column in the tile, from the highest.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Bits of a row or a column within its tile.
    side: u32,
    /// Bits of a column of tiles.
    block: u32,
}

impl Places {
    /// Nothing where 64 bits are too few.
    pub fn new(shape: &SparseShape) -> Option<Places> {
        let side = shape.side.checked_ilog2()?;
        let bits = |count: u64| u64::BITS - count.saturating_sub(1).leading_zeros();
        let tiles = |length: u64| bits(length.div_ceil(u64::from(shape.side)));
        let block = tiles(shape.columns);
        (tiles(shape.rows) + block + 2 * side <= u64::BITS).then_some(Places { side, block })
    }

    /// What the places of a tile begin with.
    fn tile(self, place: u64) -> u64 {
        place.checked_shr(2 * self.side).unwrap_or(0)
    }

    fn row_and_block(self, tile: u64) -> (u64, u32) {
        let block = tile & ((1 << self.block) - 1);
        (tile.checked_shr(self.block).unwrap_or(0), block as u32)
    }

    /// Row · 2¹⁶ + column within the tile.
    fn inside(self, place: u64) -> u32 {
        let mask = (1 << self.side) - 1;
        ((place >> self.side & mask) << 16 | place & mask) as u32
    }

    /// Row and column in the matrix.
    fn of_matrix(self, place: u64, side: u32) -> (u64, u64) {
        let (tile_row, block) = self.row_and_block(self.tile(place));
        let (inside, side) = (self.inside(place), u64::from(side));
        (
            tile_row * side + u64::from(inside >> 16),
            u64::from(block) * side + u64::from(inside & 0xffff),
        )
    }
}

/// What becomes of entries at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Sum,
    /// The one that came last.
    Last,
    Refuse,
}

/// Takes entries in the order of their places and writes tile row after tile row.
pub struct Assembler {
    writer: SparseWriter,
    shape: SparseShape,
    places: Places,
    duplicates: Duplicates,
    add: Option<BinaryKernel>,
    encoder: TileRowEncoder,
    /// The tile at work: its tile row and column of tiles, its entries and their values.
    tile: Option<(u64, u32)>,
    entries: Vec<u32>,
    values: Vec<u8>,
    /// The last place.
    last: Option<u64>,
}

impl Assembler {
    /// Begins a file at `path`.
    ///
    /// # Errors
    /// A shape whose places need more than 64 bits, a side that is no tile's, or a file that cannot be made.
    pub fn new(
        path: &Path,
        shape: SparseShape,
        duplicates: Duplicates,
        overwrite: bool,
        io: &Io,
    ) -> Result<Assembler, EngineError> {
        if !shape.side.is_power_of_two() || shape.side as usize > outcore_sparse::SIDE_MAX {
            return Err(EngineError::Argument(format!(
                "sparse: tiles of {} rows; a power of two up to {} is right",
                shape.side,
                outcore_sparse::SIDE_MAX
            )));
        }
        let places = Places::new(&shape).ok_or_else(|| {
            EngineError::Argument(format!(
                "sparse: places in ({}, {}) need more than 64 bits",
                shape.rows, shape.columns
            ))
        })?;
        let add = match (shape.dtype, duplicates) {
            (Some(DType::Bool), Duplicates::Sum) => binary_kernel(Binary::LogicalOr, DType::Bool),
            (Some(dtype), Duplicates::Sum) => binary_kernel(Binary::Add, dtype),
            _ => None,
        };
        Ok(Assembler {
            writer: SparseWriter::create(path, shape.clone(), overwrite, io)?,
            shape,
            places,
            duplicates,
            add,
            encoder: TileRowEncoder::default(),
            tile: None,
            entries: vec![],
            values: vec![],
            last: None,
        })
    }

    /// Takes more entries: places in ascending order, also from one call to the next, and their values.
    ///
    /// # Errors
    /// Places out of order or outside the matrix, an entry that is there already where that is refused, or a file that
    /// cannot be written.
    pub fn add(&mut self, places: &[u64], values: &[u8], io: &Io) -> Result<(), EngineError> {
        let item = self.shape.dtype.map_or(0, |dtype| dtype.size());
        if values.len() != places.len() * item {
            return Err(EngineError::Shape(format!(
                "sparse: {} places and {} bytes of values of {item} bytes each",
                places.len(),
                values.len()
            )));
        }
        let mut done = 0;
        while done < places.len() {
            let tile = self.places.tile(places[done]);
            let same = places[done..].partition_point(|place| self.places.tile(*place) == tile);
            let part = done..done + same;
            self.begin_tile(tile, io)?;
            self.add_to_tile(&places[part.clone()], &values[part.start * item..part.end * item], item)?;
            done = part.end;
        }
        Ok(())
    }

    /// Ends the tile at work if the next entry belongs to another.
    fn begin_tile(&mut self, tile: u64, io: &Io) -> Result<(), EngineError> {
        let (tile_row, block) = self.places.row_and_block(tile);
        if self.tile == Some((tile_row, block)) {
            return Ok(());
        }
        self.end_tile();
        if self.tile.is_some_and(|(row, _)| row != tile_row) {
            self.end_tile_row(io)?;
        }
        self.tile = Some((tile_row, block));
        Ok(())
    }

    /// Adds entries of the tile at work.
    fn add_to_tile(&mut self, places: &[u64], values: &[u8], item: usize) -> Result<(), EngineError> {
        let follows = places.windows(2).all(|pair| pair[0] < pair[1]);
        if follows && self.last.is_none_or(|last| last < places[0]) {
            self.check_inside(places)?;
            let split = self.places;
            self.entries.extend(places.iter().map(|place| split.inside(*place)));
            self.values.extend_from_slice(values);
            self.last = places.last().copied();
            return self.check_number();
        }
        for (position, place) in places.iter().enumerate() {
            let value = &values[position * item..(position + 1) * item];
            match self.last {
                Some(last) if last == *place => self.again(*place, value)?,
                Some(last) if last > *place => {
                    return Err(EngineError::Argument("sparse: places are out of order".into()));
                }
                _ => {
                    self.check_inside(&[*place])?;
                    self.entries.push(self.places.inside(*place));
                    self.values.extend_from_slice(value);
                }
            }
            self.last = Some(*place);
        }
        self.check_number()
    }

    fn check_number(&self) -> Result<(), EngineError> {
        match self.entries.len() > ENTRIES_MAX {
            true => Err(EngineError::Argument("sparse: too many entries in one tile".into())),
            false => Ok(()),
        }
    }

    /// Refuses places of one tile that lie outside the matrix.
    fn check_inside(&self, places: &[u64]) -> Result<(), EngineError> {
        let shape = &self.shape;
        let mut outside = places.iter().map(|place| self.places.of_matrix(*place, shape.side));
        match outside.find(|(row, column)| *row >= shape.rows || *column >= shape.columns) {
            None => Ok(()),
            Some((row, column)) => Err(EngineError::Index(format!(
                "sparse: entry ({row}, {column}) lies outside ({}, {})",
                shape.rows, shape.columns
            ))),
        }
    }

    /// An entry at the place of the one before.
    fn again(&mut self, place: u64, value: &[u8]) -> Result<(), EngineError> {
        let at = self.values.len() - value.len();
        match (self.duplicates, self.add) {
            (Duplicates::Sum, Some(add)) => {
                let before = self.values[at..].to_vec();
                add(&before, value, &mut self.values[at..]);
            }
            (Duplicates::Refuse, _) => {
                let (row, column) = self.places.of_matrix(place, self.shape.side);
                return Err(EngineError::Argument(format!(
                    "sparse: entry ({row}, {column}) is there twice; say what becomes of it"
                )));
            }
            _ => self.values[at..].copy_from_slice(value),
        }
        Ok(())
    }

    fn end_tile(&mut self) {
        if let (Some((_, block)), false) = (self.tile, self.entries.is_empty()) {
            let item = self.shape.dtype.map_or(0, |dtype| dtype.size());
            self.encoder.tile(block, &self.entries, &self.values, item);
            self.entries.clear();
            self.values.clear();
        }
    }

    fn end_tile_row(&mut self, io: &Io) -> Result<(), EngineError> {
        if let (Some((number, _)), false) = (self.tile, self.encoder.is_empty()) {
            let buffer = self.writer.buffer();
            let begin = buffer.len();
            let entries = self.encoder.finish(buffer);
            self.writer.add(number, begin, entries, io)?;
        }
        Ok(())
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// It cannot be written; nothing is left behind then.
    pub fn finish(mut self, io: &Io) -> Result<SparseShape, EngineError> {
        self.end_tile();
        self.end_tile_row(io)?;
        Ok(self.writer.finish(io)?)
    }
}
