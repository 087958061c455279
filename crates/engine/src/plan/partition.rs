//! Which values are held as arrays of tiles, and in which pass each is computed.
//!
//! Everything starts fused. A value is *materialized* only when it must be: outputs, results that are complete only
//! after a whole sweep, and values whose recomputation would cost more than keeping them. A materialized value has a
//! *root*: the domain that is walked to compute it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::closure::{Closure, Walker};
use super::span::Span;
use super::PlanOptions;
use crate::cancel;
use crate::expr::grid::is_cut;
use crate::expr::{topological, Expr, Node, Op};
use crate::ops::{product_kind, Product};

/// The dimensions that a pass walks: only those cut into more than one tile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Domain {
    pub shape: Vec<u64>,
    pub tile: Vec<u64>,
}

impl Domain {
    fn push(&mut self, length: u64, tile: u64) -> usize {
        self.shape.push(length);
        self.tile.push(tile);
        self.shape.len() - 1
    }

    pub fn counts(&self) -> Vec<u64> {
        crate::expr::grid::counts(&self.shape, &self.tile)
    }

    pub fn cells(&self) -> u64 {
        self.counts()
            .iter()
            .fold(1, |cells, &count| cells.saturating_mul(count))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RootKind {
    /// Each cell of the domain gives one tile of the node.
    Map,
    /// The input is reduced along some dimensions of the domain; partial results are combined in a tree.
    Reduce,
    /// A product whose inner dimension is a dimension of the domain, summed in a tree of partial results.
    Contraction,
    /// A product whose result tiles are accumulators in memory while the inner dimension streams past.
    Blocked,
    /// Tiles that an algorithm makes of whole tiles: no walk of ours.
    Algorithm,
}

/// How one materialized node is computed.
#[derive(Clone, Debug)]
pub struct Root {
    pub node: Expr,
    pub kind: RootKind,
    pub domain: Domain,
    /// The node's own spans over the domain.
    pub spans: Vec<Span>,
    /// What is evaluated in each block: the node itself for `Map`, else its inputs.
    pub operands: Vec<(Expr, Vec<Span>)>,
    pub level: usize,
}

/// The materialized values of a program, by node id, and the inputs in evaluation order.
pub struct Partition {
    pub roots: BTreeMap<u64, Root>,
    pub order: Vec<Expr>,
    /// What each root computes and reads, by node id.
    pub closures: HashMap<u64, Closure>,
    /// Nodes visited to find this out: the cost of partitioning.
    pub visits: usize,
}

/// Spans of `node` over its own tile grid, adding the cut axes to `domain`.
fn own_spans(node: &Node, domain: &mut Domain) -> Vec<Span> {
    spans_of(&node.shape, &node.tile, domain)
}

fn spans_of(shape: &[u64], tile: &[u64], domain: &mut Domain) -> Vec<Span> {
    let axes = shape.iter().zip(tile);
    axes.map(|(&length, &tile)| {
        // An empty axis makes an empty domain: no task runs.
        if tile < length || length == 0 {
            Span::along(domain.push(length, tile))
        } else {
            Span::whole(length)
        }
    })
    .collect()
}

/// The root that computes the node by a walk over its own tiles.
pub fn natural_root(node: &Expr) -> Root {
    let mut domain = Domain::default();
    let (kind, spans, operands) = match &node.op {
        Op::Reduce { axes, .. } if is_cut(&node.inputs[0], axes) => {
            let input = &node.inputs[0];
            let kept: Vec<usize> = (0..input.ndim())
                .filter(|axis| axes.binary_search(axis).is_err())
                .collect();
            // Kept axes are cut as the result is, which may be finer; reduced ones as the input.
            let mut tile = input.tile.clone();
            kept.iter()
                .zip(&node.tile)
                .for_each(|(&axis, &length)| tile[axis] = length);
            let demanded = spans_of(&input.shape, &tile, &mut domain);
            (
                RootKind::Reduce,
                kept.iter().map(|&axis| demanded[axis]).collect(),
                vec![(input.clone(), demanded)],
            )
        }
        Op::Matmul => match product_kind(node) {
            Product::Aligned => (RootKind::Map, own_spans(node, &mut domain), vec![]),
            Product::Contraction { inner_tile } => product_root(node, inner_tile, RootKind::Contraction, &mut domain),
            Product::Blocked { inner_tile } => product_root(node, inner_tile, RootKind::Blocked, &mut domain),
        },
        Op::Algorithm(..) => (RootKind::Algorithm, own_spans(node, &mut domain), vec![]),
        _ => (RootKind::Map, own_spans(node, &mut domain), vec![]),
    };
    let operands = if kind == RootKind::Map {
        vec![(node.clone(), spans.clone())]
    } else {
        operands
    };
    Root {
        node: node.clone(),
        kind,
        domain,
        spans,
        operands,
        level: 0,
    }
}

/// Kind, own spans and operands of a root.
type RootParts = (RootKind, Vec<Span>, Vec<(Expr, Vec<Span>)>);

fn product_root(node: &Expr, inner_tile: u64, kind: RootKind, domain: &mut Domain) -> RootParts {
    let spans = own_spans(node, domain);
    let ndim = node.ndim();
    let inner = Span::along(domain.push(node.inputs[0].shape[ndim - 1], inner_tile));
    let operands = (0..2)
        .map(|index| {
            let mut demanded = spans.clone();
            demanded[ndim - 1 - index] = inner;
            (node.inputs[index].clone(), demanded)
        })
        .collect();
    (kind, spans, operands)
}

/// Nodes that move no data.
pub fn is_view(op: &Op) -> bool {
    matches!(
        op,
        Op::Permute(_) | Op::Slice(_) | Op::Expand(_) | Op::Squeeze(_) | Op::Broadcast
    )
}

/// Nodes whose value is gathered from other arrays, piece by piece.
pub fn is_assembly(op: &Op) -> bool {
    matches!(op, Op::Concat(_) | Op::Reshape)
}

/// Where a root's work runs: roots of equal key may share a pass.
pub type PassKey<'a> = (usize, &'a Domain, Option<u64>);

pub fn pass_key<'a>(root: &'a Root, level: usize, options: &PlanOptions) -> PassKey<'a> {
    let alone = !options.merge_scans || root.kind == RootKind::Blocked;
    (level, &root.domain, alone.then_some(root.node.id))
}

/// Whether `consumer` may read `producer`'s value inside the same pass: the same walk, block for block.
fn runs_together(consumer: &Root, producer: &Root, spans: Option<&[Span]>, options: &PlanOptions) -> bool {
    options.merge_scans
        && consumer.kind != RootKind::Blocked
        && producer.kind == RootKind::Map
        && consumer.domain == producer.domain
        && spans == Some(producer.spans.as_slice())
}

/// Decides what is materialized for `outputs`, and the level at which each is computed.
pub fn partition(outputs: &[Expr], options: &PlanOptions) -> Partition {
    let order = topological(outputs);
    let mut partitioner = Partitioner::new(&order, options);
    for output in outputs {
        partitioner.materialize(output);
    }
    loop {
        partitioner.settle();
        partitioner.assign_levels();
        if !partitioner.split_shared() {
            break;
        }
    }
    let Partitioner {
        walker,
        places,
        closures,
        levels,
        ..
    } = partitioner;
    let mut roots = walker.roots;
    for (id, root) in &mut roots {
        root.level = levels[places[id]];
    }
    Partition {
        roots,
        visits: walker.visits,
        order,
        closures,
    }
}

/// The fixed point in the making. Each value that is materialized changes a few closures; what follows from the others
/// is kept, so that long programs are planned in little more than one visit per node.
///
/// Roots go by node id, everything else by place: the position in `order`.
struct Partitioner<'a> {
    options: &'a PlanOptions,
    order: &'a [Expr],
    places: HashMap<u64, usize>,
    walker: Walker<'a>,
    /// By root, as of when it was last found.
    closures: HashMap<u64, Closure>,
    /// Roots whose closures are missing or out of date.
    stale: BTreeSet<u64>,
    /// By node: the roots of other nodes that compute it.
    fusers: Vec<BTreeSet<u64>>,
    /// By root: the roots it reads, and whether that may happen in the same pass.
    producers: Vec<Vec<(usize, bool)>>,
    /// By root: the roots that read it.
    readers: Vec<BTreeSet<usize>>,
    levels: Vec<usize>,
    /// Roots whose level may be out of date.
    moved: BTreeSet<usize>,
}

impl<'a> Partitioner<'a> {
    fn new(order: &'a [Expr], options: &'a PlanOptions) -> Partitioner<'a> {
        let count = order.len();
        Partitioner {
            options,
            order,
            places: order.iter().enumerate().map(|(place, node)| (node.id, place)).collect(),
            walker: Walker::new(order, options),
            closures: HashMap::new(),
            stale: BTreeSet::new(),
            fusers: vec![BTreeSet::new(); count],
            producers: vec![vec![]; count],
            readers: vec![BTreeSet::new(); count],
            levels: vec![0; count],
            moved: BTreeSet::new(),
        }
    }

    /// Makes the node a root, if it is none yet, and gives the roots whose closures may change by that.
    fn materialize(&mut self, node: &Expr) -> BTreeSet<u64> {
        if self.walker.roots.contains_key(&node.id) {
            return BTreeSet::new();
        }
        self.stale.insert(node.id);
        self.walker.materialize(node)
    }

    /// Adds missing nodes until every closure is complete.
    ///
    /// What is missing depends on what is there already, hence on the order. It is that of rounds over all roots by id,
    /// without those whose closures would come out as before; roots found in one round are first met in the next.
    fn settle(&mut self) {
        while !self.stale.is_empty() {
            let mut round = std::mem::take(&mut self.stale);
            while let Some(id) = round.pop_first() {
                self.find_closure(id);
                for missing in self.closures[&id].missing.clone() {
                    for root in self.materialize(&missing) {
                        // Those without a closure are new in this round.
                        if root > id && self.closures.contains_key(&root) {
                            round.insert(root);
                        } else {
                            self.stale.insert(root);
                        }
                    }
                }
            }
        }
    }

    fn find_closure(&mut self, id: u64) {
        cancel::check();
        let place = self.places[&id];
        if let Some(before) = self.closures.remove(&id) {
            for node in before.inlined {
                self.fusers[self.places[&node]].remove(&id);
            }
            for &(producer, _) in &self.producers[place] {
                self.readers[producer].remove(&place);
            }
        }
        let root = self.walker.roots[&id].clone();
        let closure = self.walker.closure(&root);
        for node in closure.inlined.iter().filter(|&&node| node != id) {
            self.fusers[self.places[node]].insert(id);
        }
        self.producers[place].clear();
        for (load, spans) in &closure.loads {
            if let Some(producer) = self.walker.roots.get(&load.id) {
                let together = runs_together(&root, producer, spans.as_deref(), self.options);
                let producer = self.places[&load.id];
                self.producers[place].push((producer, together));
                self.readers[producer].insert(place);
            }
        }
        self.closures.insert(id, closure);
        self.moved.insert(place);
    }

    /// A root runs after all that it reads, unless it reads it in the same pass.
    fn assign_levels(&mut self) {
        while let Some(place) = self.moved.pop_first() {
            cancel::check();
            let after = self.producers[place]
                .iter()
                .map(|&(producer, together)| self.levels[producer] + usize::from(!together));
            let level = after.max().unwrap_or(0);
            if level != self.levels[place] {
                self.levels[place] = level;
                self.moved.extend(&self.readers[place]);
            }
        }
    }

    /// Materializes a fused node that several passes would compute. True when there was one.
    fn split_shared(&mut self) -> bool {
        // From the outputs down: what the consumer settles often settles its producers too.
        for place in (0..self.order.len()).rev() {
            cancel::check();
            if self.fusers[place].len() < 2 || !self.is_in_several_passes(place) {
                continue;
            }
            let node = &self.order[place];
            if self.walker.is_worth_keeping(node) {
                let changed = self.materialize(node);
                self.stale.extend(changed);
                return true;
            }
        }
        false
    }

    fn is_in_several_passes(&self, place: usize) -> bool {
        let mut keys = self.fusers[place]
            .iter()
            .map(|id| pass_key(&self.walker.roots[id], self.levels[self.places[id]], self.options));
        let first = keys.next();
        keys.any(|key| Some(key) != first)
    }
}
