//! Programs of loops, and the compiled lines that Python makes for them.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_engine::expr::Block;
use outcore_engine::loops::{
    self, FormulaOperand, FormulaOperation, LineBlock, LineCompiler, LineKernel, LineLeaf, LineTarget, LoopValues,
    SharedKernel, SliceFunction,
};
use outcore_engine::{EngineError, FunctionError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::convert::{block_array, copy_out};
use super::function::{name_of, PyFunction};
use super::node::{built, dtype_named, exprs, Built, PyExpr};
use crate::base::errors::to_python;
use crate::base::raised::Raised;

/// The arrays that a program of loops writes, after it. The words tell the program: the front end writes them. `compile` is
/// asked for the address of a function for each block: of a count and words, as `LineKernel` says. `functions` are called with a
/// shape, then slices and numbers, and give an array of that shape and of the target's type.
#[pyfunction]
#[pyo3(signature = (inputs, words, nodes, functions=vec![], compile=None))]
fn loop_nest(
    py: Python<'_>,
    inputs: Vec<PyRef<'_, PyExpr>>,
    words: Vec<i64>,
    nodes: Vec<PyRef<'_, PyExpr>>,
    functions: Vec<Bound<'_, PyAny>>,
    compile: Option<Py<PyAny>>,
) -> PyResult<Vec<PyExpr>> {
    let asked = compile.map(|compile| AskedCompiler {
        compile: compile.into_bound(py),
        raised: RefCell::new(None),
    });
    let compiler = asked.as_ref().map(|asked| asked as &dyn LineCompiler);
    let functions = functions
        .iter()
        .map(|function| -> Arc<dyn SliceFunction> { Arc::new(PySliceFunction::new(function)) });
    let functions: Vec<_> = functions.collect();
    let values = LoopValues {
        nodes: &exprs(&nodes),
        functions: &functions,
    };
    let results = loops::loop_nest(&exprs(&inputs), &words, values, compiler);
    if let Some(error) = asked.and_then(|asked| asked.raised.take()) {
        return Err(error);
    }
    Ok(results.map_err(to_python)?.into_iter().map(PyExpr::new).collect())
}

/// A function of Python's that compiles blocks.
struct AskedCompiler<'py> {
    compile: Bound<'py, PyAny>,
    raised: RefCell<Option<PyErr>>,
}

impl LineCompiler for AskedCompiler<'_> {
    fn compile(&self, block: &LineBlock<'_>) -> Result<Option<SharedKernel>, EngineError> {
        let py = self.compile.py();
        let address = self
            .compile
            .call1((elements_of(block), steps_of(py, block), block.effort));
        let address = address.and_then(|address| address.extract::<Option<usize>>());
        match address {
            Ok(address) => Ok(address.map(|address| Arc::new(AddressKernel { address }) as SharedKernel)),
            Err(error) => {
                self.raised.replace(Some(error));
                Err(EngineError::Cancelled)
            }
        }
    }
}

/// An element: array, type, whether the block writes the array, stride, the element carried into it.
type ElementRow = (usize, &'static str, bool, Option<i64>, Option<usize>);
/// An operand of a term: its kind, its number, and of a constant the type and the bytes.
type OperandRow<'a> = (&'static str, usize, &'static str, Cow<'a, [u8]>);
/// A term: the function, the type of the result, operands, and the function that is called.
type TermRow<'a> = (&'static str, &'static str, Vec<OperandRow<'a>>, Option<Py<PyAny>>);
/// A step: kind, number and function of the target; kinds and numbers of leaves; terms; result, and its type.
type StepRow<'a> = (
    (&'static str, usize, &'static str),
    Vec<(&'static str, usize)>,
    Vec<TermRow<'a>>,
    OperandRow<'a>,
    &'static str,
);

fn elements_of(block: &LineBlock<'_>) -> Vec<ElementRow> {
    let elements = block.elements.iter();
    elements
        .map(|element| {
            let name = element.dtype.name();
            (element.array, name, element.is_written, element.stride, element.carried)
        })
        .collect()
}

fn steps_of<'a>(py: Python<'_>, block: &LineBlock<'a>) -> Vec<StepRow<'a>> {
    let steps = block.steps.iter().map(|step| {
        let target = match step.target {
            LineTarget::Register(register) => ("register", register, ""),
            LineTarget::Store(element) => ("store", element, ""),
            LineTarget::Update(element, operation) => ("update", element, operation.name()),
        };
        let leaves = step.leaves.iter().map(|leaf| match *leaf {
            LineLeaf::Element(element) => ("element", element),
            LineLeaf::Index(index) => ("index", index),
            LineLeaf::Register(register) => ("register", register),
        });
        let terms = step.formula.terms.iter().map(|term| {
            let operands = term.operands.iter().map(operand);
            (
                term.operation.name(),
                term.dtype.name(),
                operands.collect(),
                called(py, &term.operation),
            )
        });
        let result = operand(&step.formula.result);
        (
            target,
            leaves.collect(),
            terms.collect(),
            result,
            step.formula.dtype.name(),
        )
    });
    steps.collect()
}

/// The function of Python's that an operation calls.
fn called(py: Python<'_>, operation: &FormulaOperation) -> Option<Py<PyAny>> {
    let FormulaOperation::Call(key) = operation else {
        return None;
    };
    let function: &dyn Any = key.function.as_ref();
    Some(function.downcast_ref::<PyFunction>()?.function(py))
}

fn operand(of: &FormulaOperand) -> OperandRow<'_> {
    match of {
        FormulaOperand::Leaf(leaf) => ("leaf", *leaf, "", Cow::default()),
        FormulaOperand::Term(term) => ("term", *term, "", Cow::default()),
        FormulaOperand::Constant(dtype, bytes) => ("constant", 0, dtype.name(), Cow::Borrowed(bytes)),
    }
}

/// A function in memory for good, as `LineKernel` has it.
#[derive(Debug)]
struct AddressKernel {
    address: usize,
}

impl LineKernel for AddressKernel {
    fn run(&self, count: usize, words: &[i64]) -> Result<(), EngineError> {
        // SAFETY: the compiler gave the address of a function of this type, and never frees it; words are as it was told.
        let function: extern "C" fn(i64, *const i64) -> i64 = unsafe { std::mem::transmute(self.address) };
        match function(count as i64, words.as_ptr()) {
            0 => Ok(()),
            _ => {
                let said = "a function of outcore.jit raised an exception; called on arrays by itself, it says which";
                Err(EngineError::Function(
                    Raised::new("loops", PyRuntimeError::new_err(said)).into(),
                ))
            }
        }
    }
}

/// A function of Python's that is called with slices.
#[derive(Debug)]
struct PySliceFunction {
    function: Py<PyAny>,
    name: String,
}

impl PySliceFunction {
    fn new(function: &Bound<'_, PyAny>) -> PySliceFunction {
        PySliceFunction {
            function: function.clone().unbind(),
            name: name_of(function),
        }
    }
}

impl SliceFunction for PySliceFunction {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn call(
        &self,
        slices: &[Block<'_>],
        output: &mut [u8],
        dtype: DType,
        shape: &[usize],
    ) -> Result<(), FunctionError> {
        Python::attach(|py| {
            let mut call = || {
                let mut arguments = vec![PyTuple::new(py, shape)?.into_any()];
                for slice in slices {
                    arguments.push(block_array(py, slice.data, slice.shape, slice.dtype)?);
                }
                let result = self.function.bind(py).call1(PyTuple::new(py, arguments)?)?;
                copy_out(&result, output)
            };
            call().map_err(|error| Raised::new(&self.name, error))
        })?;
        if dtype == DType::Bool {
            outcore_store::normalize_bools(output);
        }
        Ok(())
    }
}

/// The node that stands for a leaf of a value: an element, a number, a register.
#[pyfunction]
fn loop_leaf(number: u32, dtype: &str) -> Built {
    built(loops::loop_leaf(number, dtype_named(dtype)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(loop_nest, module)?)?;
    module.add_function(wrap_pyfunction!(loop_leaf, module)?)
}
