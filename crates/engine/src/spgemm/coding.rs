//! Tile rows of a product as bytes, by all threads.

use std::collections::BTreeMap;
use std::ops::Range;

use outcore_coding::tiles::{Rows, TileRowEncoder};
use outcore_dtype::DType;
use outcore_kernels::cast_kernel;
use outcore_store::SparseShape;

/// Entries of a tile row that are encoded by one thread; fewer are not worth another.
const TOGETHER: usize = 1 << 16;

/// How tile rows of the result are coded.
pub(super) struct TileRowCoding<'a> {
    pub shape: &'a SparseShape,
    /// Of the sums.
    pub dtype: DType,
}

impl TileRowCoding<'_> {
    /// The columns of tiles, in pieces for so many threads where a tile row has many entries.
    pub fn pieces(&self, entries: usize, workers: usize) -> impl Iterator<Item = Range<u64>> {
        let blocks = self.shape.columns.div_ceil(u64::from(self.shape.side));
        let count = if entries < TOGETHER || workers < 2 {
            1
        } else {
            workers as u64
        };
        let step = blocks.div_ceil(count).max(1);
        (0..blocks.max(1))
            .step_by(step as usize)
            .map(move |first| first..(first + step).min(blocks))
    }

    /// The entries of a tile row of so many rows in some columns of tiles, tile by tile.
    pub fn encoded(&self, height: usize, rows: &Rows, blocks: &Range<u64>) -> TileRowEncoder {
        let mut encoder = TileRowEncoder::default();
        if rows.entries() == 0 {
            return encoder;
        }
        let item = self.shape.dtype.map_or(0, |dtype| dtype.size());
        let from = self.dtype.size();
        let cast = self.shape.dtype.filter(|dtype| *dtype != self.dtype);
        let cast = cast.map(|dtype| cast_kernel(self.dtype, dtype));
        let side = u64::from(self.shape.side);
        // The runs of a row in tiles: of each the tile and the place.
        let runs_of = |row: usize| {
            let whole = rows.place(row);
            let before = |end: u64| rows.columns[whole.clone()].partition_point(|column| *column < end);
            let mut place = whole.start + before(blocks.start * side)..whole.start + before(blocks.end * side);
            std::iter::from_fn(move || {
                let block = rows.columns.get(place.clone())?.first()? / side;
                let own = rows.columns[place.clone()].partition_point(|column| column / side == block);
                let run = place.start..place.start + own;
                place.start = run.end;
                Some((block as u32, run))
            })
        };
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (block, run) in (0..height).flat_map(&runs_of) {
            *counts.entry(block).or_default() += run.len();
        }
        let room = |count: usize| (Vec::with_capacity(count), Vec::with_capacity(count * item));
        let mut tiles: BTreeMap<u32, (Vec<u32>, Vec<u8>)> =
            counts.into_iter().map(|(block, count)| (block, room(count))).collect();
        for row in 0..height {
            for (block, run) in runs_of(row) {
                let (entries, bytes) = tiles.entry(block).or_default();
                let columns = rows.columns[run.clone()].iter();
                entries.extend(columns.map(|column| (row as u32) << 16 | (column % side) as u32));
                let sums = |item: usize| &rows.values.bytes()[run.start * item..run.end * item];
                match (item, cast) {
                    (0, _) => {}
                    (_, None) => bytes.extend_from_slice(sums(item)),
                    (_, Some(cast)) => {
                        let begin = bytes.len();
                        bytes.resize(begin + run.len() * item, 0);
                        cast(sums(from), &mut bytes[begin..]);
                    }
                }
            }
        }
        for (block, (entries, values)) in tiles {
            encoder.tile(block, &entries, &values, item);
        }
        encoder
    }
}
