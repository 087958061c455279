//! Typed expression nodes. Equal nodes are one node (hash-consing), so common subexpressions need no search.

pub mod grid;
pub mod staged;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use outcore_dtype::DType;
use outcore_kernels::{Binary, Finish, Generator, Reduce, Unary};
use outcore_store::Source;

use self::staged::StagedKey;
use crate::task::{Algorithm, Grid};
use crate::{cancel, FunctionError};

/// A shared, immutable node.
pub type Expr = Arc<Node>;

/// One array value that a program computes or reads.
///
/// Invariants:
/// 1. `shape`, `dtype` and `tile` depend on the operator and the inputs only, never on memory, threads or policy.
/// 2. `tile.len() == shape.len()`, and each tile length is at least 1 and at most `max(1, shape[axis])`.
/// 3. Two live nodes with equal operator and inputs are the same allocation.
pub struct Node {
    pub id: u64,
    hash: u64,
    pub op: Op,
    pub inputs: Vec<Expr>,
    pub shape: Vec<u64>,
    pub dtype: DType,
    /// Tile shape: how the array is cut when it is held tile by tile.
    pub tile: Vec<u64>,
}

/// What a node does with its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// An array on disk or in the caller's memory.
    Source(SourceKey),
    /// Values computed from their index; never stored, recomputed where needed.
    Generate(Generator),
    Unary(Unary),
    Binary(Binary),
    /// `where(condition, x, y)`.
    Select,
    /// A change of type; to the same type with another tile shape it is a copy.
    Cast,
    Broadcast,
    /// Output axis `a` is input axis `axes[a]`.
    Permute(Vec<usize>),
    /// Output index `i` of an axis is input index `start + step * i`.
    Slice(Vec<AxisSlice>),
    /// Insert axes of length one: `axes` are their positions in the output, ascending.
    Expand(Vec<usize>),
    /// Remove axes of length one: `axes` are their positions in the input, ascending.
    Squeeze(Vec<usize>),
    Reshape,
    Concat(usize),
    Matmul,
    Reduce {
        op: Reduce,
        finish: FinishKey,
        axes: Vec<usize>,
    },
    MapBlocks(FunctionKey),
    /// One of the tile sets that an algorithm makes of its inputs.
    Algorithm(AlgorithmKey, usize),
    /// A result of an operator that is computed in stages; the driver puts others in its place before it plans.
    Staged(StagedKey, usize),
}

/// An algorithm, equal to others of its name and key.
#[derive(Clone, Debug)]
pub struct AlgorithmKey(pub Arc<dyn Algorithm>);

impl PartialEq for AlgorithmKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.name(), self.0.key()) == (other.0.name(), other.0.key())
    }
}

impl Eq for AlgorithmKey {}

impl Hash for AlgorithmKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.name(), self.0.key()).hash(state);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisSlice {
    pub start: i64,
    pub step: i64,
}

/// A source, equal to another when their identities are.
#[derive(Clone)]
pub struct SourceKey(pub Arc<dyn Source>);

impl std::fmt::Debug for SourceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({})", self.0.name())
    }
}

impl PartialEq for SourceKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.identity() == other.0.identity()
    }
}

impl Eq for SourceKey {}

impl Hash for SourceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.identity().hash(state);
    }
}

/// How accumulators become values, with the correction compared by its bits.
#[derive(Clone, Copy, Debug)]
pub struct FinishKey(pub Finish);

impl FinishKey {
    fn key(self) -> (u8, u64) {
        match self.0 {
            Finish::Value => (0, 0),
            Finish::Mean => (1, 0),
            Finish::Variance { correction } => (2, correction.to_bits()),
            Finish::StandardDeviation { correction } => (3, correction.to_bits()),
        }
    }
}

impl PartialEq for FinishKey {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for FinishKey {}

impl Hash for FinishKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// One operand of a block function: contiguous bytes, their type and shape.
pub struct Block<'a> {
    pub data: &'a [u8],
    pub dtype: DType,
    pub shape: &'a [usize],
}

/// A function of the user, called once per tile.
pub trait BlockFunction: Send + Sync {
    fn name(&self) -> String;
    /// What makes it differ from others of its name, where functions of equal names and keys are equal; else it is equal
    /// to itself only.
    fn key(&self) -> Option<Vec<u8>> {
        None
    }
    /// Memory the function says it allocates while it runs, in bytes.
    fn workspace_bytes(&self) -> usize;
    /// Fills `output` (contiguous, of the node's type) from the inputs, all of one shape.
    ///
    /// # Errors
    /// What the function raised, or a result of the wrong shape or type.
    fn call(&self, inputs: &[Block<'_>], output: &mut [u8], dtype: DType) -> Result<(), FunctionError>;
}

/// A block function, equal to others of its name and key if it has one, else to itself only.
#[derive(Clone)]
pub struct FunctionKey {
    pub id: u64,
    pub function: Arc<dyn BlockFunction>,
}

impl FunctionKey {
    fn identity(&self) -> Result<(String, Vec<u8>), u64> {
        self.function
            .key()
            .map(|key| (self.function.name(), key))
            .ok_or(self.id)
    }

    pub fn new(function: Arc<dyn BlockFunction>) -> FunctionKey {
        FunctionKey {
            id: next_id(),
            function,
        }
    }
}

impl std::fmt::Debug for FunctionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MapBlocks({})", self.function.name())
    }
}

impl PartialEq for FunctionKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id || self.identity() == other.identity()
    }
}

impl Eq for FunctionKey {}

impl Hash for FunctionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// The live nodes and their numbers, by the hash of what they compute.
type Interner = HashMap<u64, (u64, Weak<Node>)>;

fn interner() -> MutexGuard<'static, Interner> {
    static INTERNER: OnceLock<Mutex<Interner>> = OnceLock::new();
    let interner = INTERNER.get_or_init(Mutex::default);
    interner.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Node {
    /// The node for these fields: the live equal one, else a new one.
    pub fn intern(op: Op, inputs: Vec<Expr>, shape: Vec<u64>, dtype: DType, tile: Vec<u64>) -> Expr {
        debug_assert_eq!(shape.len(), tile.len());
        let mut node = Node {
            id: 0,
            hash: 0,
            op,
            inputs,
            shape,
            dtype,
            tile,
        };
        node.hash = node.hash_of_fields();
        // Nodes that die lock the interner, so whatever may die here does so when it is open again.
        let mut live = interner();
        let found = live.get(&node.hash).and_then(|(_, node)| node.upgrade());
        match found {
            Some(equal) if equal.computes_what(&node) => {
                drop(live);
                equal
            }
            // Two hashes of 64 bits that collide: the later node is not shared.
            Some(other) => {
                drop(live);
                drop(other);
                node.id = next_id();
                Arc::new(node)
            }
            None => {
                node.id = next_id();
                let node = Arc::new(node);
                live.insert(node.hash, (node.id, Arc::downgrade(&node)));
                node
            }
        }
    }

    fn hash_of_fields(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.op.hash(&mut hasher);
        self.inputs.iter().for_each(|input| input.id.hash(&mut hasher));
        (&self.shape, self.dtype, &self.tile).hash(&mut hasher);
        hasher.finish()
    }

    fn computes_what(&self, other: &Node) -> bool {
        let ids = |node: &Node| node.inputs.iter().map(|input| input.id).collect::<Vec<_>>();
        (&self.op, &self.shape, self.dtype, &self.tile) == (&other.op, &other.shape, other.dtype, &other.tile)
            && ids(self) == ids(other)
    }

    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    pub fn nbytes(&self) -> u64 {
        self.elements() * self.dtype.size() as u64
    }

    /// Whether the whole array is one tile.
    pub fn is_single_tile(&self) -> bool {
        self.shape.iter().zip(&self.tile).all(|(&length, &tile)| tile >= length)
    }

    /// The operator's name, as explanations and errors print it.
    pub fn label(&self) -> String {
        match &self.op {
            Op::Source(key) => key.0.name(),
            Op::Generate(Generator::Full(value)) => format!("{value}"),
            Op::Generate(generator) => {
                let text = format!("{generator:?}");
                text.split([' ', '{', '(']).next().unwrap_or("generate").to_lowercase()
            }
            Op::Unary(op) => op.name().to_string(),
            Op::Binary(op) => op.name().to_string(),
            Op::Select => "where".into(),
            Op::Cast => "astype".into(),
            Op::Broadcast => "broadcast_to".into(),
            Op::Permute(_) => "permute_dims".into(),
            Op::Slice(_) => "getitem".into(),
            Op::Expand(_) => "expand_dims".into(),
            Op::Squeeze(_) => "squeeze".into(),
            Op::Reshape => "reshape".into(),
            Op::Concat(_) => "concat".into(),
            Op::Matmul => "matmul".into(),
            Op::Reduce { op, finish, .. } => match finish.0 {
                Finish::Value => op.name().to_string(),
                Finish::Mean => "mean".into(),
                Finish::Variance { .. } => "var".into(),
                Finish::StandardDeviation { .. } => "std".into(),
            },
            Op::MapBlocks(key) => key.function.name(),
            Op::Algorithm(key, _) => key.0.name(),
            Op::Staged(key, _) => key.0.name(),
        }
    }

    /// How the array is cut when it is held tile by tile.
    pub fn grid(&self) -> Grid {
        Grid {
            shape: self.shape.clone(),
            tile: self.tile.clone(),
            dtype: self.dtype,
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{} {} {:?} {}", self.id, self.label(), self.shape, self.dtype)
    }
}

/// Long chains are taken apart in a loop: one stack frame per node would overflow on thousands of iterations.
impl Drop for Node {
    fn drop(&mut self) {
        {
            let mut live = interner();
            // An equal node may have taken the place of this one while it died.
            if live.get(&self.hash).is_some_and(|(id, _)| *id == self.id) {
                live.remove(&self.hash);
            }
        }
        let mut pending = std::mem::take(&mut self.inputs);
        while let Some(input) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(input) {
                pending.append(&mut node.inputs);
            }
        }
    }
}

/// All nodes that `roots` depend on, inputs before the nodes that use them.
pub fn topological(roots: &[Expr]) -> Vec<Expr> {
    let mut order = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut stack: Vec<(Expr, usize)> = Vec::new();
    for root in roots {
        if seen.insert(root.id) {
            stack.push((root.clone(), 0));
        }
        while let Some((node, next)) = stack.last_mut() {
            cancel::check();
            if let Some(input) = node.inputs.get(*next).cloned() {
                *next += 1;
                if seen.insert(input.id) {
                    stack.push((input, 0));
                }
            } else {
                order.push(node.clone());
                stack.pop();
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(length: u64) -> Expr {
        let op = Op::Generate(Generator::Full(outcore_dtype::Scalar::Float(0.5)));
        Node::intern(op, vec![], vec![length], DType::F64, vec![length])
    }

    fn negative(input: &Expr) -> Expr {
        let (shape, tile) = (input.shape.clone(), input.tile.clone());
        Node::intern(
            Op::Unary(Unary::Negative),
            vec![input.clone()],
            shape,
            input.dtype,
            tile,
        )
    }

    #[test]
    fn equal_nodes_are_one_and_others_are_not() {
        let (a, b) = (vector(101), vector(101));
        assert!(Arc::ptr_eq(&a, &b));
        assert!(Arc::ptr_eq(&negative(&a), &negative(&b)));
        assert!(!Arc::ptr_eq(&a, &vector(102)));
        assert!(!Arc::ptr_eq(&negative(&negative(&a)), &a));
    }

    #[test]
    fn dead_nodes_leave_nothing_behind() {
        let a = vector(103);
        let mut chain = a.clone();
        let hashes: Vec<u64> = (0..1000)
            .map(|_| {
                chain = negative(&chain);
                chain.hash
            })
            .collect();
        let known = |hash: &u64| interner().contains_key(hash);
        assert!(hashes.iter().all(known));
        drop(chain);
        assert!(!hashes.iter().any(known));
        assert!(known(&a.hash));
    }
}
