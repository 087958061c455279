//! Nodes that another process has too, and nodes that it has not: files and formulas are the same there; arrays in memory,
//! blocks of callbacks, files that go with their last reader and functions that are equal to themselves only are not.

use std::collections::HashMap;

use super::digest::{Digest, Encoding};
use super::{topological, Expr, Node, Op};

/// Nodes that no other process has.
#[derive(Default)]
pub struct ProcessOwn {
    /// Sources: another process may have an equal one, which its values tell.
    pub sources: Vec<Expr>,
    /// Functions of the user, by name.
    pub functions: Vec<String>,
}

impl ProcessOwn {
    /// The nodes of this process alone that `roots` are made of, each once.
    pub fn of(roots: &[Expr]) -> ProcessOwn {
        let mut own = ProcessOwn::default();
        for node in topological(roots) {
            match &node.op {
                Op::Source(key) if key.0.goes_with_readers() || key.0.memory().is_some() => own.sources.push(node),
                Op::MapBlocks(key) if key.function.key().is_none() => own.functions.push(key.function.name()),
                Op::Algorithm(key, _) => own.functions.extend(key.0.functions()),
                _ => {}
            }
        }
        own
    }

    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.functions.is_empty()
    }
}

/// The name of a node in every process that has it, though files that go with their last reader are there under other
/// names: the digest of the node, with checksums of their values in place of such files.
pub struct Lasting {
    pub digest: Digest,
    /// Whether no other process has the node.
    pub is_own: bool,
}

impl Lasting {
    pub fn of(node: &Expr) -> Lasting {
        let own = ProcessOwn::of(std::slice::from_ref(node));
        let checksums = |source: &Expr| match &source.op {
            Op::Source(key) => Some((source.id, key.0.checksums()?)),
            _ => None,
        };
        let given: HashMap<u64, String> = own.sources.iter().filter_map(checksums).collect();
        Lasting {
            is_own: !own.functions.is_empty() || given.len() < own.sources.len(),
            digest: digests_given(std::slice::from_ref(node), &given).swap_remove(0),
        }
    }
}

/// The digests of `roots`, with texts in place of some nodes (by their numbers): those of values where the nodes are this
/// process's own. Where none is given they are the nodes' own digests.
pub fn digests_given(roots: &[Expr], given: &HashMap<u64, String>) -> Vec<Digest> {
    let mut digests: HashMap<u64, Digest> = HashMap::new();
    for node in topological(roots) {
        let digest = match given.get(&node.id) {
            Some(text) => Encoding::default().text("values").text(text).digest(),
            None => {
                let inputs = node.inputs.iter().map(|input| digests[&input.id]);
                Node::digest_of(&node.op, inputs, &node.shape, node.dtype, &node.tile)
            }
        };
        digests.insert(node.id, digest);
    }
    roots.iter().map(|root| digests[&root.id]).collect()
}

#[cfg(test)]
mod tests {
    use outcore_dtype::{DType, Scalar};
    use outcore_kernels::{Generator, Unary};

    use super::*;

    fn full(value: f64) -> Expr {
        let op = Op::Generate(Generator::Full(Scalar::Float(value)));
        Node::intern(op, vec![], vec![3], DType::F64, vec![3])
    }

    fn negative(input: &Expr) -> Expr {
        let op = Op::Unary(Unary::Negative);
        Node::intern(op, vec![input.clone()], vec![3], DType::F64, vec![3])
    }

    #[test]
    fn digests_are_the_nodes_own_where_nothing_stands_for_them() {
        let node = negative(&negative(&full(1.5)));
        assert_eq!(
            digests_given(std::slice::from_ref(&node), &HashMap::new()),
            [node.digest()]
        );
    }

    #[test]
    fn values_stand_for_a_node_wherever_it_is() {
        let (one, two) = (full(1.0), full(2.0));
        let given = |node: &Expr, text: &str| HashMap::from([(node.id, text.to_owned())]);
        let of = |leaf: &Expr, text| digests_given(&[negative(leaf)], &given(leaf, text));
        assert_eq!(of(&one, "a"), of(&two, "a"));
        assert_ne!(of(&one, "a"), of(&one, "b"));
        assert_ne!(of(&one, "a"), [negative(&one).digest()]);
    }
}
