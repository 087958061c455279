//! The analysis as live work: its memory is bounded by rows and entries, and it reads the matrix once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

use outcore_ordering::{
    compress, compress_bytes, dissect, dissect_bytes, min_degree, min_degree_bytes, OrderingWatch, Stopped,
    SymmetricGraph,
};

use super::pairing::{pairing_bytes, PairedRows, Pairing};
use crate::live::{IoBound, LiveMemory, LiveOperator, Resources, Watch};
use crate::solve::{pattern_bytes, Analysis, Pattern, PivotScaling, Stop, SupernodeTree};
use crate::sparse::SparseMatrix;
use crate::EngineError;

/// Time between looks at the caller.
const LOOK: Duration = Duration::from_millis(50);

/// The order that rows are eliminated in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EliminationOrder {
    /// Approximate minimum degree, or nested dissection where that is predicted to take less time in all.
    Auto,
    NestedDissection,
    MinimumDegree,
    /// As the rows are.
    Natural,
    Given(Vec<u32>),
}

/// The method by which an order was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderingMethod {
    NestedDissection,
    MinimumDegree,
    Natural,
    Given,
}

impl OrderingMethod {
    /// As callers name it.
    pub fn name(self) -> &'static str {
        match self {
            OrderingMethod::NestedDissection => "nd",
            OrderingMethod::MinimumDegree => "amd",
            OrderingMethod::Natural => "natural",
            OrderingMethod::Given => "given",
        }
    }
}

/// An analysis, and the method that its order was found by.
#[derive(Debug)]
pub struct OrderedAnalysis {
    pub analysis: Analysis,
    pub taken: OrderingMethod,
    /// How the matrix is scaled, where pivots are paired.
    pub scaling: Option<PivotScaling>,
}

/// A matrix, of which the pattern of A + Aᵀ is analyzed.
pub struct AnalyzedMatrix<'a> {
    pub matrix: &'a SparseMatrix,
    pub ordering: EliminationOrder,
    pub pairing: Pairing,
    /// The tolerance of tiles of low rank.
    pub low_rank: Option<f64>,
}

/// A function that orders a graph.
type Orderer = dyn Fn(SymmetricGraph<'_>, &OrderingWatch<'_>) -> Result<Vec<u32>, Stopped>;

/// Operations of a factorization that take as long as a nested dissection spends on one row.
const DISSECTION_OPERATIONS: f64 = 6e-6 * 60e9;
/// Dissections that a factorization must take as long as, for it saves a part of its operations alone.
const WORTH: f64 = 2.5;

impl AnalyzedMatrix<'_> {
    fn order(
        &self,
        pattern: &Pattern,
        partners: Option<&[u32]>,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<(OrderingMethod, Vec<u32>), EngineError> {
        let graph = SymmetricGraph {
            starts: &pattern.starts,
            neighbours: &pattern.neighbours,
        };
        let watch = OrderingWatch { threads, stop };
        let stopped = |Stopped: Stopped| EngineError::Cancelled;
        // Members of a pair are eliminated one behind the other.
        let paired = partners.map(|partners| compress(&graph, partners, &watch)).transpose();
        let paired = paired.map_err(stopped)?;
        let of = |by: &Orderer| match &paired {
            None => by(graph, &watch).map_err(stopped),
            Some(paired) => Ok(paired.expand(&by(paired.graph(), &watch).map_err(stopped)?)),
        };
        let by_degree = || of(&min_degree);
        let by_dissection = || of(&dissect);
        Ok(match &self.ordering {
            EliminationOrder::Given(order) => (OrderingMethod::Given, order.clone()),
            EliminationOrder::Natural => (OrderingMethod::Natural, (0..pattern.vertices() as u32).collect()),
            EliminationOrder::MinimumDegree => (OrderingMethod::MinimumDegree, by_degree()?),
            EliminationOrder::NestedDissection => (OrderingMethod::NestedDissection, by_dissection()?),
            // Parts of a graph are where minimum degree has none.
            EliminationOrder::Auto if self.low_rank.is_some() => (OrderingMethod::NestedDissection, by_dissection()?),
            EliminationOrder::Auto => {
                let order = by_degree()?;
                let effort = crate::solve::effort_of(pattern, order.clone(), stop)?;
                match effort > WORTH * DISSECTION_OPERATIONS * pattern.vertices() as f64 {
                    true => (OrderingMethod::NestedDissection, by_dissection()?),
                    false => (OrderingMethod::MinimumDegree, order),
                }
            }
        })
    }

    /// Memory beside the pattern once it is read: the ordering's, then that of the analysis.
    fn analysis_bytes(&self, rows: u64, directed: u64, threads: usize) -> u64 {
        let paired = match self.pairing {
            Pairing::Symmetric => compress_bytes(rows, directed),
            _ => 0,
        };
        (paired + self.ordering_bytes(rows, directed, threads)).max(Analysis::tree_bytes(rows))
    }

    fn ordering_bytes(&self, rows: u64, directed: u64, threads: usize) -> u64 {
        match &self.ordering {
            EliminationOrder::Given(order) => 4 * order.len() as u64,
            EliminationOrder::Natural => 4 * rows,
            EliminationOrder::MinimumDegree => min_degree_bytes(rows, directed),
            EliminationOrder::NestedDissection => dissect_bytes(rows, directed, threads),
            EliminationOrder::Auto => {
                4 * rows + dissect_bytes(rows, directed, threads).max(min_degree_bytes(rows, directed))
            }
        }
    }
}

impl LiveOperator for AnalyzedMatrix<'_> {
    type Output = OrderedAnalysis;

    fn name(&self) -> &'static str {
        "analyze"
    }

    fn memory(&self, threads: usize) -> LiveMemory {
        let shape = self.matrix.file.matrix();
        let tiles = 0..self.matrix.file.tiles();
        // Rows, columns and values of a tile beside its bytes.
        let tile = |tile| self.matrix.reading_bytes(tile) + 24 * self.matrix.entries_of(tile);
        let reading = tiles.map(tile).max().unwrap_or(0);
        // Each entry may be two edges; the ordering takes more memory where they are known.
        let pattern = pattern_bytes(shape.rows, shape.entries) + reading;
        let edges = self.analysis_bytes(shape.rows, shape.entries, threads) + 8 * shape.rows + 4 * shape.entries;
        let pairing = pairing_bytes(self.pairing, shape.rows, shape.entries);
        let least = pattern.max(pairing + if pairing > 0 { reading } else { 0 });
        LiveMemory::working(least, least.max(edges))
    }

    fn bound(&self) -> IoBound {
        let bytes = self.matrix.file.file_bytes();
        IoBound {
            most: Some(if self.pairing == Pairing::Nothing {
                bytes
            } else {
                2 * bytes
            }),
            once: bytes,
            cold: None,
            because: match self.pairing {
                Pairing::Nothing => "the pattern is read once",
                _ => "entries are read once, and the pattern",
            }
            .into(),
        }
    }

    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<OrderedAnalysis, EngineError> {
        let shape = self.matrix.file.matrix();
        if shape.rows != shape.columns {
            return Err(EngineError::Shape(format!(
                "analyze: a matrix of shape ({}, {}) is not square",
                shape.rows, shape.columns
            )));
        }
        if let EliminationOrder::Given(order) = &self.ordering {
            check_permutation(order, shape.rows)?;
        }
        let paired = PairedRows::of(self.pairing, self.matrix, resources.io, watch)?;
        let paired = paired.map(|paired| watched(watch, paired)).transpose()?;
        let places = paired.as_ref().and_then(|paired| paired.places.as_deref());
        let pattern = Pattern::of(self.matrix, places, resources.io, watch)?;
        let directed = pattern.neighbours.len() as u64;
        let bytes = pattern.bytes() + self.analysis_bytes(shape.rows, directed, resources.threads);
        if bytes > resources.memory {
            (resources.grow)(bytes - resources.memory)?;
        }
        let (taken, tree): (OrderingMethod, SupernodeTree) = watched(watch, |stop| {
            let partners = paired.as_ref().and_then(|paired| paired.partners.as_deref());
            let (taken, order) = self.order(&pattern, partners, resources.threads, stop)?;
            Ok((taken, Analysis::tree(&pattern, order, stop)?))
        })?;
        // The rows of fronts are known by their number now.
        (resources.grow)(Analysis::front_bytes(&tree))?;
        let analysis = watched(watch, |stop| Analysis::of_tree(&pattern, tree, self.low_rank, stop))?;
        let scaling = paired.map(|paired| paired.scaling(&analysis.order));
        Ok(OrderedAnalysis {
            analysis,
            taken,
            scaling,
        })
    }
}

/// The result of work in a thread of its own, which looks now and then whether to stop.
///
/// # Errors
/// The error of `watch`, after which the work is to stop.
fn watched<T: Send>(
    watch: &mut Watch<'_>,
    work: impl FnOnce(Stop<'_>) -> Result<T, EngineError> + Send,
) -> Result<T, EngineError> {
    let stop = AtomicBool::new(false);
    let is_stopped = || stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let (done, finished) = channel::<()>();
        let is_stopped = &is_stopped;
        let worker = scope.spawn(move || {
            let made = work(is_stopped);
            drop(done);
            made
        });
        let looked = loop {
            match finished.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => break Ok(()),
            }
            if let Err(error) = watch() {
                stop.store(true, Ordering::Relaxed);
                break Err(error);
            }
        };
        let made = worker.join();
        looked?;
        match made {
            Ok(made) => made,
            Err(_) => Err(EngineError::Internal("analyze: the work ended with a panic".into())),
        }
    })
}

/// # Errors
/// An order that is none of so many rows.
fn check_permutation(order: &[u32], rows: u64) -> Result<(), EngineError> {
    let refusal = |reason: String| Err(EngineError::Argument(format!("analyze: ordering: {reason}")));
    if order.len() as u64 != rows {
        return refusal(format!("{} rows, and the matrix has {rows}", order.len()));
    }
    let mut seen = vec![false; order.len()];
    for &row in order {
        match seen.get_mut(row as usize) {
            None => return refusal(format!("row {row}, and the matrix has {rows}")),
            Some(true) => return refusal(format!("row {row} stands twice")),
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}
