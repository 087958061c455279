//! Which values are held as arrays of tiles, and in which pass each is computed.
//!
//! Everything starts fused. A value is *materialized* only when it must be: outputs, results that are complete only
//! after a whole sweep, and values whose recomputation would cost more than keeping them. A materialized value has a
//! *root*: the domain that is walked to compute it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use outcore_kernels::Generator;

use super::span::{demand, Span};
use super::PlanOptions;
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
        self.counts().iter().product()
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
}

/// Spans of `node` over its own tile grid, adding the cut axes to `domain`.
fn own_spans(node: &Node, domain: &mut Domain) -> Vec<Span> {
    (0..node.ndim())
        .map(|axis| {
            // An empty axis makes an empty domain: no task runs.
            if node.tile[axis] < node.shape[axis] || node.shape[axis] == 0 {
                Span::along(domain.push(node.shape[axis], node.tile[axis]))
            } else {
                Span::whole(node.shape[axis])
            }
        })
        .collect()
}

fn natural_root(node: &Expr) -> Root {
    let mut domain = Domain::default();
    let (kind, spans, operands) = match &node.op {
        Op::Reduce { axes, .. } if is_cut(&node.inputs[0], axes) => {
            let input = &node.inputs[0];
            let demanded = own_spans(input, &mut domain);
            let kept = (0..input.ndim()).filter(|axis| axes.binary_search(axis).is_err());
            (
                RootKind::Reduce,
                kept.map(|axis| demanded[axis]).collect(),
                vec![(input.clone(), demanded)],
            )
        }
        Op::Matmul => match product_kind(node) {
            Product::Aligned => (RootKind::Map, own_spans(node, &mut domain), vec![]),
            Product::Contraction { inner_tile } => product_root(node, inner_tile, RootKind::Contraction, &mut domain),
            Product::Blocked { inner_tile } => product_root(node, inner_tile, RootKind::Blocked, &mut domain),
        },
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

fn is_cut(input: &Node, axes: &[usize]) -> bool {
    axes.iter().any(|&axis| input.tile[axis] < input.shape[axis])
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

/// What a chain of views looks at: that is what has to be held, the views cost nothing.
fn under_views(node: &Expr) -> Expr {
    let mut node = node;
    while is_view(&node.op) {
        node = &node.inputs[0];
    }
    node.clone()
}

/// Whether the node's value is complete only after a sweep, so that it cannot be fused into its consumer.
fn is_barrier(node: &Node, options: &PlanOptions) -> bool {
    match &node.op {
        Op::Reduce { axes, .. } => is_cut(&node.inputs[0], axes),
        Op::Matmul => !options.fuse_products || product_kind(node) != Product::Aligned,
        Op::MapBlocks(_) => true,
        _ => false,
    }
}

struct Walker<'a> {
    options: &'a PlanOptions,
    roots: BTreeMap<u64, Root>,
    cheap: HashMap<u64, Option<Cheap>>,
    gathers: RefCell<HashMap<u64, Option<usize>>>,
}

/// Assemblies nested deeper than this are held as tiles: each level multiplies the pieces of a read.
const NESTED_ASSEMBLIES_MAX: usize = 4;

/// A value that may be recomputed freely: a few element-wise steps over one large array at most.
#[derive(Clone, Copy)]
struct Cheap {
    leaf: Option<u64>,
    leaf_bytes: u64,
    steps: usize,
}

/// What a root's closure touches.
#[derive(Default)]
pub struct Closure {
    /// Fused nodes that compute.
    pub inlined: HashSet<u64>,
    /// Stored or materialized arrays, with the spans needed of each; no spans where an assembly reads it piecewise.
    pub loads: Vec<(Expr, Option<Vec<Span>>)>,
    /// Nodes that have to be materialized first.
    missing: Vec<Expr>,
}

impl Walker<'_> {
    fn is_leaf(&self, node: &Expr) -> bool {
        matches!(node.op, Op::Source(_) | Op::Generate(_)) || self.roots.contains_key(&node.id)
    }

    /// Whether the node is made of views and assemblies over leaves only, not nested too deep.
    fn is_gather(&self, node: &Expr) -> bool {
        self.nested_assemblies(node)
            .is_some_and(|depth| depth <= NESTED_ASSEMBLIES_MAX)
    }

    /// How deep assemblies are nested between the node and its leaves; nothing when something else is in between.
    fn nested_assemblies(&self, node: &Expr) -> Option<usize> {
        if self.is_leaf(node) {
            return Some(0);
        }
        if !is_view(&node.op) && !is_assembly(&node.op) {
            return None;
        }
        if let Some(&known) = self.gathers.borrow().get(&node.id) {
            return known;
        }
        let inner = node
            .inputs
            .iter()
            .map(|input| self.nested_assemblies(input))
            .try_fold(0, |most, depth| Some(most.max(depth?)));
        let found = inner.map(|depth| depth + usize::from(is_assembly(&node.op)));
        self.gathers.borrow_mut().insert(node.id, found);
        found
    }

    fn closure(&mut self, root: &Root) -> Closure {
        let mut closure = Closure::default();
        let mut seen = HashSet::new();
        for (operand, spans) in &root.operands {
            let is_root_value = root.kind == RootKind::Map;
            self.visit(operand, spans, root, is_root_value, &mut closure, &mut seen);
        }
        closure
    }

    fn visit(
        &mut self,
        node: &Expr,
        spans: &[Span],
        root: &Root,
        is_root_value: bool,
        closure: &mut Closure,
        seen: &mut HashSet<(u64, Vec<Span>)>,
    ) {
        if !seen.insert((node.id, spans.to_vec())) {
            return;
        }
        if !is_root_value {
            if self.is_leaf(node) {
                closure.loads.push((node.clone(), Some(spans.to_vec())));
                return;
            }
            if is_barrier(node, self.options) || !self.may_inline(node, spans, root) {
                closure.missing.push(node.clone());
                return;
            }
        }
        if is_assembly(&node.op) {
            for input in &node.inputs {
                if self.is_gather(input) {
                    self.piecewise_loads(input, closure);
                } else {
                    closure.missing.push(under_views(input));
                }
            }
            return;
        }
        if !is_view(&node.op) {
            closure.inlined.insert(node.id);
        }
        let separate = matches!(node.op, Op::Matmul) && !self.options.fuse_products;
        for (index, input) in node.inputs.iter().enumerate() {
            if separate && !self.is_gather(input) {
                closure.missing.push(under_views(input));
                continue;
            }
            self.visit(input, &demand(node, index, spans), root, false, closure, seen);
        }
    }

    fn piecewise_loads(&self, node: &Expr, closure: &mut Closure) {
        if self.is_leaf(node) {
            closure.loads.push((node.clone(), None));
            return;
        }
        for input in &node.inputs {
            self.piecewise_loads(input, closure);
        }
    }

    /// Fusing is right when the walk computes each element once, or when computing it again is as cheap as reading it.
    fn may_inline(&mut self, node: &Expr, spans: &[Span], root: &Root) -> bool {
        if is_view(&node.op) {
            return true;
        }
        if matches!(node.op, Op::Reshape) && !node.is_single_tile() {
            // Only a walk along its own tiles reads each run of the flat index once.
            let natural = natural_root(node);
            return natural.domain == root.domain && natural.spans == spans;
        }
        if is_assembly(&node.op) {
            return true;
        }
        let covered: BTreeSet<u8> = spans.iter().filter_map(|span| span.dim).collect();
        if covered.len() == root.domain.shape.len() {
            return true;
        }
        match self.cheap(node) {
            Some(cheap) if node.is_single_tile() => cheap.leaf.is_none() && node.elements() <= 1,
            Some(cheap) => cheap.leaf_bytes <= node.nbytes(),
            None => false,
        }
    }

    fn cheap(&mut self, node: &Expr) -> Option<Cheap> {
        if let Some(&known) = self.cheap.get(&node.id) {
            return known;
        }
        let found = self.find_cheap(node);
        self.cheap.insert(node.id, found);
        found
    }

    fn find_cheap(&mut self, node: &Expr) -> Option<Cheap> {
        if self.is_leaf(node) {
            let constant = matches!(node.op, Op::Generate(Generator::Full(_)));
            let large = !constant && !matches!(node.op, Op::Generate(_));
            return Some(Cheap {
                leaf: large.then_some(node.id),
                leaf_bytes: if large { node.nbytes() } else { 0 },
                steps: 0,
            });
        }
        let elementwise = matches!(node.op, Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast);
        if !elementwise && !is_view(&node.op) {
            return None;
        }
        let mut all = Cheap {
            leaf: None,
            leaf_bytes: 0,
            steps: usize::from(elementwise),
        };
        for input in &node.inputs {
            let one = self.cheap(input)?;
            match (all.leaf, one.leaf) {
                (Some(a), Some(b)) if a != b => return None,
                (None, Some(b)) => all.leaf = Some(b),
                _ => {}
            }
            all.leaf_bytes = all.leaf_bytes.max(one.leaf_bytes);
            all.steps += one.steps;
        }
        (all.steps <= 4).then_some(all)
    }

    fn materialize(&mut self, node: &Expr) -> bool {
        if self.roots.contains_key(&node.id) {
            return false;
        }
        self.roots.insert(node.id, natural_root(node));
        self.cheap.clear();
        self.gathers.borrow_mut().clear();
        true
    }
}

/// Where a root's work runs: roots of equal key may share a pass.
type PassKey = (usize, Domain, Option<u64>);

fn pass_key(root: &Root, options: &PlanOptions) -> PassKey {
    let alone = !options.merge_scans || root.kind == RootKind::Blocked;
    (root.level, root.domain.clone(), alone.then_some(root.node.id))
}

/// Decides what is materialized for `outputs`, and the level at which each is computed.
pub fn partition(outputs: &[Expr], options: &PlanOptions) -> Partition {
    let order = topological(outputs);
    let mut walker = Walker {
        options,
        roots: BTreeMap::new(),
        cheap: HashMap::new(),
        gathers: RefCell::default(),
    };
    for output in outputs {
        walker.materialize(output);
    }
    loop {
        settle(&mut walker);
        assign_levels(&mut walker, &order);
        if !split_shared(&mut walker, &order) {
            break;
        }
    }
    Partition {
        roots: walker.roots,
        order,
    }
}

/// Adds missing nodes until every closure is complete.
fn settle(walker: &mut Walker<'_>) {
    loop {
        let mut changed = false;
        let roots: Vec<Root> = walker.roots.values().cloned().collect();
        for root in &roots {
            for missing in walker.closure(root).missing {
                changed |= walker.materialize(&missing);
            }
        }
        if !changed {
            return;
        }
    }
}

/// Whether `consumer` may read `producer`'s value inside the same pass: the same walk, block for block.
fn runs_together(consumer: &Root, producer: &Root, spans: Option<&[Span]>, options: &PlanOptions) -> bool {
    options.merge_scans
        && consumer.kind != RootKind::Blocked
        && producer.kind == RootKind::Map
        && consumer.domain == producer.domain
        && spans == Some(producer.spans.as_slice())
}

fn assign_levels(walker: &mut Walker<'_>, order: &[Expr]) {
    for node in order {
        let Some(mut root) = walker.roots.get(&node.id).cloned() else {
            continue;
        };
        let closure = walker.closure(&root);
        root.level = closure
            .loads
            .iter()
            .filter_map(|(load, spans)| walker.roots.get(&load.id).map(|producer| (producer, spans)))
            .map(|(producer, spans)| {
                producer.level + usize::from(!runs_together(&root, producer, spans.as_deref(), walker.options))
            })
            .max()
            .unwrap_or(0);
        walker.roots.insert(node.id, root);
    }
}

/// Materializes fused nodes that several passes would compute. True when something changed.
fn split_shared(walker: &mut Walker<'_>, order: &[Expr]) -> bool {
    let roots: Vec<Root> = walker.roots.values().cloned().collect();
    let mut users: HashMap<u64, HashSet<PassKey>> = HashMap::new();
    for root in &roots {
        let key = pass_key(root, walker.options);
        for node in walker.closure(root).inlined {
            if node != root.node.id {
                users.entry(node).or_default().insert(key.clone());
            }
        }
    }
    // From the outputs down: what the consumer settles often settles its producers too.
    for node in order.iter().rev() {
        if users.get(&node.id).is_some_and(|keys| keys.len() > 1) && !walker.roots.contains_key(&node.id) {
            let cheap = walker.cheap(node);
            if cheap.is_none_or(|cheap| cheap.leaf_bytes > node.nbytes()) {
                walker.materialize(node);
                return true;
            }
        }
    }
    false
}

/// Roots grouped into passes: same key, and bound by an array they both stream or by a value one gives the other.
pub fn group(partition: &Partition, options: &PlanOptions) -> Vec<Vec<Root>> {
    let mut walker = Walker {
        options,
        roots: partition.roots.clone(),
        cheap: HashMap::new(),
        gathers: RefCell::default(),
    };
    let mut passes: Vec<(PassKey, Vec<Root>, HashSet<u64>)> = Vec::new();
    for node in &partition.order {
        let Some(root) = partition.roots.get(&node.id) else {
            continue;
        };
        let key = pass_key(root, options);
        let mut streams: HashSet<u64> = walker
            .closure(root)
            .loads
            .into_iter()
            .filter(|(_, spans)| {
                spans
                    .as_ref()
                    .is_none_or(|spans| spans.iter().any(|span| span.dim.is_some()))
            })
            .map(|(load, _)| load.id)
            .collect();
        streams.insert(root.node.id);
        let mut joined = vec![root.clone()];
        let mut kept = Vec::new();
        for (other_key, members, other_streams) in passes {
            if other_key == key && (key.1.shape.is_empty() || !other_streams.is_disjoint(&streams)) {
                joined.splice(0..0, members);
                streams.extend(other_streams);
            } else {
                kept.push((other_key, members, other_streams));
            }
        }
        kept.push((key, joined, streams));
        passes = kept;
    }
    passes.sort_by_key(|(key, _, _)| key.0);
    passes.into_iter().map(|(_, members, _)| members).collect()
}
