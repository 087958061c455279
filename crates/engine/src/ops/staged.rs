//! Results of operators that are computed in stages, as nodes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{check_size, copy_tiled};
use crate::cancel;
use crate::expr::staged::{Staged, StagedKey};
use crate::expr::{topological, topological_above, Expr, Node, Op};
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

/// A staged operator over inputs without any, and the first of its results that is asked for.
pub struct Waiting {
    pub key: StagedKey,
    pub inputs: Vec<Expr>,
    pub node: Expr,
}

/// Whether anything below `roots` is computed in stages.
pub fn has_staged(roots: &[Expr]) -> bool {
    topological(roots).iter().any(|node| matches!(node.op, Op::Staged(..)))
}

/// Puts what staged operators come to in their places below `roots`. `each` gives the results of one operator after another,
/// in topological order; what is staged below those is next. Nodes keep their tiles.
///
/// Every node is looked at once, however many operators there are, and what has come of it is let go of with the last node
/// that takes it: so files of stages go as early as can be.
///
/// # Errors
/// Those of `each`.
pub fn resolve<E>(roots: &[Expr], each: &mut dyn FnMut(&Waiting) -> Result<Vec<Expr>, E>) -> Result<Vec<Expr>, E> {
    let mut resolving = Resolving::default();
    resolving.enter(roots);
    while let Some(step) = resolving.due.pop() {
        cancel::check();
        match step {
            Due::Node(node) => resolving.visit(&node, each)?,
            Due::Result { node, result } if resolving.is_ready(&result) => resolving.take(&node, &result),
            Due::Result { node, result } => {
                resolving.due.push(Due::Result {
                    node,
                    result: result.clone(),
                });
                resolving.due.push(Due::Node(result));
            }
        }
    }
    Ok(roots.iter().map(|root| resolving.get(root)).collect())
}

/// The next thing to be looked at.
enum Due {
    Node(Expr),
    /// A staged node, and the result that takes its place when it contains no staged operator any more.
    Result {
        node: Expr,
        result: Expr,
    },
}

/// An operator that others of its results are still to come of.
#[derive(Default)]
struct ResultGroup {
    left: usize,
    results: Option<Vec<Expr>>,
}

/// Invariants:
/// 1. A node is `plain` when it contains no staged operator, and else has `uses` from when it is entered until the last node
///    that takes it is through.
/// 2. `resolved` holds what has come of nodes that have uses and are `done`.
#[derive(Default)]
struct Resolving {
    plain: HashSet<u64>,
    uses: HashMap<u64, usize>,
    done: HashSet<u64>,
    resolved: HashMap<u64, Expr>,
    groups: HashMap<(StagedKey, Vec<u64>), ResultGroup>,
    due: Vec<Due>,
}

fn ids(nodes: &[Expr]) -> Vec<u64> {
    nodes.iter().map(|node| node.id).collect()
}

impl Resolving {
    /// Has the staged operators below `roots` resolved next.
    fn enter(&mut self, roots: &[Expr]) {
        let mut entered = Vec::new();
        for node in self.unknown(roots) {
            let is_plain = node.inputs.iter().all(|input| self.plain.contains(&input.id));
            match &node.op {
                Op::Staged(key, _) => {
                    let group = self.groups.entry((key.clone(), ids(&node.inputs)));
                    group.or_default().left += 1;
                }
                _ if is_plain => {
                    self.plain.insert(node.id);
                    continue;
                }
                _ => {}
            }
            self.uses.entry(node.id).or_default();
            self.done.remove(&node.id);
            node.inputs.iter().for_each(|input| self.use_once_more(input));
            entered.push(Due::Node(node));
        }
        roots.iter().for_each(|root| self.use_once_more(root));
        self.due.extend(entered.into_iter().rev());
    }

    /// Nodes below `roots` that nothing is known of, inputs first.
    fn unknown(&self, roots: &[Expr]) -> Vec<Expr> {
        let is_known = |node: &Expr| self.plain.contains(&node.id) || self.uses.contains_key(&node.id);
        topological_above(roots, &is_known)
    }

    fn use_once_more(&mut self, node: &Expr) {
        if !self.plain.contains(&node.id) {
            *self.uses.entry(node.id).or_default() += 1;
        }
    }

    fn is_ready(&self, node: &Expr) -> bool {
        self.plain.contains(&node.id) || self.resolved.contains_key(&node.id)
    }

    fn get(&self, node: &Expr) -> Expr {
        self.resolved.get(&node.id).unwrap_or(node).clone()
    }

    fn visit<E>(&mut self, node: &Expr, each: &mut dyn FnMut(&Waiting) -> Result<Vec<Expr>, E>) -> Result<(), E> {
        if self.done.contains(&node.id) {
            return Ok(());
        }
        // A result may be made of nodes that were to come later.
        if let Some(input) = node.inputs.iter().find(|input| !self.is_ready(input)) {
            self.due.extend([Due::Node(node.clone()), Due::Node(input.clone())]);
            return Ok(());
        }
        let inputs: Vec<Expr> = node.inputs.iter().map(|input| self.get(input)).collect();
        let new = with_inputs(node, inputs);
        let Op::Staged(key, index) = &node.op else {
            self.finish(node, new);
            return Ok(());
        };
        let place = (key.clone(), ids(&node.inputs));
        let mut group = self.groups.remove(&place).unwrap_or_default();
        let results = match group.results {
            Some(results) => results,
            None => each(&Waiting {
                key: key.clone(),
                inputs: new.inputs.clone(),
                node: new,
            })?,
        };
        let result = results[*index].clone();
        if group.left > 1 {
            group.left -= 1;
            group.results = Some(results);
            self.groups.insert(place, group);
        }
        self.due.push(Due::Result {
            node: node.clone(),
            result: result.clone(),
        });
        self.enter(&[result]);
        Ok(())
    }

    /// Puts a result, in which nothing is staged any more, in the place of its node.
    fn take(&mut self, node: &Expr, result: &Expr) {
        let new = self.get(result);
        self.let_go(result);
        // A file of tiles has those that come of it.
        let new = match new.tile == node.tile || new.file_output().is_some() {
            true => new,
            false => copy_tiled(&new, node.tile.clone()),
        };
        new.call_as(node.called());
        self.finish(node, new);
    }

    fn finish(&mut self, node: &Expr, new: Expr) {
        self.plain.insert(new.id);
        self.done.insert(node.id);
        if self.uses.contains_key(&node.id) {
            self.resolved.insert(node.id, new);
        }
        node.inputs.iter().for_each(|input| self.let_go(input));
    }

    /// A node that takes this one is through.
    fn let_go(&mut self, node: &Expr) {
        if let Some(uses) = self.uses.get_mut(&node.id) {
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(&node.id);
                self.resolved.remove(&node.id);
            }
        }
    }
}

/// The same node over other inputs; it keeps its tile.
pub fn with_inputs(node: &Expr, inputs: Vec<Expr>) -> Expr {
    if same(&inputs, &node.inputs) {
        return node.clone();
    }
    let (shape, tile) = (node.shape.clone(), node.tile.clone());
    let new = Node::intern(node.op.clone(), inputs, shape, node.dtype, tile);
    new.call_as(node.called());
    new
}

fn same(left: &[Expr], right: &[Expr]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.id == right.id)
}
