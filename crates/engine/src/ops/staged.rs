//! Results of operators that are computed in stages, as nodes.

use std::collections::HashMap;
use std::sync::Arc;

use super::{check_size, copy_tiled};
use crate::cancel;
use crate::expr::staged::{Staged, StagedKey};
use crate::expr::{topological, Expr, Node, Op};
use crate::EngineError;

/// The results of a staged operator over `inputs`, one node each.
///
/// # Errors
/// A result too large to address.
pub fn staged(operator: Arc<dyn Staged>, inputs: &[Expr]) -> Result<Vec<Expr>, EngineError> {
    let key = StagedKey(operator);
    let results = key.0.results().iter().enumerate();
    results
        .map(|(index, grid)| {
            check_size(&key.0.name(), &grid.shape, grid.dtype)?;
            let op = Op::Staged(key.clone(), index);
            let (shape, tile) = (grid.shape.clone(), grid.tile.clone());
            Ok(Node::intern(op, inputs.to_vec(), shape, grid.dtype, tile))
        })
        .collect()
}

/// A staged operator that waits for no other, with its inputs and the nodes that are its results.
pub struct Waiting {
    pub key: StagedKey,
    pub inputs: Vec<Expr>,
    /// Position among the results, and the node.
    pub nodes: Vec<(usize, Expr)>,
}

/// The first staged operator below `roots`.
pub fn first_staged(roots: &[Expr]) -> Option<Waiting> {
    let order = topological(roots);
    let mut found: Option<Waiting> = None;
    for node in &order {
        let Op::Staged(key, index) = &node.op else { continue };
        match &mut found {
            None => {
                found = Some(Waiting {
                    key: key.clone(),
                    inputs: node.inputs.clone(),
                    nodes: vec![(*index, node.clone())],
                });
            }
            Some(waiting) if waiting.key == *key && same(&waiting.inputs, &node.inputs) => {
                waiting.nodes.push((*index, node.clone()));
            }
            _ => {}
        }
    }
    found
}

fn same(left: &[Expr], right: &[Expr]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.id == right.id)
}

/// The same expressions with other nodes in the place of some. Nodes keep their tiles.
pub fn substitute(roots: &[Expr], replaced: &HashMap<u64, Expr>) -> Vec<Expr> {
    let mut rewritten: HashMap<u64, Expr> = HashMap::new();
    for node in topological(roots) {
        cancel::check();
        let new = match replaced.get(&node.id) {
            Some(new) if new.tile == node.tile => new.clone(),
            Some(new) => copy_tiled(new, node.tile.clone()),
            None => {
                let inputs: Vec<Expr> = node.inputs.iter().map(|input| rewritten[&input.id].clone()).collect();
                match same(&inputs, &node.inputs) {
                    true => node.clone(),
                    false => Node::intern(
                        node.op.clone(),
                        inputs,
                        node.shape.clone(),
                        node.dtype,
                        node.tile.clone(),
                    ),
                }
            }
        };
        rewritten.insert(node.id, new);
    }
    roots.iter().map(|root| rewritten[&root.id].clone()).collect()
}
