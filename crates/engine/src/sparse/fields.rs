//! Nodes that stand for the fields of an entry in formulas over the entries of a sparse matrix.

use std::any::Any;
use std::sync::Arc;

use outcore_dtype::DType;
use outcore_store::{Io, Layout, ReadCost, Region, Reservation, Source, StoreError};

use crate::expr::{Digest, Expr, Node, Op};
use crate::{ops, EngineError};

/// A dense operand of formulas, which counts in the ledger while it is there.
#[derive(Clone)]
pub struct DenseOperand {
    elements: Arc<[u8]>,
    _held: Arc<Vec<Reservation>>,
}

impl DenseOperand {
    pub fn new(elements: &[u8], held: Vec<Reservation>) -> DenseOperand {
        DenseOperand {
            elements: elements.into(),
            _held: Arc::new(held),
        }
    }

    pub fn elements(&self) -> &[u8] {
        &self.elements
    }
}

impl std::fmt::Debug for DenseOperand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DenseOperand({} bytes)", self.elements.len())
    }
}

/// A field of an entry.
#[derive(Clone, Debug)]
pub enum Field {
    /// Its value; true in a pattern.
    Value(DType),
    /// The value of the second of two matrices at its place; 0 where that has no entry.
    Other(DType),
    /// Its row, as int64.
    Row,
    /// Its column, as int64.
    Column,
    /// The element of a vector at its row.
    AtRow(DType, DenseOperand),
    /// The element of a vector at its column.
    AtColumn(DType, DenseOperand),
    /// The element of a dense matrix at its place, of rows of so many elements.
    AtPlace(DType, DenseOperand, u64),
}

impl Field {
    pub fn dtype(&self) -> DType {
        match self {
            Field::Value(dtype)
            | Field::Other(dtype)
            | Field::AtRow(dtype, _)
            | Field::AtColumn(dtype, _)
            | Field::AtPlace(dtype, ..) => *dtype,
            Field::Row | Field::Column => DType::I64,
        }
    }

    /// The node that stands for the field.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn node(self) -> Result<Expr, EngineError> {
        let identity = match &self {
            Field::Value(dtype) => format!("sparse entry: value of {dtype}"),
            Field::Other(dtype) => format!("sparse entry: other value of {dtype}"),
            Field::Row => "sparse entry: row".into(),
            Field::Column => "sparse entry: column".into(),
            Field::AtRow(dtype, vector) => format!("sparse entry: {dtype} by row {}", Digest::of(vector.elements())),
            Field::AtColumn(dtype, vector) => {
                format!("sparse entry: {dtype} by column {}", Digest::of(vector.elements()))
            }
            Field::AtPlace(dtype, matrix, width) => {
                format!(
                    "sparse entry: {dtype} by place {} of rows of {width}",
                    Digest::of(matrix.elements())
                )
            }
        };
        ops::source(Arc::new(FieldSource { field: self, identity }))
    }

    /// The field that a node stands for.
    pub fn of(node: &Node) -> Option<&Field> {
        match &node.op {
            Op::Source(key) => key.0.typed()?.downcast_ref::<FieldSource>().map(|source| &source.field),
            _ => None,
        }
    }

    /// Whether it follows from the place of the entry.
    pub(super) fn is_of_place(&self) -> bool {
        !matches!(self, Field::Value(_) | Field::Other(_))
    }
}

/// An array that nobody reads: a formula is evaluated over entries, and its leaves are theirs.
#[derive(Debug)]
struct FieldSource {
    field: Field,
    identity: String,
}

impl Source for FieldSource {
    fn name(&self) -> String {
        self.identity.clone()
    }
    // No array of a caller goes with it by broadcasting.
    fn shape(&self) -> &[u64] {
        &[2]
    }
    fn dtype(&self) -> DType {
        self.field.dtype()
    }
    fn layout(&self) -> Layout {
        Layout::RowMajor
    }
    fn identity(&self) -> &str {
        &self.identity
    }
    fn check_unchanged(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn cost(&self, _region: &Region, _io: &Io) -> Result<ReadCost, StoreError> {
        Err(self.refusal())
    }
    fn read(&self, _region: &Region, _frame: &mut [u8], _io: &Io) -> Result<usize, StoreError> {
        Err(self.refusal())
    }
    fn typed(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl FieldSource {
    fn refusal(&self) -> StoreError {
        StoreError::Invalid(format!("{}: stands for the entries of a matrix", self.identity))
    }
}
