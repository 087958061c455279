//! Which values are held as arrays of tiles, and in which pass each is computed.
//!
//! Everything starts fused. A value is *materialized* only when it must be: outputs, results that are complete only
//! after a whole sweep, and values whose recomputation would cost more than keeping them. A materialized value has a
//! *root*: the domain that is walked to compute it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::closure::{Closure, Walker};
use super::root::{Domain, Root, RootKind};
use super::span::Span;
use super::PlanOptions;
use crate::cancel;
use crate::expr::{topological, Expr};

/// The materialized values of a program, by node id, and the inputs in evaluation order.
pub struct Partition {
    pub roots: BTreeMap<u64, Root>,
    pub order: Vec<Expr>,
    /// What each root computes and reads, by node id.
    pub closures: HashMap<u64, Closure>,
    /// Nodes visited to find this out: the cost of partitioning.
    pub visits: usize,
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
        partitioner.complete_closures();
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
    fn complete_closures(&mut self) {
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
