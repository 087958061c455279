//! Equal nodes are one: the live nodes by their digests, and what a digest is taken over.

use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use outcore_dtype::DType;
use outcore_kernels::{Bounds, Finish};
use outcore_store::process_nonce;

use super::digest::{Digest, Encoding};
use super::{annotations, next_id, Expr, Node, Op, Refusal};

/// The live nodes and their numbers, by what they compute and how they are annotated.
type Interner = HashMap<(Digest, u64), (u64, Weak<Node>)>;

fn interner() -> MutexGuard<'static, Interner> {
    static INTERNER: OnceLock<Mutex<Interner>> = OnceLock::new();
    let interner = INTERNER.get_or_init(Mutex::default);
    interner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    /// The node for these fields: the live equal one, else a new one.
    pub fn intern(op: Op, inputs: Vec<Expr>, shape: Vec<u64>, dtype: DType, tile: Vec<u64>) -> Expr {
        let carried = annotations::carried(&op, &inputs, &shape);
        Node::intern_with(op, inputs, shape, dtype, tile, carried)
    }

    /// The same with annotations of its own.
    pub(super) fn intern_with(
        op: Op,
        inputs: Vec<Expr>,
        shape: Vec<u64>,
        dtype: DType,
        tile: Vec<u64>,
        annotations: annotations::Carried,
    ) -> Expr {
        debug_assert_eq!(shape.len(), tile.len());
        let mut node = Node {
            id: 0,
            digest: Node::digest_of(&op, inputs.iter().map(|input| input.digest()), &shape, dtype, &tile),
            handles: AtomicU32::new(0),
            called: OnceLock::new(),
            op,
            inputs,
            shape,
            dtype,
            tile,
            annotations,
        };
        let key = node.interned_as();
        // Nodes that die lock the interner, so whatever may die here does so when it is open again.
        let mut live = interner();
        let found = live.get(&key).and_then(|(_, node)| node.upgrade());
        match found {
            Some(equal) if equal.computes_what(&node) => {
                drop(live);
                equal
            }
            // Two digests that collide: the later node is not shared.
            Some(other) => {
                drop(live);
                drop(other);
                node.id = next_id();
                Arc::new(node)
            }
            None => {
                node.id = next_id();
                let node = Arc::new(node);
                live.insert(key, (node.id, Arc::downgrade(&node)));
                node
            }
        }
    }
}

/// Long chains are taken apart in a loop: one stack frame per node would overflow on thousands of iterations.
impl Drop for Node {
    fn drop(&mut self) {
        {
            let key = self.interned_as();
            let mut live = interner();
            // An equal node may have taken the place of this one while it died.
            if live.get(&key).is_some_and(|(id, _)| *id == self.id) {
                live.remove(&key);
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

impl Encoding {
    fn operator(&mut self, op: &Op) -> &mut Encoding {
        match op {
            Op::Source(key) => self.text("source").text(key.0.identity()),
            Op::Generate(generator) => self.text("generate").generator(generator),
            Op::Unary(op) => self.text("unary").text(op.name()),
            Op::Binary(op) => self.text("binary").text(op.name()),
            Op::Select => self.text("where"),
            Op::Cast => self.text("astype"),
            Op::Check(check) => {
                let (least, most) = match check.bounds {
                    Bounds::Between(least, most) => (least, most),
                    Bounds::Finite => (i64::MAX, i64::MIN),
                };
                let refusal = u64::from(check.refusal == Refusal::Index);
                self.text("check").text(&check.text);
                self.words([least as u64, most as u64, refusal].into_iter())
            }
            Op::Broadcast => self.text("broadcast_to"),
            Op::Permute(axes) => self.text("permute_dims").axes(axes),
            Op::Slice(slices) => {
                self.text("slice");
                self.words(slices.iter().map(|slice| slice.start as u64));
                self.words(slices.iter().map(|slice| slice.step as u64))
            }
            Op::Expand(axes) => self.text("expand_dims").axes(axes),
            Op::Squeeze(axes) => self.text("squeeze").axes(axes),
            Op::Reshape => self.text("reshape"),
            Op::Concat(axis) => self.text("concat").word(*axis as u64),
            Op::Matmul => self.text("matmul"),
            Op::Reduce { op, finish, axes } => {
                self.text("reduce").text(op.name());
                match finish.0 {
                    Finish::Value => self.text("value"),
                    Finish::Mean => self.text("mean"),
                    Finish::Variance { correction } => self.text("var").float(correction),
                    Finish::StandardDeviation { correction } => self.text("std").float(correction),
                };
                self.axes(axes)
            }
            Op::MapBlocks(key) => match key.function.key() {
                Some(own) => self.text("kernel").keyed(&key.function.name(), &own, 0),
                None => {
                    let [process, random] = process_nonce();
                    self.text("map_blocks").word(process).word(random).word(key.id)
                }
            },
            Op::Algorithm(key, index) => self.text("algorithm").keyed(&key.0.name(), &key.0.key(), *index),
            Op::Staged(key, index) => self.text("staged").keyed(&key.0.name(), &key.0.key(), *index),
        }
    }
}

impl Node {
    fn interned_as(&self) -> (Digest, u64) {
        (self.digest, annotations::key(&self.annotations))
    }

    /// The digest of a node with these fields, its inputs by theirs.
    pub(super) fn digest_of(
        op: &Op,
        inputs: impl ExactSizeIterator<Item = Digest>,
        shape: &[u64],
        dtype: DType,
        tile: &[u64],
    ) -> Digest {
        let mut encoding = Encoding(Vec::with_capacity(128 + 16 * inputs.len()));
        encoding.operator(op).word(inputs.len() as u64);
        for input in inputs {
            encoding.0.extend_from_slice(&input.0);
        }
        encoding.words(shape.iter().copied()).text(dtype.name());
        encoding.words(tile.iter().copied()).digest()
    }
}

#[cfg(test)]
mod tests {
    use outcore_kernels::{Generator, Unary};

    use super::*;
    use crate::expr::Named;

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
    fn a_node_is_named_while_a_handle_lives() {
        let a = vector(104);
        let (first, second) = (Named::new(a.clone()), Named::new(a.clone()));
        drop(first);
        assert!(a.is_named() && !negative(&a).is_named());
        drop(second);
        assert!(!a.is_named());
    }

    #[test]
    fn digests_follow_from_structure_alone() {
        let recorded = |node: &Expr| node.digest().to_string();
        let a = vector(105);
        // The same in every process and run; a change of these starts every journal anew.
        assert_eq!(recorded(&a), "e7b3d1267bead260cb4a86c3a3a2f5fa");
        assert_eq!(recorded(&negative(&a)), "a72b9a6350b0373234e50797b941062e");
        assert_ne!(a.digest(), vector(106).digest());
        let cut = Node::intern(a.op.clone(), vec![], a.shape.clone(), a.dtype, vec![7]);
        assert_ne!(a.digest(), cut.digest(), "another tile is another order of additions");
    }

    #[test]
    fn dead_nodes_leave_nothing_behind() {
        let a = vector(103);
        let mut chain = a.clone();
        let digests: Vec<Digest> = (0..1000)
            .map(|_| {
                chain = negative(&chain);
                chain.digest
            })
            .collect();
        let known = |digest: &Digest| interner().contains_key(&(*digest, 0));
        assert!(digests.iter().all(known));
        drop(chain);
        assert!(!digests.iter().any(known));
        assert!(known(&a.digest()));
    }
}
