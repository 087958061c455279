//! Graphs made of sparse matrices, whose rows are the lists.

use std::path::Path;

use outcore_coding::lists::Vertex;
use outcore_store::{GraphShape, GraphWriter, Io};

use crate::live::{CacheShare, LiveMemory, LiveOperator, ReadingShare, Resources, Watch};
use crate::sparse::SparseMatrix;
use crate::EngineError;

/// A graph that is made of a matrix: see [`BuildGraph::run`].
pub struct BuildGraph<'a> {
    pub matrix: &'a SparseMatrix,
    pub transpose: Option<&'a SparseMatrix>,
    pub path: &'a Path,
    pub labels: Option<&'a Path>,
    pub overwrite: bool,
}

impl BuildGraph<'_> {
    fn shape(&self) -> GraphShape {
        let shape = self.matrix.file.matrix();
        GraphShape {
            vertices: shape.rows,
            edges: shape.entries,
            directed: self.transpose.is_some(),
            weights: shape.dtype,
        }
    }
}

impl LiveOperator for BuildGraph<'_> {
    type Output = GraphShape;

    fn name(&self) -> &'static str {
        "graph"
    }

    fn memory(&self, _: usize) -> LiveMemory {
        let file = &self.matrix.file;
        let largest = (0..file.tiles()).map(|tile| file.tile_bytes(tile)).max();
        LiveMemory {
            known: GraphWriter::memory_bytes(&self.shape()),
            frugal: None,
            // Entries of a tile are read, put row by row with columns of eight bytes, and their values beside.
            least: 5 * largest.unwrap_or(0),
            most: 0,
            reading: ReadingShare::Part(1),
            cache: CacheShare::Nothing,
        }
    }

    /// Writes the graph whose edges are the entries of a matrix: one from each row to each of its columns. `transpose` is the
    /// same matrix the other way, for the lists of a directed graph; without it the matrix must equal its transpose.
    /// `labels` is the file of what vertices were called, if they were given other numbers: it comes beside.
    /// I/O: one read of each matrix, one write.
    ///
    /// # Errors
    /// Matrices that are not square, differ, or have more rows than a graph has vertices; files that cannot be read or written.
    fn run(&self, resources: &Resources<'_>, watch: &mut Watch<'_>) -> Result<GraphShape, EngineError> {
        let (matrix, io) = (self.matrix, resources.io);
        let shape = matrix.file.matrix();
        if shape.rows != shape.columns {
            return Err(EngineError::Shape(format!(
                "graph: a matrix of ({}, {}) has not as many columns as rows",
                shape.rows, shape.columns
            )));
        }
        if let Some(other) = self.transpose.map(|matrix| matrix.file.matrix()) {
            if (other.rows, other.columns, other.entries, other.dtype)
                != (shape.rows, shape.rows, shape.entries, shape.dtype)
            {
                return Err(EngineError::Shape(format!(
                    "graph: a matrix of {} rows and {} entries, and a transpose of {} rows and {}",
                    shape.rows, shape.entries, other.rows, other.entries
                )));
            }
        }
        let mut writer = GraphWriter::create(self.path, self.shape(), self.overwrite, io)?;
        for matrix in std::iter::once(matrix).chain(self.transpose) {
            add(&mut writer, matrix, io, watch)?;
        }
        Ok(writer.finish(self.labels, io)?)
    }

    fn freed_bytes(&self) -> u64 {
        0
    }
}

/// Adds the lists of one direction.
fn add(writer: &mut GraphWriter, matrix: &SparseMatrix, io: &Io, watch: &mut Watch<'_>) -> Result<(), EngineError> {
    let shape = matrix.file.matrix();
    let (side, item) = (u64::from(shape.side), shape.dtype.map_or(0, |dtype| dtype.size()));
    let mut done = 0;
    let mut neighbours: Vec<Vertex> = vec![];
    for tile in 0..matrix.file.tiles() {
        watch()?;
        for (number, rows) in matrix.rows_of_tile(tile, shape.dtype, io)? {
            let begin = number * side;
            for _ in done..begin {
                writer.push(&[], &[], io)?;
            }
            done = (begin + side).min(shape.rows);
            for row in 0..(done - begin) as usize {
                let place = rows.place(row);
                neighbours.clear();
                // The vertices are fewer than 2^32: the writer has looked at that.
                neighbours.extend(rows.columns[place.clone()].iter().map(|column| *column as Vertex));
                writer.push(
                    &neighbours,
                    &rows.values.bytes()[place.start * item..place.end * item],
                    io,
                )?;
            }
        }
    }
    for _ in done..shape.rows {
        writer.push(&[], &[], io)?;
    }
    Ok(())
}
