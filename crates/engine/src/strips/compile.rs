//! Element-wise chains compiled to register programs over strips that stay in the CPU's first cache.

use std::collections::HashMap;

use outcore_dtype::DType;
use outcore_kernels::{
    binary_kernel, cast_kernel, select_kernel, unary_kernel, BinaryKernel, Generator, SelectKernel, UnaryKernel,
};

use crate::expr::{topological, Check, Expr, Node, Op};
use crate::EngineError;

/// Elements of a strip.
pub const STRIP: usize = 1024;
/// Bytes of one register: a strip of the widest type.
pub const REGISTER_BYTES: usize = STRIP * 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Position among the program's inputs.
    Input(usize),
    /// Position among its constants.
    Constant(usize),
    Register(usize),
}

#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    Unary(UnaryKernel),
    Binary(BinaryKernel),
    Select(SelectKernel),
    /// Position among the program's checks, and the type of what is checked.
    Check(usize, DType),
}

#[derive(Clone, Debug)]
pub struct FusedInstruction {
    pub kernel: Kernel,
    pub operands: [Operand; 3],
    /// Bytes of one element of each operand.
    pub operand_items: [usize; 3],
    /// The register written; none writes the program's output.
    pub target: Option<usize>,
    /// Bytes of one element written.
    pub item: usize,
}

/// A constant's bytes, aligned for any type.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(16))]
pub struct Constant([u8; 16]);

#[derive(Clone, Debug, Default)]
pub struct Fused {
    pub instructions: Vec<FusedInstruction>,
    /// For each input, the step that gives it and its element size.
    pub inputs: Vec<(usize, usize)>,
    pub constants: Vec<(Constant, usize)>,
    pub checks: Vec<Check>,
    pub registers: usize,
}

impl Fused {
    pub fn bytes(&self) -> usize {
        let texts: usize = self.checks.iter().map(|check| check.text.len()).sum();
        size_of_val(&self.instructions[..])
            + size_of_val(&self.inputs[..])
            + size_of_val(&self.constants[..])
            + size_of_val(&self.checks[..])
            + texts
    }

    pub fn shrink(&mut self) {
        self.instructions.shrink_to_fit();
        self.inputs.shrink_to_fit();
        self.constants.shrink_to_fit();
        self.checks.shrink_to_fit();
    }

    pub fn constant(&self, index: usize) -> &[u8] {
        let (bytes, item) = &self.constants[index];
        &bytemuck::bytes_of(bytes)[..*item]
    }
}

/// One element-wise node of a chain: its inputs are earlier nodes of the chain, steps outside it, or constants.
pub enum Link {
    Inside(usize),
    Outside { step: usize, item: usize },
    Constant { generator: Generator, dtype: DType },
}

fn kernel(node: &Node, checks: &mut Vec<Check>) -> Result<Kernel, EngineError> {
    let missing = || EngineError::Plan(format!("{}: no kernel for {}", node.label(), node.inputs[0].dtype));
    Ok(match &node.op {
        Op::Unary(op) => Kernel::Unary(unary_kernel(*op, node.inputs[0].dtype).ok_or_else(missing)?),
        Op::Binary(op) => Kernel::Binary(binary_kernel(*op, node.inputs[0].dtype).ok_or_else(missing)?),
        Op::Select => Kernel::Select(select_kernel(node.dtype)),
        Op::Cast => Kernel::Unary(cast_kernel(node.inputs[0].dtype, node.dtype)),
        Op::Check(check) => {
            checks.push((**check).clone());
            Kernel::Check(checks.len() - 1, node.dtype)
        }
        other => unreachable!("{other:?} is not element-wise"),
    })
}

/// Compiles a chain, given in evaluation order; the last node is its result.
///
/// # Errors
/// A kernel that does not exist for a type: the builders refuse those, so this is a bug of ours.
pub fn fuse(chain: &[(&Node, Vec<Link>)]) -> Result<Fused, EngineError> {
    let mut last_use: Vec<usize> = (0..chain.len()).collect();
    for (position, (_, links)) in chain.iter().enumerate() {
        for link in links {
            if let Link::Inside(producer) = link {
                last_use[*producer] = position;
            }
        }
    }
    let mut fused = Fused::default();
    let mut register_of: Vec<Option<usize>> = vec![None; chain.len()];
    let mut free: Vec<usize> = Vec::new();
    for (position, (node, links)) in chain.iter().enumerate() {
        let mut operands = [Operand::Constant(0); 3];
        for (operand, link) in operands.iter_mut().zip(links) {
            *operand = match link {
                Link::Inside(producer) => Operand::Register(register_of[*producer].expect("computed earlier")),
                Link::Outside { step, item } => Operand::Input(input_index(&mut fused, *step, *item)),
                Link::Constant { generator, dtype } => {
                    Operand::Constant(constant_index(&mut fused, generator, *dtype)?)
                }
            };
        }
        // The target is taken before the operands are given back: kernels do not work in place.
        let is_result = position + 1 == chain.len();
        let target = (!is_result).then(|| {
            free.pop().unwrap_or_else(|| {
                fused.registers += 1;
                fused.registers - 1
            })
        });
        register_of[position] = target;
        let mut released: Vec<usize> = Vec::new();
        for link in links {
            if let Link::Inside(producer) = link {
                if last_use[*producer] == position && !released.contains(producer) {
                    released.push(*producer);
                    free.extend(register_of[*producer]);
                }
            }
        }
        let mut operand_items = [1; 3];
        for (item, input) in operand_items.iter_mut().zip(&node.inputs) {
            *item = input.dtype.size();
        }
        fused.instructions.push(FusedInstruction {
            kernel: kernel(node, &mut fused.checks)?,
            operands,
            operand_items,
            target,
            item: node.dtype.size(),
        });
    }
    Ok(fused)
}

fn input_index(fused: &mut Fused, step: usize, item: usize) -> usize {
    fused
        .inputs
        .iter()
        .position(|&(known, _)| known == step)
        .unwrap_or_else(|| {
            fused.inputs.push((step, item));
            fused.inputs.len() - 1
        })
}

fn constant_index(fused: &mut Fused, generator: &Generator, dtype: DType) -> Result<usize, EngineError> {
    let Generator::Full(value) = generator else {
        unreachable!("only constants are folded")
    };
    let bytes = value
        .to_bytes(dtype)
        .map_err(|error| EngineError::DType(error.to_string()))?;
    let mut constant = Constant([0; 16]);
    constant.0[..bytes.len()].copy_from_slice(&bytes);
    fused.constants.push((constant, bytes.len()));
    Ok(fused.constants.len() - 1)
}

/// Compiles the element-wise nodes that `root` is made of. Inputs are the leaves that `input_of` gives a number; constants are
/// repeated as they need to be.
///
/// # Errors
/// A node that is neither element-wise, nor a constant, nor a leaf; a root that is no element-wise node itself.
pub fn compile(root: &Expr, input_of: &dyn Fn(&Node) -> Option<usize>) -> Result<Fused, EngineError> {
    let nodes = topological(std::slice::from_ref(root));
    let is_link = |node: &Node| {
        matches!(
            node.op,
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Check(_)
        )
    };
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut chain: Vec<(&Node, Vec<Link>)> = vec![];
    for node in nodes.iter().filter(|node| is_link(node)) {
        let links = node.inputs.iter().map(|input| match places.get(&input.id) {
            Some(place) => Ok(Link::Inside(*place)),
            None => outside(input, input_of),
        });
        let links = links.collect::<Result<_, EngineError>>()?;
        places.insert(node.id, chain.len());
        chain.push((node.as_ref(), links));
    }
    match places.get(&root.id) {
        Some(_) => fuse(&chain),
        None => Err(EngineError::Argument(format!(
            "{}: no element-wise function",
            root.label()
        ))),
    }
}

fn outside(input: &Expr, input_of: &dyn Fn(&Node) -> Option<usize>) -> Result<Link, EngineError> {
    if let Some(step) = input_of(input) {
        let item = input.dtype.size();
        return Ok(Link::Outside { step, item });
    }
    let mut node = input;
    while matches!(node.op, Op::Broadcast | Op::Expand(_) | Op::Squeeze(_) | Op::Reshape) {
        node = &node.inputs[0];
    }
    match &node.op {
        Op::Generate(generator @ Generator::Full(_)) => Ok(Link::Constant {
            generator: generator.clone(),
            dtype: node.dtype,
        }),
        _ => Err(EngineError::Argument(format!(
            "{}: not of one element alone",
            node.label()
        ))),
    }
}
