//! Order statistics of every column in two reads (Munro and Paterson 1980; sampled as Blum et al.'s selection).
//!
//! The first read sorts runs of every column and notes each `stride`-th key. Whatever the data, these tell for any rank a
//! key that it cannot lie below and one that it cannot lie above, with few elements strictly between: at most two strides
//! for every run. Equal elements are counted, not kept. The second read keeps those few and selects exactly.

mod bracket;
mod note;
mod select;

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::sort::KeyOrder;
use outcore_store::Io;

use self::bracket::{bracket, Brackets, Noted};
use self::note::Note;
use self::select::Select;
use crate::expr::staged::{Found, Keep, Next, Room, Staged, Stages};
use crate::expr::Expr;
use crate::task::Grid;
use crate::{ops, EngineError};

/// Columns that are brought into a row each at once.
const TOGETHER: u64 = 8;
/// Bytes of noted keys, at least and at most.
const NOTED_BYTES: (u64, u64) = (1 << 20, 64 << 20);

/// What is asked of a matrix: order statistics of its columns.
#[derive(Clone, Debug)]
struct Asked {
    order: KeyOrder,
    x: Grid,
    /// Where in the sorted column, from 0 to 1.
    fractions: Vec<f64>,
}

impl Asked {
    fn rows(&self) -> u64 {
        self.x.shape[0]
    }

    fn columns(&self) -> u64 {
        self.x.shape[1]
    }

    /// Tiles side by side.
    fn across(&self) -> u64 {
        self.x.counts()[1]
    }

    fn results(&self) -> Vec<Grid> {
        let (asked, columns) = (self.fractions.len() as u64, self.columns());
        let grid = |shape: Vec<u64>, dtype| Grid {
            tile: shape.iter().map(|&length| length.max(1)).collect(),
            shape,
            dtype,
        };
        vec![
            grid(vec![asked, columns], self.x.dtype),
            grid(vec![asked, columns], self.x.dtype),
            grid(vec![asked, columns], DType::F64),
            grid(vec![columns], DType::I64),
        ]
    }
}

/// Tiles of a matrix that a task sorts column by column.
#[derive(Clone, Copy, Debug)]
struct Runs {
    /// Row tiles of a run.
    tiles: u64,
    /// Elements of a column between noted ones, and how many are noted.
    stride: u64,
    noted: u64,
}

impl Runs {
    fn new(asked: &Asked, room: Room) -> Runs {
        let x = &asked.x;
        let item = x.dtype.size() as u64;
        let tile: u64 = x.tile.iter().product::<u64>() * item;
        let threads = room.threads as u64;
        let at_once = (threads + 1) * tile + threads * (TOGETHER.min(x.tile[1]) + 1) * x.tile[0] * item;
        let tiles = (room.memory / 4 * 3 / at_once.max(1)).clamp(1, x.counts()[0].max(1));
        let runs = x.counts()[0].div_ceil(tiles).max(1);
        let budget = (room.memory / 32).clamp(NOTED_BYTES.0, NOTED_BYTES.1);
        let rows = (tiles * x.tile[0]).min(asked.rows().max(1));
        let noted = (budget / (runs * asked.columns().max(1) * item))
            .clamp(4, 1 << 16)
            .min(rows);
        let stride = rows.div_ceil(noted);
        Runs {
            tiles,
            stride,
            noted: rows.div_ceil(stride),
        }
    }

    fn count(&self, asked: &Asked) -> u64 {
        asked.x.counts()[0].div_ceil(self.tiles)
    }

    /// First row tile of a run and the one after its last.
    fn range(&self, asked: &Asked, run: u64) -> std::ops::Range<u64> {
        run * self.tiles..((run + 1) * self.tiles).min(asked.x.counts()[0])
    }

    /// Rows of a run.
    fn rows(&self, asked: &Asked, run: u64) -> u64 {
        let start = run * self.tiles * asked.x.tile[0];
        (asked.rows() - start).min(self.tiles * asked.x.tile[0])
    }
}

/// Brings up to `TOGETHER` columns of tiles one above the other into rows of `rows` elements, and calls `each` with them:
/// the column within the tiles and its elements.
fn each_column(
    x: &Grid,
    tiles: &[&[u8]],
    width: usize,
    rows: usize,
    space: &mut [u8],
    mut each: impl FnMut(usize, &mut [u8]),
) {
    let item = x.dtype.size();
    for first in (0..width).step_by(TOGETHER as usize) {
        let columns = (width - first).min(TOGETHER as usize);
        let mut at = 0;
        for tile in tiles {
            let count = tile.len() / (width * item);
            let shape = [columns, count];
            outcore_kernels::copy_strided(
                item,
                &shape,
                tile,
                first,
                &[1, width as isize],
                space,
                at,
                &[rows as isize, 1],
            );
            at += count;
        }
        for (column, values) in space.chunks_exact_mut(rows * item).take(columns).enumerate() {
            each(first + column, values);
        }
    }
}

/// For every column of the matrix `x` and each of `fractions` (0 to 1) the elements on both sides of that place among
/// those in order that are not NaN, two matrices of (fraction, column); how far between them the place is (float64, 0 to
/// 1); and how many elements each column has that are not NaN (int64).
///
/// # Errors
/// A type without an order; an array that is no matrix; fractions outside 0 to 1.
pub fn order_statistics(x: &Expr, fractions: &[f64]) -> Result<Vec<Expr>, EngineError> {
    let order = KeyOrder::new(x.dtype, false)
        .ok_or_else(|| EngineError::DType(format!("quantile: {} has no order", x.dtype)))?;
    if x.ndim() != 2 || x.shape.contains(&0) {
        return Err(EngineError::Shape(format!(
            "quantile: shape {} is not that of columns with elements",
            ops::show(&x.shape)
        )));
    }
    if let Some(outside) = fractions.iter().find(|fraction| !(0.0..=1.0).contains(*fraction)) {
        return Err(EngineError::Argument(format!(
            "quantile: q={outside} is not between 0 and 1"
        )));
    }
    let asked = Asked {
        order,
        x: x.grid(),
        fractions: fractions.to_vec(),
    };
    let results = asked.results();
    ops::staged(Arc::new(OrderStatistics { asked, results }), std::slice::from_ref(x))
}

#[derive(Debug)]
struct OrderStatistics {
    asked: Asked,
    results: Vec<Grid>,
}

impl Staged for OrderStatistics {
    fn name(&self) -> String {
        "quantile".into()
    }
    fn key(&self) -> Vec<u8> {
        self.asked
            .fractions
            .iter()
            .flat_map(|fraction| fraction.to_ne_bytes())
            .collect()
    }
    fn results(&self) -> &[Grid] {
        &self.results
    }
    fn begin(&self, inputs: &[Expr], room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Finding {
            runs: Runs::new(&self.asked, room),
            asked: self.asked.clone(),
            x: inputs[0].clone(),
        }))
    }
}

struct Finding {
    asked: Asked,
    runs: Runs,
    x: Expr,
}

impl Finding {
    fn select(&self, brackets: Brackets, room: Room) -> Result<Next, EngineError> {
        let item = self.asked.x.dtype.size() as u64;
        let (kept, most) = (brackets.total() * item, room.memory / 6);
        if kept > most {
            return Err(EngineError::Plan(format!(
                "quantile: up to {kept} bytes lie so near what is looked for that one more read cannot tell them apart in \
                 {most} bytes; use a larger memory_limit, or fewer quantiles at once"
            )));
        }
        let select = Select::new(self.asked.clone(), self.runs, Arc::new(brackets));
        let mut nodes = ops::algorithm(Arc::new(select), std::slice::from_ref(&self.x))?;
        nodes.truncate(self.asked.results().len());
        Ok(Next::Done(nodes))
    }
}

impl Stages for Finding {
    fn next(&mut self, found: &[Found], room: Room, _io: &Io) -> Result<Next, EngineError> {
        let [Found::Fact(keys), Found::Fact(counts)] = found else {
            let note = Note::new(self.asked.clone(), self.runs);
            let nodes = ops::algorithm(Arc::new(note), std::slice::from_ref(&self.x))?;
            return Ok(Next::Stage {
                label: "note keys of sorted runs".into(),
                awaits: "between which keys the quantiles lie".into(),
                outputs: nodes.into_iter().map(|node| (node, Keep::Fact)).collect(),
            });
        };
        let (counts, _) = counts.as_chunks::<8>();
        let noted = Noted {
            asked: &self.asked,
            runs: self.runs,
            keys,
            counts: counts.iter().map(|count| u64::from_ne_bytes(*count)).collect(),
        };
        self.select(bracket(&noted), room)
    }

    fn assume(&mut self, room: Room) -> Result<Next, EngineError> {
        self.select(Brackets::assumed(&self.asked, self.runs), room)
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}
