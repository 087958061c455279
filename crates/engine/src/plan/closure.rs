//! What the walk of one root computes and reads, and which values it cannot go on without.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use outcore_kernels::Generator;

use super::root::{is_assembly, is_view, natural_root, Root, RootKind};
use super::span::{demand, Span};
use super::PlanOptions;
use crate::cancel;
use crate::expr::grid::is_swept;
use crate::expr::{Expr, Node, Op};
use crate::ops::{product_kind, Product};

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
        Op::Reduce { axes, .. } => is_swept(&node.inputs[0], axes),
        Op::Matmul => !options.fuse_products || product_kind(node) != Product::Aligned,
        Op::MapBlocks(_) | Op::Algorithm(..) => true,
        _ => false,
    }
}

/// Finds closures, given what is materialized so far.
pub struct Walker<'a> {
    options: &'a PlanOptions,
    pub roots: BTreeMap<u64, Root>,
    /// The nodes that use a node directly.
    users: HashMap<u64, Vec<u64>>,
    // Judgements on fused nodes. They hold until something below the node is materialized.
    cheap: HashMap<u64, Option<Cheap>>,
    gathers: RefCell<HashMap<u64, Option<usize>>>,
    /// Nodes visited so far, each time counted.
    pub visits: usize,
}

/// Assemblies nested deeper than this are held as tiles: each level multiplies the pieces of a read.
const NESTED_ASSEMBLIES_MAX: usize = 4;

/// A fused node that several others use has this many computing nodes above it at most. Values that a long chain of
/// passes shares are kept sooner or later, and looking through the whole chain from every root is quadratic work.
const FUSED_DEPTH_MAX: usize = 64;

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
    /// Fused nodes that compute; twice where they do so over two boxes.
    pub inlined: Vec<u64>,
    /// Stored or materialized arrays, with the spans needed of each; no spans where an assembly reads it piecewise.
    pub loads: Vec<(Expr, Option<Vec<Span>>)>,
    /// Nodes that have to be materialized first.
    pub missing: Vec<Expr>,
}

impl<'a> Walker<'a> {
    pub fn new(order: &[Expr], options: &'a PlanOptions) -> Walker<'a> {
        let mut users: HashMap<u64, Vec<u64>> = HashMap::new();
        for node in order {
            for input in &node.inputs {
                users.entry(input.id).or_default().push(node.id);
            }
        }
        Walker {
            options,
            roots: BTreeMap::new(),
            users,
            cheap: HashMap::new(),
            gathers: RefCell::default(),
            visits: 0,
        }
    }

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

    pub fn closure(&mut self, root: &Root) -> Closure {
        let mut closure = Closure::default();
        let mut seen = HashSet::new();
        if root.kind == RootKind::Algorithm {
            // It takes tiles, so its inputs are held, be they ever so cheap.
            for input in &root.node.inputs {
                if self.is_leaf(input) {
                    closure.loads.push((input.clone(), None));
                } else {
                    closure.missing.push(input.clone());
                }
            }
        }
        for (operand, spans) in &root.operands {
            let is_root_value = root.kind == RootKind::Map;
            let depth = usize::from(!is_root_value);
            self.visit(operand, spans, root, depth, &mut closure, &mut seen);
        }
        closure
    }

    /// `depth` counts the computing nodes above, the root's own among them: it is zero for the root's value itself.
    fn visit(
        &mut self,
        node: &Expr,
        spans: &[Span],
        root: &Root,
        depth: usize,
        closure: &mut Closure,
        seen: &mut HashSet<(u64, Vec<Span>)>,
    ) {
        if !seen.insert((node.id, spans.to_vec())) {
            return;
        }
        cancel::check();
        self.visits += 1;
        if depth > 0 {
            if self.is_leaf(node) {
                closure.loads.push((node.clone(), Some(spans.to_vec())));
                return;
            }
            if depth > FUSED_DEPTH_MAX && self.is_shared(node)
                || is_barrier(node, self.options)
                || !self.may_inline(node, spans, root)
            {
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
            closure.inlined.push(node.id);
        }
        let separate = matches!(node.op, Op::Matmul) && !self.options.fuse_products;
        for (index, input) in node.inputs.iter().enumerate() {
            if separate && !self.is_gather(input) {
                closure.missing.push(under_views(input));
                continue;
            }
            let depth = depth + usize::from(depth == 0 || !is_view(&node.op));
            self.visit(input, &demand(node, index, spans), root, depth, closure, seen);
        }
    }

    /// Whether several nodes compute with the node's value.
    fn is_shared(&self, node: &Expr) -> bool {
        let users = self.users.get(&node.id).map_or(&[][..], Vec::as_slice);
        !is_view(&node.op) && !is_assembly(&node.op) && users.iter().any(|&user| user != users[0])
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
        let elementwise = matches!(
            node.op,
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_)
        );
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

    /// Whether computing the node again may cost more than reading it.
    pub fn is_worth_keeping(&mut self, node: &Expr) -> bool {
        self.cheap(node).is_none_or(|cheap| cheap.leaf_bytes > node.nbytes())
    }

    /// Makes the node a root. Gives the roots above it up to which there is no other: only their closures may change.
    pub fn materialize(&mut self, node: &Expr) -> BTreeSet<u64> {
        self.roots.insert(node.id, natural_root(node));
        let mut above = BTreeSet::new();
        let mut seen = HashSet::from([node.id]);
        let mut pending = vec![node.id];
        while let Some(id) = pending.pop() {
            cancel::check();
            self.cheap.remove(&id);
            self.gathers.get_mut().remove(&id);
            for user in self.users.get(&id).into_iter().flatten() {
                if self.roots.contains_key(user) {
                    above.insert(*user);
                } else if seen.insert(*user) {
                    pending.push(*user);
                }
            }
        }
        above
    }
}
