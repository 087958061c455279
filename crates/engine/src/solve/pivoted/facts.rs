//! Facts of a factor with pivoting, from the pivots that its tiles have: its determinant, the signs of its eigenvalues, and the
//! candidates that found no pivot where they were looked at.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{PivotForm, PivotRecord, PivotedKind};

use super::super::assembly::row_start;
use super::super::fronts::FrontNode;
use super::super::Analysis;
use super::blocks::split;
use super::fronts::{PivotedFronts, PivotedNode};
use super::subtrees::each_supernode;
use super::sweeps::PivotedFactor;
use crate::expr::Expr;
use crate::task::{Access, Alone, Bound, Grid, Work};
use crate::{ops, EngineError};

/// The facts: the logarithm of the absolute value of the determinant, its sign as a complex number, positive and negative
/// pivots, pivots that are another number for what is below them, candidates that were left for another front, pivots of 0, the
/// least size of other pivots, and the first row of those that are 0 or another number, in the order of elimination and from 1.
const PIVOT_FACTS: usize = 10;
const LOG: usize = 0;
const SIGN: usize = 1;
const POSITIVE: usize = 3;
const NEGATIVE: usize = 4;
const PERTURBED: usize = 5;
const LEFT: usize = 6;
const ZERO: usize = 7;
const SMALLEST: usize = 8;
const FIRST_WEAK: usize = 9;

/// Facts of a factor whose elements are of a type, as float64.
///
/// # Errors
/// Tiles that are no factor's.
pub fn pivot_facts(of: &PivotedFactor, dtype: DType) -> Result<Expr, EngineError> {
    let fronts = PivotedFronts::new(&of.analysis, of.kind, dtype.size() as u64);
    let work = PivotFacts {
        tiles: tiles_of(&fronts).into(),
        analysis: of.analysis.clone(),
        fronts: Arc::new(fronts),
        kind: of.kind,
        item: dtype.size(),
        grids: [Grid {
            shape: vec![PIVOT_FACTS as u64],
            tile: vec![PIVOT_FACTS as u64],
            dtype: DType::F64,
        }],
    };
    Ok(ops::algorithm(Arc::new(work), std::slice::from_ref(&of.tiles))?.swap_remove(0))
}

/// A tile that has pivots: of a node, on its diagonal.
#[derive(Clone, Copy, Debug)]
struct FactTile {
    node: u32,
    block: u32,
}

#[derive(Clone, Debug)]
struct PivotFacts {
    analysis: Arc<Analysis>,
    fronts: Arc<PivotedFronts>,
    kind: PivotedKind,
    item: usize,
    tiles: Arc<[FactTile]>,
    grids: [Grid; 1],
}

fn tiles_of(fronts: &PivotedFronts) -> Vec<FactTile> {
    let of = |(number, node): (usize, &PivotedNode)| {
        let blocks = node.blocks().map_or(1, |blocks| blocks.pivots);
        (0..blocks).map(move |block| FactTile {
            node: number as u32,
            block,
        })
    };
    fronts.nodes.iter().enumerate().flat_map(of).collect()
}

/// Facts while they are gathered.
struct PivotTally<'f> {
    facts: &'f mut [f64],
    kind: PivotedKind,
}

impl PivotTally<'_> {
    fn turn(&mut self, [re, im]: [f64; 2]) {
        let [own_re, own_im] = [self.facts[SIGN], self.facts[SIGN + 1]];
        self.facts[SIGN] = own_re * re - own_im * im;
        self.facts[SIGN + 1] = own_re * im + own_im * re;
    }

    /// A factor of the determinant.
    fn multiply(&mut self, [re, im]: [f64; 2]) {
        let size = re.hypot(im);
        self.facts[LOG] += size.ln();
        if size > 0.0 {
            self.turn([re / size, im / size]);
        }
    }

    fn count(&mut self, is_positive: bool) {
        self.facts[if is_positive { POSITIVE } else { NEGATIVE }] += 1.0;
    }

    fn one(&mut self, value: [f64; 2], record: &PivotRecord) {
        self.multiply(value);
        match record.form {
            PivotForm::PERTURBED => self.weak(PERTURBED, record.row),
            PivotForm::ZERO => self.weak(ZERO, record.row),
            _ => {
                self.count(value[0] > 0.0);
                self.sized(value[0].hypot(value[1]));
            }
        }
    }

    /// A pivot that is 0, or another number.
    fn weak(&mut self, fact: usize, row: u32) {
        self.facts[fact] += 1.0;
        if self.facts[FIRST_WEAK] == 0.0 {
            self.facts[FIRST_WEAK] = f64::from(row) + 1.0;
        }
    }

    fn sized(&mut self, size: f64) {
        self.facts[SMALLEST] = self.facts[SMALLEST].min(size);
    }

    /// A pivot of two rows: its determinant, relative to the square of the element that is not on the diagonal.
    fn two(&mut self, [a, b, c]: [[f64; 2]; 3]) {
        let times = |x: [f64; 2], y: [f64; 2]| [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]];
        let square = b[0].mul_add(b[0], b[1] * b[1]);
        let inverse = match self.kind {
            PivotedKind::Hermitian => [1.0 / square, 0.0],
            // One by b², for b = |b| e^{iφ}: e^{−2iφ} ÷ |b|².
            _ => {
                let conjugate = [b[0] / square, -b[1] / square];
                times(conjugate, conjugate)
            }
        };
        let product = times(times(a, c), inverse);
        let determinant = [product[0] - 1.0, product[1]];
        self.multiply(determinant);
        let largest = [a, b, c].map(|[re, im]| re.hypot(im)).into_iter().fold(0.0, f64::max);
        self.sized(determinant[0].hypot(determinant[1]) * square / largest);
        match self.kind {
            PivotedKind::Hermitian => self.multiply([square, 0.0]),
            _ => self.multiply(times(b, b)),
        }
        if determinant[0] < 0.0 {
            self.count(true);
            self.count(false);
        } else {
            let is_positive = a[0] + c[0] > 0.0;
            self.count(is_positive);
            self.count(is_positive);
        }
    }

    /// The pivots of some records; `at` has elements by place and distance below the diagonal.
    fn pivots(&mut self, records: &[PivotRecord], at: impl Fn(usize, usize) -> [f64; 2]) {
        for (place, record) in records.iter().enumerate() {
            match record.form {
                PivotForm::FIRST => self.two([at(place, 0), at(place, 1), at(place + 1, 0)]),
                PivotForm::SECOND => {}
                _ => self.one(at(place, 0), record),
            }
        }
    }

    /// Whether rows are taken for columns by an odd permutation.
    fn permuted(&mut self, pairs: &[[u32; 2]]) {
        let mut by_row: Vec<[u32; 2]> = pairs.to_vec();
        by_row.sort_unstable();
        let mut columns: Vec<u32> = pairs.iter().map(|[_, column]| *column).collect();
        columns.sort_unstable();
        let place = |column: u32| columns.partition_point(|other| *other < column);
        let mut seen = vec![false; pairs.len()];
        for start in 0..pairs.len() {
            let mut at = start;
            let mut length = 0;
            while !std::mem::replace(&mut seen[at], true) {
                at = place(by_row[at][1]);
                length += 1;
            }
            if length > 0 && length % 2 == 0 {
                self.turn([-1.0, 0.0]);
            }
        }
    }
}

impl PivotFacts {
    fn number(&self, bytes: &[u8], element: usize) -> [f64; 2] {
        let number = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0.0, |bytes| f64::from_ne_bytes(*bytes))
        };
        let at = element * self.item;
        [number(at), if self.item > 8 { number(at + 8) } else { 0.0 }]
    }

    fn of_subtrees(&self, front: &FrontNode, slots: u32, tile: &[u8], tally: &mut PivotTally<'_>) {
        let (mut pairs, mut empty) = (vec![], f64::from(slots));
        let is_symmetric = self.kind != PivotedKind::Unsymmetric;
        each_supernode(&self.analysis, front, self.kind, self.item, tile, |of| {
            let pivots = &of.columns.records[..of.columns.pivots];
            let side = of.columns.records.len() + self.analysis.below(of.supernode).len();
            let start = |place: usize| {
                let lower = place * side - place * place.saturating_sub(1) / 2;
                if is_symmetric {
                    lower
                } else {
                    2 * lower - place
                }
            };
            tally.pivots(pivots, |place, below| {
                self.number(of.columns.data, start(place) + below)
            });
            let is_root = self.analysis.supernodes[of.supernode as usize].parent >= front.supernodes.end;
            let known = if is_root {
                of.columns.records.len()
            } else {
                of.columns.pivots
            };
            pairs.extend(
                of.columns.records[..known]
                    .iter()
                    .map(|record| [record.row, record.column]),
            );
            let left = (of.columns.records.len() - of.columns.pivots) as f64;
            tally.facts[LEFT] += left;
            empty -= if is_root { left } else { 0.0 };
        });
        // An empty slot is a pivot of 1 wherever it is eliminated.
        tally.facts[POSITIVE] -= empty;
        if !is_symmetric {
            tally.permuted(&pairs);
        }
    }
}

impl Alone for PivotFacts {
    fn key(&self) -> Vec<u8> {
        format!("{} {:?}", self.analysis.digest, self.kind).into_bytes()
    }
    fn results(&self) -> &[Grid] {
        &self.grids
    }
}

impl Work for PivotFacts {
    fn label(&self) -> String {
        "facts of pivots".into()
    }
    fn tasks(&self) -> u64 {
        self.tiles.len().max(1) as u64
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        if let Some(FactTile { node, block }) = self.tiles.get(task as usize) {
            let node = &self.fronts.nodes[*node as usize];
            let tile = node.blocks().map_or(0, |blocks| blocks.tile(*block, *block).1);
            each(0, u64::from(node.factor + tile), Access::Read);
        }
        each(1, 0, if task == 0 { Access::Create } else { Access::Update });
    }
    fn record_bytes(&self) -> u64 {
        self.fronts.bytes() + size_of_val(&*self.tiles) as u64
    }
    fn operations(&self) -> f64 {
        self.analysis.rows() as f64
    }
    fn run(&self, task: u64, bound: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let facts: &mut [f64] = bytemuck::cast_slice_mut(bound.writes[0]);
        if task == 0 {
            facts.fill(0.0);
            facts[SIGN] = 1.0;
            facts[SMALLEST] = f64::INFINITY;
        }
        let Some(FactTile { node: number, block }) = self.tiles.get(task as usize) else {
            return Ok(());
        };
        let (front, node) = (
            &self.analysis.fronts.nodes[*number as usize],
            &self.fronts.nodes[*number as usize],
        );
        let mut tally = PivotTally { facts, kind: self.kind };
        let Some(blocks) = node.blocks() else {
            self.of_subtrees(front, node.slots, bound.reads[0], &mut tally);
            return Ok(());
        };
        let side = blocks.side(*block);
        let (elements, counts, records) = split(bound.reads[0], side);
        let is_symmetric = self.kind != PivotedKind::Unsymmetric;
        let at =
            |place: usize, below: usize| self.number(elements, row_start(place + below, side, is_symmetric) + place);
        tally.pivots(&records[..counts.pivots as usize], at);
        tally.facts[LEFT] += f64::from(counts.after - counts.before);
        if !is_symmetric {
            let pairs: Vec<[u32; 2]> = records.iter().map(|record| [record.row, record.column]).collect();
            tally.permuted(&pairs);
        }
        if *block + 1 == blocks.pivots {
            let used = match blocks.slots < blocks.pivots {
                // The slots of a root are its last block, and what it leaves none.
                true => counts.before,
                false => counts.after,
            };
            tally.facts[POSITIVE] -= f64::from(node.slots) - f64::from(used);
        }
        Ok(())
    }
}
