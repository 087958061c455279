//! Values that outlive their program: those computed before stand in a request for what they are values of, and those
//! that the caller still names are computed into memory of their own where that costs next to nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use outcore_store::{FramePool, Layout, Source};

use crate::cancel;
use crate::expr::{over, Expr, Node, Op};
use crate::plan::root::is_view;
use crate::run::session::residency::{Below, KeptTiles, Value, Worth};

/// A value is remembered when computing it again reads this many times its size.
const WORTH: u64 = 8;
/// The part of the budget that remembered values take at most.
const SHARE: u64 = 8;
/// Larger requests are taken as they are: looking at them would take memory of its own.
const NODES_MAX: usize = 1 << 15;
/// Nodes that are looked at, at most, to find what is worth remembering.
const VISITS_MAX: usize = 1 << 20;
/// Values remembered of one program, at most.
const VALUES_MAX: usize = 256;

/// Larger programs are not placed a second time to see what remembering costs.
pub(in crate::run) const TASKS_TO_COMPARE: u64 = 20_000;

/// A request in which values computed before stand for their nodes.
pub(in crate::run) struct Request {
    pub outputs: Vec<Expr>,
    /// The values that stand in it.
    pub used: Vec<Value>,
    /// Values worth remembering, by the nodes that compute them here.
    pub named: Vec<(Expr, Worth)>,
    /// What the outputs themselves are worth.
    pub worths: Vec<Option<Worth>>,
}

impl Request {
    /// The request as it was made, where nothing is known or to be remembered.
    pub fn plain(outputs: &[Expr]) -> Request {
        Request {
            outputs: outputs.to_vec(),
            used: vec![],
            named: vec![],
            worths: vec![None; outputs.len()],
        }
    }

    /// Bytes that remembering may cost: an eighth of those that it saves.
    pub fn saved_bytes(&self) -> u64 {
        self.named.iter().map(|(_, worth)| worth.cost).max().unwrap_or(0) / WORTH
    }

    /// Bytes of the values that stand in it.
    pub fn used_bytes(&self) -> u64 {
        self.used.iter().map(|value| value.bytes).sum()
    }
}

fn is_product(node: &Node) -> bool {
    matches!(node.op, Op::Matmul) && node.ndim() == 2
}

/// Cuts `outputs` off at values computed before, and finds what is worth remembering with `budget` bytes of memory.
/// `in_memory` says which outputs are results in memory.
///
/// A product that may be associated with the product that takes it stays, so that results have the bits that they have
/// without anything remembered.
pub(in crate::run) fn cut(outputs: &[Expr], in_memory: &[bool], kept: &KeptTiles, budget: u64) -> Request {
    let mut cutter = RequestCutter::default();
    if !outputs.iter().all(|output| cutter.visit(output, kept)) {
        return Request::plain(outputs);
    }
    let mut rebuilt: HashMap<u64, Expr> = HashMap::new();
    for node in &cutter.order {
        let new = match cutter.known.get(&node.id) {
            Some(value) => value.array.clone(),
            None => over(
                node,
                node.inputs.iter().map(|input| rebuilt[&input.id].clone()).collect(),
            ),
        };
        new.call_as(node.called());
        rebuilt.insert(node.id, new);
    }
    let mut look = Recall {
        known: &cutter.known,
        left: VISITS_MAX,
    };
    let worths = outputs.iter().zip(in_memory).map(|(output, &in_memory)| {
        let worth = in_memory.then(|| look.worth(output)).flatten()?;
        let most = (budget / (SHARE * SHARE)).min(worth.cost / WORTH);
        (output.nbytes() <= most).then_some(worth)
    });
    let worths: Vec<Option<Worth>> = worths.collect();
    let requested: HashSet<u64> = outputs.iter().map(|output| output.id).collect();
    let mut room = (budget / SHARE).saturating_sub(kept.value_bytes());
    let mut named = Vec::new();
    // From the outputs down: what is nearest to them saves most.
    for node in cutter.order.iter().rev() {
        let wanted = node.is_named() && !requested.contains(&node.id) && !cutter.known.contains_key(&node.id);
        if !wanted || !may_be_remembered(node) || cutter.joined.contains(&node.id) {
            continue;
        }
        let bytes = FramePool::frame_bytes(node.nbytes() as usize) as u64;
        if bytes > room || named.len() == VALUES_MAX {
            continue;
        }
        let worth = look.worth(node).filter(|worth| worth.cost >= WORTH * bytes);
        if let Some(worth) = worth {
            room -= bytes;
            named.push((rebuilt[&node.id].clone(), worth));
        }
    }
    Request {
        outputs: outputs.iter().map(|output| rebuilt[&output.id].clone()).collect(),
        used: cutter.known.into_values().collect(),
        named,
        worths,
    }
}

/// Views of named values and what costs nothing to have are not held twice.
fn may_be_remembered(node: &Node) -> bool {
    match &node.op {
        Op::Source(_) | Op::Generate(_) | Op::Broadcast => false,
        op if is_view(op) => !node.inputs[0].is_named(),
        _ => node.elements() > 0,
    }
}

/// Walks a request down to the values that are known.
#[derive(Default)]
struct RequestCutter {
    /// Inputs before the nodes that use them.
    order: Vec<Expr>,
    seen: HashSet<u64>,
    known: HashMap<u64, Value>,
    /// Products that are factors of products.
    joined: HashSet<u64>,
}

impl RequestCutter {
    /// False where there are too many nodes.
    fn visit(&mut self, output: &Expr, kept: &KeptTiles) -> bool {
        let asks = kept.has_values();
        let mut stack: Vec<(Expr, usize)> = Vec::new();
        let mut enter = |node: &Expr, joins: bool, known: &mut HashMap<u64, Value>, stack: &mut Vec<(Expr, usize)>| {
            if !self.seen.insert(node.id) {
                return;
            }
            let is_leaf = matches!(node.op, Op::Source(_) | Op::Generate(_));
            let value = (asks && !joins && !is_leaf).then(|| kept.value(node)).flatten();
            let done = value.is_some();
            known.extend(value.map(|value| (node.id, value)));
            stack.push((node.clone(), if done { usize::MAX } else { 0 }));
        };
        enter(output, false, &mut self.known, &mut stack);
        while let Some((node, next)) = stack.last_mut() {
            cancel::check();
            match node.inputs.get(*next).cloned() {
                Some(input) => {
                    *next += 1;
                    let joins = is_product(node) && is_product(&input);
                    if joins {
                        self.joined.insert(input.id);
                    }
                    enter(&input, joins, &mut self.known, &mut stack);
                }
                None => self.order.extend(stack.pop().map(|(node, _)| node)),
            }
            if self.order.len() + stack.len() > NODES_MAX {
                return false;
            }
        }
        true
    }
}

/// Looks for what values are made of.
struct Recall<'a> {
    known: &'a HashMap<u64, Value>,
    left: usize,
}

impl Recall<'_> {
    /// What computing the node again would read, and of which files; nothing where that takes too long to find out.
    fn worth(&mut self, node: &Expr) -> Option<Worth> {
        let mut worth = Worth {
            node: Arc::downgrade(node),
            digest: node.digest(),
            cost: 0,
            sources: vec![],
        };
        let mut origins = HashSet::new();
        let mut add = |source: &Arc<dyn Source>| {
            if origins.insert(source.origin().to_string()) {
                worth.sources.push(Below::new(source));
            }
        };
        let mut cost = 0u64;
        let mut seen = HashSet::from([node.id]);
        let mut pending = vec![node];
        while let Some(next) = pending.pop() {
            cancel::check();
            self.left = self.left.checked_sub(1)?;
            if let Some(value) = self.known.get(&next.id) {
                cost = cost.saturating_add(value.worth.cost);
                value
                    .worth
                    .sources
                    .iter()
                    .filter_map(Below::get)
                    .for_each(|source| add(&source));
                continue;
            }
            match &next.op {
                Op::Source(key) if key.0.layout() != Layout::Memory => {
                    cost = cost.saturating_add(next.nbytes());
                    add(&key.0);
                }
                // Functions of the user take their time, beside what they read.
                Op::MapBlocks(_) => cost = cost.saturating_add(next.nbytes()),
                _ => {}
            }
            pending.extend(next.inputs.iter().filter(|input| seen.insert(input.id)));
        }
        worth.cost = cost;
        Some(worth)
    }
}
