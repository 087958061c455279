//! Values of steps as formulas over their leaves, for those who compile them.

use std::collections::HashMap;

use outcore_dtype::DType;
use outcore_kernels::{Binary, Generator, Unary};

use crate::expr::{topological, Expr, FunctionKey, Node, Op};

/// An operation of a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormulaOperation {
    Unary(Unary),
    Binary(Binary),
    Select,
    Cast,
    /// A function of the user, of elements.
    Call(FunctionKey),
}

impl FormulaOperation {
    /// NumPy's name of the function, `where`, `cast` or `call`.
    pub fn name(&self) -> &'static str {
        match self {
            FormulaOperation::Unary(operation) => operation.name(),
            FormulaOperation::Binary(operation) => operation.name(),
            FormulaOperation::Select => "where",
            FormulaOperation::Cast => "cast",
            FormulaOperation::Call(_) => "call",
        }
    }
}

/// A part of a term, or the result of a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormulaOperand {
    /// A leaf of the step, by its number.
    Leaf(usize),
    /// An earlier term.
    Term(usize),
    /// A constant, by the bytes of its element.
    Constant(DType, Vec<u8>),
}

/// An operation on operands, and the type of its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaTerm {
    pub operation: FormulaOperation,
    pub dtype: DType,
    pub operands: Vec<FormulaOperand>,
}

/// The value of a step: terms in the order of their evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFormula {
    pub terms: Vec<FormulaTerm>,
    pub result: FormulaOperand,
    pub dtype: DType,
}

impl LineFormula {
    /// Whether it calls functions of the user.
    pub(super) fn has_calls(&self) -> bool {
        let mut terms = self.terms.iter();
        terms.any(|term| matches!(term.operation, FormulaOperation::Call(_)))
    }

    /// The formula of a value; nothing where it holds what is no operation of numbers. `place` gives the numbers of leaves.
    pub(super) fn of(value: &Expr, place: &dyn Fn(&Node) -> Option<usize>) -> Option<LineFormula> {
        let mut terms = vec![];
        let mut known: HashMap<u64, FormulaOperand> = HashMap::new();
        for node in topological(std::slice::from_ref(value)) {
            let operand = match (place(&node), &node.op) {
                (Some(leaf), _) => FormulaOperand::Leaf(leaf),
                (None, Op::Broadcast | Op::Expand(_) | Op::Squeeze(_) | Op::Reshape) => {
                    known.get(&node.inputs[0].id)?.clone()
                }
                (None, Op::Generate(Generator::Full(number))) => {
                    FormulaOperand::Constant(node.dtype, number.to_bytes(node.dtype).ok()?)
                }
                (None, op) => {
                    let operation = match op {
                        Op::Unary(operation) => FormulaOperation::Unary(*operation),
                        Op::Binary(operation) => FormulaOperation::Binary(*operation),
                        Op::Select => FormulaOperation::Select,
                        Op::Cast => FormulaOperation::Cast,
                        Op::MapBlocks(function) => FormulaOperation::Call(function.clone()),
                        _ => return None,
                    };
                    let operands = node.inputs.iter().map(|input| known.get(&input.id).cloned());
                    terms.push(FormulaTerm {
                        operation,
                        dtype: node.dtype,
                        operands: operands.collect::<Option<_>>()?,
                    });
                    FormulaOperand::Term(terms.len() - 1)
                }
            };
            known.insert(node.id, operand);
        }
        Some(LineFormula {
            terms,
            result: known.remove(&value.id)?,
            dtype: value.dtype,
        })
    }
}
