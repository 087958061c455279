//! A pass compiled: the steps that every block runs, and the memory each worker needs for them.

use std::cell::RefCell;
use std::collections::HashMap;

use outcore_kernels::{Finish, Generator, Reducer};

use super::gather::{ArrayId, Base, Gather};
use super::partition::Partition;
use super::root::{is_assembly, is_view, Domain, Root, RootKind, BLOCKS_PER_TILE};
use super::span::{demand, Span};
use super::ArrayTable;
use crate::expr::{Expr, FunctionKey, Op};
use crate::strips::{fuse, Fused, Link};
use crate::{cancel, EngineError};

/// One sweep over a domain, with everything fused into it.
#[derive(Debug)]
pub struct Pass {
    pub label: String,
    pub domain: Domain,
    /// The dimension cut into blocks, and a block's length.
    pub block: Option<(usize, u64)>,
    pub steps: Vec<Step>,
    pub roots: Vec<PassRoot>,
    /// Bytes of each slot of a worker's workspace.
    pub slots: Vec<usize>,
    pub registers: usize,
    /// Memory that functions of the user say they allocate.
    pub function_bytes: usize,
    /// Floating-point operations of all products.
    pub flops: u64,
}

#[derive(Debug)]
pub struct Step {
    pub node: Expr,
    pub spans: Vec<Span>,
    pub kind: StepKind,
    pub inputs: Vec<usize>,
    /// Where a computed or assembled value goes.
    pub slot: Option<usize>,
    /// Slots for contiguous copies of operands.
    pub scratch: Vec<usize>,
    /// The root whose tile this step may write directly.
    pub emit: Option<usize>,
    /// Roots whose operands are all there after this step. They take them at once, before later steps use the memory.
    pub completes: Vec<usize>,
}

impl Step {
    /// Bytes that grow with what is fused or gathered in the step.
    pub fn bytes(&self) -> usize {
        match &self.kind {
            StepKind::Fused(fused) => fused.bytes(),
            StepKind::Gather(gather) => gather.bytes(),
            _ => 0,
        }
    }
}

#[derive(Debug)]
pub enum StepKind {
    Gather(Gather),
    /// A view of an earlier step's value.
    View,
    Fused(Fused),
    Matmul,
    Reduce {
        reducer: Reducer,
        finish: Finish,
        axes: Vec<usize>,
    },
    Function(FunctionKey),
}

#[derive(Debug)]
pub struct PassRoot {
    pub node: Expr,
    pub array: ArrayId,
    pub kind: RootKind,
    pub spans: Vec<Span>,
    /// The steps whose values are stored (`Map`) or accumulated.
    pub operands: Vec<usize>,
    pub accumulation: Option<Accumulation>,
    /// Slot for a contiguous copy of a reduction's operand.
    pub scratch: Option<usize>,
}

/// How partial results of a root are made and joined.
#[derive(Debug)]
pub enum Accumulation {
    Reduce {
        reducer: Reducer,
        finish: Finish,
        axes: Vec<usize>,
    },
    Product,
}

impl PassRoot {
    /// Dimensions of the domain that the root's own tiles run along.
    pub fn kept_dims(&self) -> Vec<usize> {
        self.spans.iter().filter_map(|span| span.dim.map(usize::from)).collect()
    }
}

pub struct Compiler<'a> {
    partition: &'a Partition,
    pub table: &'a mut ArrayTable,
    pub domain: Domain,
    pub block: Option<(usize, u64)>,
    /// Map roots computed in this pass: node id to spans.
    local: HashMap<u64, Vec<Span>>,
    memo: HashMap<(u64, Vec<Span>), usize>,
    pub steps: Vec<Step>,
    gathers: RefCell<HashMap<u64, bool>>,
}

/// Compiles the pass that computes `roots`.
///
/// # Errors
/// A kernel that does not exist: a bug of ours, since builders check types.
pub fn compile(roots: &[Root], partition: &Partition, table: &mut ArrayTable) -> Result<Pass, EngineError> {
    let domain = roots[0].domain.clone();
    let local = roots
        .iter()
        .filter(|root| root.kind == RootKind::Map)
        .map(|root| (root.node.id, root.spans.clone()))
        .collect();
    let block = choose_block(&domain, roots);
    let mut compiler = Compiler {
        partition,
        table,
        domain,
        block,
        local,
        memo: HashMap::new(),
        steps: vec![],
        gathers: RefCell::default(),
    };
    let mut pass_roots = Vec::new();
    for root in roots {
        let operands = root
            .operands
            .iter()
            .map(|(node, spans)| compiler.value(node, spans))
            .collect();
        let array = compiler.table.id(&root.node, true);
        let accumulation = match (&root.node.op, root.kind) {
            (_, RootKind::Map) => None,
            (Op::Reduce { op, finish, axes }, _) => {
                let reducer = Reducer::new(*op, root.node.inputs[0].dtype).expect("checked when built");
                Some(Accumulation::Reduce {
                    reducer,
                    finish: finish.0,
                    axes: axes.clone(),
                })
            }
            _ => Some(Accumulation::Product),
        };
        pass_roots.push(PassRoot {
            node: root.node.clone(),
            array,
            kind: root.kind,
            spans: root.spans.clone(),
            operands,
            accumulation,
            scratch: None,
        });
    }
    compiler.finish(pass_roots)
}

/// The dimension that blocks run along, if cutting tiles is right for all roots.
fn choose_block(domain: &Domain, roots: &[Root]) -> Option<(usize, u64)> {
    let whole_tiles = roots
        .iter()
        .any(|root| root.kind == RootKind::Blocked || matches!(root.node.op, Op::MapBlocks(_)));
    if whole_tiles {
        return None;
    }
    let dim = domain.tile.iter().position(|&tile| tile >= BLOCKS_PER_TILE)?;
    // Partial results are addressed by block only where the dimension is reduced, or leads what is kept.
    let addressable = roots.iter().filter(|root| root.kind != RootKind::Map).all(|root| {
        match root.spans.iter().position(|span| span.dim == Some(dim as u8)) {
            None => true,
            Some(axis) => (0..axis).all(|before| match root.spans[before].dim {
                Some(outer) => domain.tile[outer as usize] == 1,
                None => root.spans[before].high - root.spans[before].low == 1,
            }),
        }
    });
    addressable.then(|| (dim, domain.tile[dim].div_ceil(BLOCKS_PER_TILE)))
}

/// Results of a pass that its name lists.
const NAMED_MAX: usize = 8;

/// What a pass computes: the operators of its results, those of a kind counted where they are many.
fn summary(roots: &[PassRoot]) -> String {
    let labels: Vec<String> = roots.iter().map(|root| root.node.label()).collect();
    if labels.len() <= NAMED_MAX {
        return labels.join(", ");
    }
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for label in &labels {
        match kinds.iter().position(|&(kind, _)| kind == label) {
            Some(at) => kinds[at].1 += 1,
            None if kinds.len() < NAMED_MAX => kinds.push((label, 1)),
            None => {}
        }
    }
    let named: usize = kinds.iter().map(|&(_, count)| count).sum();
    let mut parts: Vec<String> = kinds
        .iter()
        .map(|&(kind, count)| {
            if count == 1 {
                kind.into()
            } else {
                format!("{kind} × {count}")
            }
        })
        .collect();
    if named < labels.len() {
        parts.push(format!("and {} more", labels.len() - named));
    }
    parts.join(", ")
}

impl Compiler<'_> {
    fn is_leaf(&self, node: &Expr) -> bool {
        !self.local.contains_key(&node.id)
            && (self.partition.roots.contains_key(&node.id) || matches!(node.op, Op::Source(_) | Op::Generate(_)))
    }

    fn is_gather(&self, node: &Expr) -> bool {
        if self.local.contains_key(&node.id) {
            return false;
        }
        if self.is_leaf(node) {
            return true;
        }
        if !is_view(&node.op) && !is_assembly(&node.op) {
            return false;
        }
        if let Some(&known) = self.gathers.borrow().get(&node.id) {
            return known;
        }
        let found = node.inputs.iter().all(|input| self.is_gather(input));
        self.gathers.borrow_mut().insert(node.id, found);
        found
    }

    /// The step that gives `node` over `spans`.
    fn value(&mut self, node: &Expr, spans: &[Span]) -> usize {
        let key = (node.id, spans.to_vec());
        if let Some(&step) = self.memo.get(&key) {
            return step;
        }
        let own = self.local.get(&node.id).is_some_and(|own| own == spans);
        let generated = matches!(node.op, Op::Generate(_));
        let inner_gather = || node.inputs.iter().all(|input| self.is_gather(input));
        let (kind, inputs) = if self.is_gather(node)
            || (own && (generated || ((is_view(&node.op) || is_assembly(&node.op)) && inner_gather())))
        {
            (StepKind::Gather(self.gather(node, own)), vec![])
        } else {
            let inputs = (0..node.inputs.len())
                .map(|index| self.value(&node.inputs[index].clone(), &demand(node, index, spans)))
                .collect();
            (self.kind(node), inputs)
        };
        cancel::check();
        self.steps.push(Step {
            node: node.clone(),
            spans: spans.to_vec(),
            kind,
            inputs,
            slot: None,
            scratch: vec![],
            emit: None,
            completes: vec![],
        });
        self.memo.insert(key, self.steps.len() - 1);
        self.steps.len() - 1
    }

    fn kind(&self, node: &Expr) -> StepKind {
        match &node.op {
            op if is_view(op) => StepKind::View,
            Op::Matmul => StepKind::Matmul,
            Op::Reduce { op, finish, axes } => StepKind::Reduce {
                reducer: Reducer::new(*op, node.inputs[0].dtype).expect("checked when built"),
                finish: finish.0,
                axes: axes.clone(),
            },
            Op::MapBlocks(key) => StepKind::Function(key.clone()),
            // Filled in when chains are joined.
            _ => StepKind::Fused(Fused::default()),
        }
    }

    fn gather(&mut self, node: &Expr, own: bool) -> Gather {
        let ndim = node.ndim();
        if !own && self.partition.roots.contains_key(&node.id) {
            return Gather::of(Base::Array(self.table.id(node, true)), ndim);
        }
        match &node.op {
            Op::Source(_) => Gather::of(Base::Array(self.table.id(node, false)), ndim),
            Op::Generate(generator) => Gather::of(
                Base::Generate {
                    generator: generator.clone(),
                    shape: node.shape.clone(),
                },
                ndim,
            ),
            Op::Concat(axis) => {
                let parts = node.inputs.iter().map(|input| self.gather(input, false)).collect();
                let mut end = 0;
                let ends = node.inputs.iter().map(|input| {
                    end += input.shape[*axis];
                    end
                });
                Gather::of(
                    Base::Concat {
                        axis: *axis,
                        ends: ends.collect(),
                        parts,
                    },
                    ndim,
                )
            }
            Op::Reshape => {
                let input = &node.inputs[0];
                let inner = Box::new(self.gather(input, false));
                Gather::of(
                    Base::Reshape {
                        inner,
                        from: input.shape.clone(),
                        to: node.shape.clone(),
                    },
                    ndim,
                )
            }
            _ => self.gather(&node.inputs[0], false).through(node),
        }
    }

    fn finish(mut self, mut roots: Vec<PassRoot>) -> Result<Pass, EngineError> {
        self.join_chains(&mut roots)?;
        self.choose_emits(&roots);
        for (index, root) in roots.iter().enumerate() {
            let last = root.operands.iter().max().expect("roots have operands");
            self.steps[*last].completes.push(index);
        }
        let slots = self.assign_slots(&mut roots);
        let registers = self
            .steps
            .iter()
            .filter_map(|step| match &step.kind {
                // One more register per input that has to be copied into a strip first.
                StepKind::Fused(fused) => Some(fused.registers + fused.inputs.len()),
                _ => None,
            })
            .max()
            .unwrap_or(0);
        let function_bytes = self
            .steps
            .iter()
            .map(|step| match &step.kind {
                StepKind::Function(key) => key.function.workspace_bytes(),
                _ => 0,
            })
            .sum();
        let flops = self.flops(&roots);
        let label = summary(&roots);
        // A plan of many passes is held for as long as it runs.
        for step in &mut self.steps {
            if let StepKind::Fused(fused) = &mut step.kind {
                fused.shrink();
            }
        }
        self.steps.shrink_to_fit();
        roots.shrink_to_fit();
        Ok(Pass {
            label,
            domain: self.domain,
            block: self.block,
            steps: self.steps,
            roots,
            slots,
            registers,
            function_bytes,
            flops,
        })
    }

    fn flops(&self, roots: &[PassRoot]) -> u64 {
        let product = |node: &Expr| {
            let inner = *node.inputs[0].shape.last().expect("products have axes");
            2 * node.elements() * inner
        };
        let inside = self
            .steps
            .iter()
            .filter(|step| matches!(step.kind, StepKind::Matmul))
            .map(|step| product(&step.node));
        let summed = roots
            .iter()
            .filter(|root| matches!(root.accumulation, Some(Accumulation::Product)));
        inside.chain(summed.map(|root| product(&root.node))).sum()
    }

    /// Replaces runs of element-wise steps over the same box by one register program each.
    fn join_chains(&mut self, roots: &mut [PassRoot]) -> Result<(), EngineError> {
        let count = self.steps.len();
        let mut kept = vec![false; count];
        for root in roots.iter() {
            root.operands.iter().for_each(|&step| kept[step] = true);
        }
        let mut users: Vec<Vec<usize>> = vec![vec![]; count];
        for (position, step) in self.steps.iter().enumerate() {
            step.inputs.iter().for_each(|&input| users[input].push(position));
        }
        // head[i]: the step that gives the result of the chain that step i belongs to.
        let mut head: Vec<usize> = (0..count).collect();
        let is_fused = |step: &Step| matches!(step.kind, StepKind::Fused(_));
        for position in (0..count).rev() {
            cancel::check();
            let step = &self.steps[position];
            if !is_fused(step) || kept[position] || users[position].is_empty() {
                continue;
            }
            let first = head[users[position][0]];
            let joins = users[position].iter().all(|&user| {
                head[user] == first
                    && is_fused(&self.steps[user])
                    && self.steps[user].spans == step.spans
                    && self.steps[user].node.shape == step.node.shape
            });
            if joins {
                head[position] = first;
            }
        }
        let mut members: Vec<Vec<usize>> = vec![vec![]; count];
        for position in 0..count {
            if is_fused(&self.steps[position]) {
                members[head[position]].push(position);
            }
        }
        for chain in members.iter().filter(|chain| !chain.is_empty()) {
            let result = *chain.last().expect("not empty");
            let fused = self.fuse_chain(chain)?;
            self.steps[result].inputs = fused.inputs.iter().map(|&(step, _)| step).collect();
            self.steps[result].kind = StepKind::Fused(fused);
        }
        self.remove_unused(roots, &kept);
        Ok(())
    }

    fn fuse_chain(&self, chain: &[usize]) -> Result<Fused, EngineError> {
        let links: Vec<(&crate::expr::Node, Vec<Link>)> = chain
            .iter()
            .map(|&position| {
                let step = &self.steps[position];
                let links = step.inputs.iter().map(|&input| match chain.binary_search(&input) {
                    Ok(inside) => Link::Inside(inside),
                    Err(_) => self.outside_link(input),
                });
                (step.node.as_ref(), links.collect())
            })
            .collect();
        fuse(&links)
    }

    fn outside_link(&self, input: usize) -> Link {
        let step = &self.steps[input];
        if let StepKind::Gather(Gather {
            base:
                Base::Generate {
                    generator: generator @ Generator::Full(_),
                    ..
                },
            ..
        }) = &step.kind
        {
            return Link::Constant {
                generator: generator.clone(),
                dtype: step.node.dtype,
            };
        }
        Link::Outside {
            step: input,
            item: step.node.dtype.size(),
        }
    }

    /// Drops steps that no root needs any more and renumbers the rest.
    fn remove_unused(&mut self, roots: &mut [PassRoot], kept: &[bool]) {
        let mut needed = kept.to_vec();
        for position in (0..self.steps.len()).rev() {
            if needed[position] {
                self.steps[position]
                    .inputs
                    .clone()
                    .into_iter()
                    .for_each(|input| needed[input] = true);
            }
        }
        let mut renumbered = vec![usize::MAX; self.steps.len()];
        let mut next = 0;
        for (position, &needed) in needed.iter().enumerate() {
            if needed {
                renumbered[position] = next;
                next += 1;
            }
        }
        let mut position = 0;
        self.steps.retain(|_| {
            position += 1;
            needed[position - 1]
        });
        for step in &mut self.steps {
            step.inputs.iter_mut().for_each(|input| *input = renumbered[*input]);
            if let StepKind::Fused(fused) = &mut step.kind {
                fused
                    .inputs
                    .iter_mut()
                    .for_each(|(input, _)| *input = renumbered[*input]);
            }
        }
        for root in roots {
            root.operands
                .iter_mut()
                .for_each(|operand| *operand = renumbered[*operand]);
        }
    }

    /// Lets element-wise and product steps write a root's tile in place of a slot, where the block is one run of it.
    fn choose_emits(&mut self, roots: &[PassRoot]) {
        for (index, root) in roots.iter().enumerate() {
            if root.kind != RootKind::Map {
                continue;
            }
            let leading = match self.block {
                None => true,
                Some((dim, _)) => {
                    let axis = root.spans.iter().position(|span| span.dim == Some(dim as u8));
                    axis.is_some_and(|axis| {
                        (0..axis).all(|before| match root.spans[before].dim {
                            Some(outer) => self.domain.tile[outer as usize] == 1,
                            None => root.node.shape[before] == 1,
                        })
                    })
                }
            };
            let step = &mut self.steps[root.operands[0]];
            if leading && step.emit.is_none() && matches!(step.kind, StepKind::Fused(_) | StepKind::Matmul) {
                step.emit = Some(index);
            }
        }
    }
}
