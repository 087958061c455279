//! Typed expression nodes. Equal nodes are one node (hash-consing), so common subexpressions need no search.
//!
//! Uses `task`. Start with `Node` and its invariants; tile shapes are in `grid.rs`, names of axes in `annotations.rs`, digests in `digest.rs`, equal nodes in
//! `intern.rs`, nodes that no other process has in `lasting.rs`.

pub mod annotations;
mod check;
pub mod digest;
pub mod grid;
mod intern;
pub mod lasting;
pub mod staged;

use std::any::Any;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use outcore_dtype::DType;
use outcore_kernels::{Binary, Finish, Generator, Reduce, Unary};
use outcore_store::{Annotations, Io, Source, SparseOutput};

pub use self::check::{Check, Refusal};
pub use self::digest::Digest;
use self::staged::{Keep, Room, StageResult};
use crate::task::{Algorithm, FileOutput, Grid, Recipe};
use crate::{cancel, EngineError, FunctionError};

/// A shared, immutable node.
pub type Expr = Arc<Node>;

/// One array value that a program computes or reads.
///
/// Invariants:
/// 1. `shape`, `dtype` and `tile` depend on the operator and the inputs only, never on memory, threads or policy.
/// 2. `tile.len() == shape.len()`, and each tile length is at least 1 and at most `max(1, shape[axis])`.
/// 3. Two live nodes with equal operator, inputs and annotations are the same allocation.
/// 4. `digest` follows from the other public fields but `id`, in every process alike; annotations are not among them.
pub struct Node {
    pub id: u64,
    digest: Digest,
    /// Handles that the caller has on it: its value may be asked for again.
    handles: AtomicU32,
    /// The function of which the caller had it first, if that is known.
    called: OnceLock<&'static str>,
    pub op: Op,
    pub inputs: Vec<Expr>,
    pub shape: Vec<u64>,
    pub dtype: DType,
    /// Tile shape: how the array is cut when it is held tile by tile.
    pub tile: Vec<u64>,
    annotations: Option<Arc<Annotations>>,
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
    /// Its input as it is; an element outside the bounds ends the run.
    Check(Box<Check>),
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
pub trait BlockFunction: Send + Sync + Any {
    fn name(&self) -> String;
    /// What makes it differ from others of its name, where functions of equal names and keys are equal; else it is equal
    /// to itself only.
    fn key(&self) -> Option<Vec<u8>> {
        None
    }
    /// As [`Algorithm::recipe`].
    fn recipe(&self) -> Option<Recipe> {
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

/// The caller's handle on a node: while one lives, the value of the node is worth remembering.
pub struct Named(Expr);

impl Named {
    pub fn new(node: Expr) -> Named {
        node.handles.fetch_add(1, Ordering::Relaxed);
        Named(node)
    }
}

impl Deref for Named {
    type Target = Expr;
    fn deref(&self) -> &Expr {
        &self.0
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.0.handles.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Node {
    /// What the node computes: equal in every process where its sources are files.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether the caller has a handle on it.
    pub fn is_named(&self) -> bool {
        self.handles.load(Ordering::Relaxed) > 0
    }

    /// The function of which the caller had it.
    pub fn called(&self) -> Option<&'static str> {
        self.called.get().copied()
    }

    /// Says of which function the caller had it; the first that is named stays.
    pub fn call_as(&self, function: Option<&'static str>) {
        if let Some(function) = function {
            let _ = self.called.set(function);
        }
    }

    fn computes_what(&self, other: &Node) -> bool {
        let ids = |node: &Node| node.inputs.iter().map(|input| input.id).collect::<Vec<_>>();
        (&self.op, &self.shape, self.dtype, &self.tile) == (&other.op, &other.shape, other.dtype, &other.tile)
            && ids(self) == ids(other)
            && self.annotations == other.annotations
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

    /// The file of tiles of different sizes that the node is as an output, where it is one.
    pub fn file_output(&self) -> Option<FileOutput> {
        match &self.op {
            Op::Algorithm(key, result) => key.0.file(*result),
            _ => None,
        }
    }

    /// The result beside it whose tiles spare work where the node is an output that is gone on with.
    pub fn beside(&self) -> Option<Expr> {
        let Op::Algorithm(key, result) = &self.op else {
            return None;
        };
        Some(Node::result_of(key, key.0.beside(*result)?, &self.inputs))
    }

    /// A result of an algorithm, by its number.
    pub fn result_of(key: &AlgorithmKey, result: usize, inputs: &[Expr]) -> Expr {
        let grid = &key.0.results()[result];
        let (shape, tile) = (grid.shape.clone(), grid.tile.clone());
        let op = Op::Algorithm(key.clone(), result);
        Node::intern(op, inputs.to_vec(), shape, grid.dtype, tile)
    }

    /// The sparse matrix that the node is as an output, where it is one.
    pub fn sparse_output(&self) -> Option<SparseOutput> {
        match self.file_output()? {
            FileOutput::Sparse(output) => Some(output),
            FileOutput::Factor(_) => None,
        }
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
            Op::Cast if self.inputs[0].dtype == self.dtype => "rechunk".into(),
            Op::Cast => "astype".into(),
            Op::Check(_) => "check".into(),
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

/// What comes next.
pub enum Next {
    /// A program for these results. `awaits` says in words what later stages wait for.
    Stage {
        label: String,
        awaits: String,
        outputs: Vec<(Expr, Keep)>,
    },
    /// Nodes, cut as the operator's results are, that give them: they take its place in the rest of the computation.
    Done(Vec<Expr>),
}

/// An operator that is computed in stages. Its results have the same bits whatever the room.
pub trait Staged: Send + Sync + Debug {
    fn name(&self) -> String;
    /// Everything that makes its results differ from those of another operator over the same inputs.
    fn key(&self) -> Vec<u8>;
    fn results(&self) -> &[Grid];
    /// As [`Algorithm::recipe`].
    fn recipe(&self) -> Option<Recipe> {
        None
    }
    /// Begins to compute it. Pure: it only decides what the first stage is.
    ///
    /// # Errors
    /// Room in which no stage fits.
    fn begin(&self, inputs: &[Expr], room: Room) -> Result<Box<dyn Stages>, EngineError>;
}

/// A staged operator while it is computed.
pub trait Stages: Send {
    /// The next step, given what the last stage found; nothing at first. `io` is for what must be looked up in stored
    /// results: those reads are counted, and bounded by `lookup_bytes`.
    ///
    /// # Errors
    /// What `io` reports, and facts that cannot be.
    fn next(&mut self, found: &[StageResult], room: Room, io: &Io) -> Result<Next, EngineError>;
    /// The step after so many stages, as if their facts were the worst they can be, so that its forecast is a bound. Asked
    /// again, with less room, where that step does not fit.
    ///
    /// # Errors
    /// Room in which it does not fit.
    fn assume(&mut self, after: usize, room: Room) -> Result<Next, EngineError>;
    /// Most bytes that `next` reads.
    fn lookup_bytes(&self) -> u64;
}

/// A staged operator, equal to others of its name and key.
#[derive(Clone, Debug)]
pub struct StagedKey(pub Arc<dyn Staged>);

impl PartialEq for StagedKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.name(), self.0.key()) == (other.0.name(), other.0.key())
    }
}

impl Eq for StagedKey {}

impl Hash for StagedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.name(), self.0.key()).hash(state);
    }
}

/// The node over other inputs of the same shapes, types and tiles.
pub fn over(node: &Expr, inputs: Vec<Expr>) -> Expr {
    if inputs.iter().zip(&node.inputs).all(|(new, old)| new.id == old.id) {
        return node.clone();
    }
    Node::intern(
        node.op.clone(),
        inputs,
        node.shape.clone(),
        node.dtype,
        node.tile.clone(),
    )
}

/// `roots` with other nodes, of the same shape, type and tile, in the place of those for which there are some.
pub fn substituted(roots: &[Expr], instead: &dyn Fn(&Expr) -> Option<Expr>) -> Vec<Expr> {
    let mut rebuilt: std::collections::HashMap<u64, Expr> = std::collections::HashMap::new();
    for node in topological(roots) {
        let inputs = || node.inputs.iter().map(|input| rebuilt[&input.id].clone()).collect();
        let new = instead(&node).unwrap_or_else(|| over(&node, inputs()));
        new.call_as(node.called());
        rebuilt.insert(node.id, new);
    }
    roots.iter().map(|root| rebuilt[&root.id].clone()).collect()
}

/// All nodes that `roots` depend on, inputs before the nodes that use them.
pub fn topological(roots: &[Expr]) -> Vec<Expr> {
    topological_above(roots, &|_| false)
}

/// As `topological`, without the nodes that `is_known` and what only they depend on.
pub fn topological_above(roots: &[Expr], is_known: &dyn Fn(&Expr) -> bool) -> Vec<Expr> {
    let mut order = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut stack: Vec<(Expr, usize)> = Vec::new();
    for root in roots {
        if !is_known(root) && seen.insert(root.id) {
            stack.push((root.clone(), 0));
        }
        while let Some((node, next)) = stack.last_mut() {
            cancel::check();
            if let Some(input) = node.inputs.get(*next).cloned() {
                *next += 1;
                if !is_known(&input) && seen.insert(input.id) {
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
