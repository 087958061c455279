//! Order statistics of every column in two reads (Munro and Paterson 1980; sampled as Blum et al.'s selection).
//!
//! The first read sorts runs of every column and notes each `stride`-th key. Whatever the data, these tell for any rank a
//! key that it cannot lie below and one that it cannot lie above, with few elements strictly between: at most two strides
//! for every run. Equal elements are counted, not kept. The second read keeps those few and selects exactly.

mod bracket;
mod note;
mod runs;
mod select;

use std::sync::Arc;

use outcore_kernels::sort::KeyOrder;
use outcore_store::Io;

use self::bracket::{bracket, Brackets, QuantileNotes};
use self::note::Note;
use self::runs::{QuantileRequest, Runs};
use self::select::Select;
use crate::expr::staged::{Keep, Next, Room, StageResult, Staged, Stages};
use crate::expr::Expr;
use crate::task::{Grid, Recipe};
use crate::{ops, EngineError};

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
    let asked = QuantileRequest {
        order,
        x: x.grid(),
        fractions: fractions.to_vec(),
    };
    let results = asked.results();
    ops::staged(Arc::new(OrderStatistics { asked, results }), std::slice::from_ref(x))
}

#[derive(Debug)]
struct OrderStatistics {
    asked: QuantileRequest,
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
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("order statistics").floats(self.asked.fractions.clone()))
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
    asked: QuantileRequest,
    runs: Runs,
    x: Expr,
}

impl Finding {
    /// Memory in which what lies near is little enough, whatever the data: with more of it runs are longer and fewer.
    fn enough(&self, room: Room) -> u64 {
        let item = self.asked.x.dtype.size() as u64;
        let mut memory = room.memory.max(1);
        loop {
            memory += memory.div_ceil(4);
            let runs = Runs::new(&self.asked, Room { memory, ..room });
            if Brackets::assumed(&self.asked, runs).total().saturating_mul(6 * item) <= memory {
                return memory;
            }
        }
    }

    fn select(&self, brackets: Brackets, room: Room) -> Result<Next, EngineError> {
        let item = self.asked.x.dtype.size() as u64;
        let (kept, most) = (brackets.total() * item, room.memory / 6);
        if kept > most {
            let need = self.enough(room);
            return Err(EngineError::Memory {
                operator: "quantile".into(),
                need,
                available: room.memory,
                smallest: need,
                exact: false,
                detail: format!(
                    "{kept} bytes lie so near what is looked for that one more read cannot tell them apart; fewer quantiles at \
                     once need less"
                ),
                planning: false,
            });
        }
        let select = Select::new(self.asked.clone(), self.runs, Arc::new(brackets));
        let mut nodes = ops::algorithm(Arc::new(select), std::slice::from_ref(&self.x))?;
        nodes.truncate(self.asked.results().len());
        Ok(Next::Done(nodes))
    }
}

impl Stages for Finding {
    fn next(&mut self, results: &[StageResult], room: Room, _io: &Io) -> Result<Next, EngineError> {
        let [StageResult::Fact(keys), StageResult::Fact(counts)] = results else {
            let note = Note::new(self.asked.clone(), self.runs);
            let nodes = ops::algorithm(Arc::new(note), std::slice::from_ref(&self.x))?;
            return Ok(Next::Stage {
                label: "note keys of sorted runs".into(),
                awaits: "between which keys the quantiles lie".into(),
                outputs: nodes.into_iter().map(|node| (node, Keep::Fact)).collect(),
            });
        };
        let (counts, _) = counts.as_chunks::<8>();
        let noted = QuantileNotes {
            asked: &self.asked,
            runs: self.runs,
            keys,
            counts: counts.iter().map(|count| u64::from_ne_bytes(*count)).collect(),
        };
        self.select(bracket(&noted), room)
    }

    fn assume(&mut self, _after: usize, room: Room) -> Result<Next, EngineError> {
        self.select(Brackets::assumed(&self.asked, self.runs), room)
    }

    fn lookup_bytes(&self) -> u64 {
        0
    }
}
