//! A sparse matrix times a dense one: how many of its columns at a time, which follows from the memory there is.

use std::sync::Arc;

use outcore_dtype::{DType, Scalar};
use outcore_sparse::Semiring;
use outcore_store::{Io, SparseFile};

use super::bands::{rows_of, Bands};
use super::multiply::Multiply;
use super::transposed::MultiplyTransposed;
use super::Matrix;
use crate::expr::staged::{Found, Next, Room, Staged, Stages};
use crate::expr::{grid, Expr};
use crate::ops::{self, show};
use crate::task::Grid;
use crate::EngineError;

/// The matrix, or its transpose, times the dense matrix `x`, in a semiring over the type of `x`. Sums have the same bits
/// however many columns are worked on together.
///
/// # Errors
/// Shapes that do not go together; a type that does not make the semiring.
pub fn product(matrix: &Matrix, transposed: bool, x: &Expr, semiring: Semiring) -> Result<Expr, EngineError> {
    let shape = matrix.file.matrix();
    let (rows, inner) = match transposed {
        false => (shape.rows, shape.columns),
        true => (shape.columns, shape.rows),
    };
    if x.ndim() != 2 || x.shape[0] != inner {
        return Err(EngineError::Shape(format!(
            "sparse product: ({rows}, {inner}) @ {}: inner dimensions {inner} and {} differ",
            show(&x.shape),
            x.shape.first().copied().unwrap_or(1)
        )));
    }
    let zero = semiring.zero(x.dtype).ok_or_else(|| {
        EngineError::DType(format!(
            "sparse product: {} does not make the semiring {}",
            x.dtype,
            semiring.name()
        ))
    })?;
    let columns = x.shape[1];
    let result_shape = [rows, columns];
    let tile = grid::uncut(&result_shape, x.dtype, grid::default_tile(&result_shape, x.dtype), &[1]);
    let times = Times {
        pieces: rows_of(&matrix.file).into(),
        file: matrix.file.clone(),
        transposed,
        semiring,
        zero,
        result: [Grid {
            shape: result_shape.to_vec(),
            tile,
            dtype: x.dtype,
        }],
    };
    let inputs = [matrix.tiles.clone(), x.clone()];
    Ok(ops::staged(Arc::new(times), &inputs)?.swap_remove(0))
}

/// What is multiplied.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub file: Arc<SparseFile>,
    /// Rows of each tile of the sparse matrix.
    pub pieces: Arc<[(u64, u64)]>,
    pub transposed: bool,
    pub semiring: Semiring,
    /// The sum of nothing.
    pub zero: Vec<u8>,
    pub result: [Grid; 1],
}

impl Times {
    pub fn dtype(&self) -> DType {
        self.result[0].dtype
    }

    /// Bytes of the values of the entries, as they are multiplied; none of a pattern.
    pub fn converts(&self) -> bool {
        self.file.matrix().dtype.is_some_and(|dtype| dtype != self.dtype())
    }

    /// The sum of nothing, as a number.
    fn nothing(&self) -> Scalar {
        match (self.semiring.name().split('_').next(), self.dtype()) {
            (Some("min"), DType::I64) => Scalar::Int(i64::MAX),
            (Some("max"), DType::I64) => Scalar::Int(i64::MIN),
            (Some("min"), _) => Scalar::Float(f64::INFINITY),
            (Some("max"), _) => Scalar::Float(f64::NEG_INFINITY),
            (_, DType::Bool) => Scalar::Bool(false),
            _ => Scalar::Int(0),
        }
    }

    /// As many columns as there is room for beside what passes by.
    fn bands(&self, room: Room) -> Bands {
        let columns = self.result[0].shape[1].max(1);
        let matrix = self.file.matrix();
        let held = match self.transposed {
            false => matrix.columns,
            true => matrix.columns.next_multiple_of(u64::from(matrix.side)),
        };
        let item = self.dtype().size() as u64;
        let largest = |lengths: &mut dyn Iterator<Item = u64>| lengths.max().unwrap_or(0);
        let tile = largest(&mut (0..self.file.tiles()).map(|tile| {
            self.file
                .tile_rows(tile)
                .map(|(_, at)| at.end as u64)
                .max()
                .unwrap_or(0)
        }));
        let rows = largest(&mut self.pieces.iter().map(|(_, rows)| *rows));
        let under_way = room.threads as u64 + 1;
        let left = (room.memory / 8 * 7).saturating_sub(under_way * tile);
        let each = (held + under_way * rows) * item + 1;
        let fit = (left / each).clamp(1, columns);
        // Bands of one width, as far as that goes.
        Bands {
            columns,
            width: columns.div_ceil(columns.div_ceil(fit)),
        }
    }
}

impl Staged for Times {
    fn name(&self) -> String {
        "sparse product".into()
    }
    fn key(&self) -> Vec<u8> {
        vec![self.semiring as u8, u8::from(self.transposed)]
    }
    fn results(&self) -> &[Grid] {
        &self.result
    }
    fn begin(&self, inputs: &[Expr], room: Room) -> Result<Box<dyn Stages>, EngineError> {
        Ok(Box::new(Chosen {
            nodes: self.nodes(inputs, room)?,
        }))
    }
}

impl Times {
    fn nodes(&self, inputs: &[Expr], room: Room) -> Result<Vec<Expr>, EngineError> {
        let result = &self.result[0];
        if result.tiles() == 0 || self.file.tiles() == 0 {
            let zero = ops::constant(self.nothing(), self.dtype())?;
            let zero = ops::broadcast_to(&zero, &result.shape)?;
            return Ok(vec![ops::in_tiles(&zero, result.tile.clone())]);
        }
        let bands = self.bands(room);
        let mut tile = grid::default_tile(&inputs[1].shape, self.dtype());
        tile[1] = bands.width;
        let tile = match bands.count() {
            1 => grid::uncut(&inputs[1].shape, self.dtype(), inputs[1].tile.clone(), &[1]),
            _ => grid::bounded(&inputs[1].shape, self.dtype(), &tile),
        };
        let x = ops::in_tiles(&inputs[1], tile);
        let dense = x.grid();
        let inputs = [inputs[0].clone(), x];
        let mut nodes = match self.transposed {
            false => ops::algorithm(Arc::new(Multiply::new(self.clone(), bands, dense)), &inputs)?,
            true => ops::algorithm(Arc::new(MultiplyTransposed::new(self.clone(), bands, dense)), &inputs)?,
        };
        nodes.truncate(1);
        Ok(nodes)
    }
}

struct Chosen {
    nodes: Vec<Expr>,
}

impl Stages for Chosen {
    fn next(&mut self, _found: &[Found], _room: Room, _io: &Io) -> Result<Next, EngineError> {
        Ok(Next::Done(self.nodes.clone()))
    }
    fn assume(&mut self, _after: usize, _room: Room) -> Result<Next, EngineError> {
        Ok(Next::Done(self.nodes.clone()))
    }
    fn lookup_bytes(&self) -> u64 {
        0
    }
}
