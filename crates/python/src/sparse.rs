//! Stored sparse matrices: opened, multiplied, read, and written from entries in order.

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1};
use outcore_dtype::DType;
use outcore_engine::expr::staged::Room;
use outcore_engine::expr::Expr;
use outcore_engine::run::Session;
use outcore_engine::sort::{self, Parting, Parts};
use outcore_engine::sparse::{
    self, Assembler, Crew, Duplicates, Given, Ingest, Matrix, ProductResources, Semiring, SparseProduct,
};
use outcore_engine::EngineError;
use outcore_store::{return_freed_memory, Io, Reservation, Source, SparseShape};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::to_python;
use crate::expr::{exprs, PyExpr};
use crate::session::{watching_signals, PySession};

fn argument(text: String) -> PyErr {
    to_python(EngineError::Argument(text))
}

/// The type of the values of a matrix; "pattern" for none.
fn values_named(name: &str) -> PyResult<Option<DType>> {
    match name {
        "pattern" => Ok(None),
        name => DType::from_name(name)
            .map(Some)
            .ok_or_else(|| argument(format!("sparse: values of {name}"))),
    }
}

fn semiring_named(name: &str) -> PyResult<Semiring> {
    Semiring::named(name).ok_or_else(|| argument(format!("sparse product: no semiring is called {name}")))
}

fn duplicates_named(name: &str) -> PyResult<Duplicates> {
    match name {
        "sum" => Ok(Duplicates::Sum),
        "last" => Ok(Duplicates::Last),
        "refuse" => Ok(Duplicates::Refuse),
        other => Err(argument(format!("sparse: duplicates={other:?}"))),
    }
}

/// The shape of a matrix whose entries are not counted yet.
fn shape_of((rows, columns): (u64, u64), side: u32, dtype: &str) -> PyResult<SparseShape> {
    Ok(SparseShape {
        rows,
        columns,
        side,
        entries: 0,
        dtype: values_named(dtype)?,
    })
}

#[pyclass(frozen, name = "Sparse", module = "outcore._core")]
pub struct PySparse(pub Matrix);

#[pymethods]
impl PySparse {
    #[getter]
    fn shape(&self) -> (u64, u64) {
        let matrix = self.0.file.matrix();
        (matrix.rows, matrix.columns)
    }

    #[getter]
    fn entries(&self) -> u64 {
        self.0.file.matrix().entries
    }

    /// Of the values; "pattern" where there are none.
    #[getter]
    fn dtype(&self) -> String {
        let dtype = self.0.file.matrix().dtype;
        dtype.map_or("pattern".into(), |dtype| dtype.to_string())
    }

    /// Whether tiles lie in the file as they are multiplied; else they are made of rows as these are read.
    #[getter]
    fn is_tiled(&self) -> bool {
        self.0.file.is_tiled()
    }

    #[getter]
    fn side(&self) -> u32 {
        self.0.file.matrix().side
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.0.file.file_bytes()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.0.file.path().to_path_buf()
    }

    /// Equal where the bytes are.
    #[getter]
    fn identity(&self) -> String {
        self.0.file.identity().to_string()
    }

    /// Tiles that are read one by one.
    #[getter]
    fn tiles(&self) -> usize {
        self.0.file.tiles()
    }

    /// The matrix, or its transpose, times a dense one.
    fn product(&self, x: &PyExpr, transposed: bool, semiring: &str) -> PyResult<PyExpr> {
        let product = sparse::product(&self.0, transposed, &x.0, semiring_named(semiring)?);
        product.map(PyExpr::new).map_err(to_python)
    }

    /// Rows, columns and the bytes of the values of a tile's entries.
    #[allow(clippy::type_complexity)] // three arrays
    fn read<'py>(
        &self,
        py: Python<'py>,
        session: PyRef<'_, PySession>,
        tile: usize,
    ) -> PyResult<(
        Bound<'py, PyArray1<u64>>,
        Bound<'py, PyArray1<u64>>,
        Bound<'py, PyArray1<u8>>,
    )> {
        if tile >= self.0.file.tiles() {
            return Err(argument(format!("sparse: tile {tile} of {}", self.0.file.tiles())));
        }
        let (matrix, session) = (self.0.clone(), session.0.clone());
        let found = py.detach(|| matrix.entries(tile, session.io())).map_err(to_python)?;
        Ok((
            PyArray1::from_vec(py, found.rows),
            PyArray1::from_vec(py, found.columns),
            PyArray1::from_vec(py, found.values),
        ))
    }
}

/// Writes a sparse matrix.
#[pyclass(name = "SparseWriter", module = "outcore._core")]
pub struct PySparseWriter {
    assembler: Option<Assembler>,
    session: Py<PySession>,
    /// Memory of the session's for what is not written yet.
    held: Vec<Reservation>,
    held_bytes: usize,
}

/// Memory for what is not written is taken so much at a time. The first is covered by the allowances beside the ledger.
const HELD_STEP: usize = 16 << 20;

#[pymethods]
impl PySparseWriter {
    #[new]
    #[pyo3(signature = (session, path, shape, dtype, side, duplicates, overwrite))]
    fn new(
        py: Python<'_>,
        session: Py<PySession>,
        path: PathBuf,
        shape: (u64, u64),
        dtype: &str,
        side: u32,
        duplicates: &str,
        overwrite: bool,
    ) -> PyResult<PySparseWriter> {
        let (shape, duplicates) = (shape_of(shape, side, dtype)?, duplicates_named(duplicates)?);
        let io = session.get().0.io().clone();
        let workers = session.get().0.options().threads.max(1);
        let assembler = py.detach(|| Assembler::new(&path, shape, duplicates, overwrite, workers, &io));
        Ok(PySparseWriter {
            assembler: Some(assembler.map_err(to_python)?),
            session,
            held: vec![],
            held_bytes: HELD_STEP,
        })
    }

    /// Takes entries: their places, ascending, and the bytes of their values.
    fn add(
        &mut self,
        py: Python<'_>,
        places: PyReadonlyArray1<'_, u64>,
        values: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let (places, values) = (places.as_slice()?, values.as_slice()?);
        self.add_by(py, |assembler, io| assembler.add(places, values, io))
    }

    /// As `add`, of places within tile rows, whose numbers come beside them: where places take more than 64 bits.
    fn add_wide(
        &mut self,
        py: Python<'_>,
        tile_rows: PyReadonlyArray1<'_, u64>,
        places: PyReadonlyArray1<'_, u64>,
        values: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let (tile_rows, places, values) = (tile_rows.as_slice()?, places.as_slice()?, values.as_slice()?);
        self.add_by(py, |assembler, io| assembler.add_wide(tile_rows, places, values, io))
    }

    /// Completes the file; the number of its entries.
    fn finish(&mut self, py: Python<'_>) -> PyResult<u64> {
        let io = self.session.get().0.io().clone();
        let assembler = self.assembler.take().ok_or_else(finished)?;
        let shape = py.detach(|| assembler.finish(&io)).map_err(to_python)?;
        Ok(shape.entries)
    }
}

impl PySparseWriter {
    /// Adds, and takes the memory that this has come to hold.
    fn add_by(
        &mut self,
        py: Python<'_>,
        add: impl FnOnce(&mut Assembler, &Io) -> Result<(), EngineError> + Send,
    ) -> PyResult<()> {
        let session = self.session.get().0.clone();
        let assembler = self.assembler.as_mut().ok_or_else(finished)?;
        let now = py.detach(|| add(assembler, session.io()).map(|()| assembler.held_bytes()));
        let now = now.map_err(to_python)?.next_multiple_of(HELD_STEP);
        if now > self.held_bytes {
            let more = (now - self.held_bytes) as u64;
            let held = py.detach(|| session.hold_beside("tile row", more));
            self.held.extend(held.map_err(to_python)?);
            self.held_bytes = now;
        }
        Ok(())
    }
}

fn finished() -> PyErr {
    to_python(EngineError::Session("sparse: this writer has finished".into()))
}

/// The part of the session's memory that groups of entries are sorted and encoded in.
fn grouping_bytes(session: &Session) -> u64 {
    session.budget() / 4 * 3
}

/// How entries are cut into groups by their keys: elements of a run, and splitters, none where all of them are a group.
/// Nothing where there is no room for that.
#[pyfunction]
fn parting(
    session: PyRef<'_, PySession>,
    keys: &PyExpr,
    values: Vec<PyRef<'_, PyExpr>>,
) -> PyResult<Option<(u64, usize)>> {
    let (session, values) = (&session.0, exprs(&values));
    let threads = session.options().threads.max(1);
    let groups = sparse::groups_in(&keys.0, &values, grouping_bytes(session), threads).map_err(to_python)?;
    let length = keys.0.elements();
    if length <= groups.wanted {
        return Ok(Some((length, 0)));
    }
    let budget = session.budget();
    let room = Room {
        memory: budget - budget / 8,
        threads,
    };
    let found = sort::parting(&keys.0, &values, groups.wanted, groups.most, room).map_err(to_python)?;
    Ok(found.map(|parting| (parting.run, parting.splitters)))
}

/// Some of the keys, in which all are about as often as in all of them: pages evenly apart; nothing of fewer than a page.
#[pyfunction]
fn sample_keys(keys: &PyExpr) -> PyResult<Option<PyExpr>> {
    Ok(sort::sample(&keys.0).map_err(to_python)?.map(PyExpr::new))
}

/// Keys and values in runs of buckets that lie between `splitters` (the bytes of keys in order), and how many elements each bucket has in each run.
#[pyfunction]
fn part(
    keys: &PyExpr,
    values: Vec<PyRef<'_, PyExpr>>,
    splitters: PyReadonlyArray1<'_, u8>,
    run: u64,
) -> PyResult<Vec<PyExpr>> {
    let splitters = splitters.as_slice()?;
    let parting = Parting {
        run,
        splitters: splitters.len() / keys.0.dtype.size(),
    };
    let found = sort::part(&keys.0, &exprs(&values), splitters, parting).map_err(to_python)?;
    Ok(found.into_iter().map(PyExpr::new).collect())
}

/// Writes the first `count` entries of stored columns, keys first, to a file: columns in order, or in runs of so many
/// elements, each of so many buckets, whose lengths are given (the bytes of int64). Gives the number of entries in the file; nothing where
/// a bucket is larger than there is memory for. `told` hears how many entries are done.
#[pyfunction]
#[pyo3(signature = (session, path, shape, dtype, side, duplicates, overwrite, columns, keys, count, runs, told))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn assemble_sparse(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    path: PathBuf,
    shape: (u64, u64),
    dtype: &str,
    side: u32,
    duplicates: &str,
    overwrite: bool,
    columns: Vec<PyRef<'_, PyExpr>>,
    keys: usize,
    count: u64,
    runs: Option<(u64, usize, PyReadonlyArray1<'_, u8>)>,
    told: Option<Py<PyAny>>,
) -> PyResult<Option<u64>> {
    let (shape, duplicates) = (shape_of(shape, side, dtype)?, duplicates_named(duplicates)?);
    let item = shape.dtype.map_or(0, |dtype| dtype.size());
    let wanted_columns = keys + usize::from(item > 0);
    let (session, columns) = (session.0.clone(), exprs(&columns));
    if !(1..=2).contains(&keys)
        || columns.len() != wanted_columns
        || columns[..keys].iter().any(|keys| keys.dtype != DType::U64)
        || columns.get(keys).map(|values| values.dtype) != shape.dtype
    {
        return Err(argument(format!("sparse: {} columns are no entries", columns.len())));
    }
    let (memory, threads) = (grouping_bytes(&session), session.options().threads.max(1));
    let groups = sparse::groups_in(&columns[0], &columns[1..], memory, threads).map_err(to_python)?;
    let parts = match &runs {
        None => Parts::of_sorted(&columns, groups.wanted).map(Some),
        Some((run, splitters, counts)) => {
            let (run, splitters) = (*run, *splitters);
            let parting = Parting { run, splitters };
            Parts::of_runs(&columns, counts.as_slice()?, parting, groups.wanted, groups.most)
        }
    };
    let Some(parts) = parts.map_err(to_python)? else {
        return Ok(None);
    };
    let shape = watching_signals(py, |watch| {
        let crew = Crew::within(memory, &parts, item as u64, threads);
        let mut set_aside = crew.bytes();
        let mut held = session.set_aside("sparse: entries", set_aside)?;
        let io = session.io();
        let assembler = Assembler::new(&path, shape, duplicates, overwrite, crew.workers(), io)?;
        let ingest = Ingest {
            parts: &parts,
            keys,
            count,
            io,
        };
        let made = sparse::assemble(ingest, assembler, crew, &mut |done, taken| {
            let wanted = taken
                .saturating_sub(HELD_STEP as u64)
                .next_multiple_of(HELD_STEP as u64);
            if wanted > set_aside {
                match held.grow(wanted - set_aside) {
                    Err(refused @ EngineError::Memory { .. }) => return Ok(Given::Refused(refused)),
                    grown => grown?,
                }
                set_aside = wanted;
            }
            if let Some(told) = &told {
                let called = Python::attach(|py| told.call1(py, (done,)).map(|_| ()));
                called.map_err(|error| EngineError::Internal(format!("sparse: progress: {error}")))?;
            }
            watch()?;
            Ok(Given::Enough)
        });
        return_freed_memory();
        made
    })?;
    Ok(Some(shape.entries))
}

/// The operands of a product of two sparse matrices.
struct Operands {
    first: Matrix,
    second: Matrix,
    mask: Option<Matrix>,
    complement: bool,
    semiring: Semiring,
    dtype: DType,
    stored: Option<DType>,
}

impl Operands {
    /// `types` are that of the sums and that of the values that are stored, "pattern" for none.
    fn new(
        [first, second]: [&PySparse; 2],
        mask: Option<PyRef<'_, PySparse>>,
        complement: bool,
        semiring: &str,
        types: [&str; 2],
    ) -> PyResult<Operands> {
        Ok(Operands {
            first: first.0.clone(),
            second: second.0.clone(),
            mask: mask.map(|mask| mask.0.clone()),
            complement,
            semiring: semiring_named(semiring)?,
            dtype: values_named(types[0])?.ok_or_else(|| argument("spgemm: sums have a type".into()))?,
            stored: values_named(types[1])?,
        })
    }

    fn product(&self, tiles: (usize, usize)) -> SparseProduct<'_> {
        SparseProduct {
            first: &self.first,
            second: &self.second,
            mask: self.mask.as_ref().map(|mask| (mask, self.complement)),
            semiring: self.semiring,
            dtype: self.dtype,
            stored: self.stored,
            tiles: tiles.0..tiles.1.min(self.first.file.tiles()),
        }
    }
}

/// What a session gives to the product of two sparse matrices.
fn resources(session: &Session) -> ProductResources<'_> {
    let (budget, options) = (session.budget(), session.options());
    ProductResources {
        memory: budget / 4 * 3,
        memory_limit: match options.pool_limit {
            Some(pool) if pool <= budget => pool,
            _ => options.memory_limit,
        },
        threads: session.options().threads,
        io: session.io(),
    }
}

/// Writes the product of two sparse matrices to `path`, with values of the type `stored` ("pattern" for none): `dtype` is
/// that of the sums, `mask` what places may have entries, or with `complement` may not. Gives the result, opened.
#[pyfunction]
#[pyo3(signature = (session, first, second, mask, complement, semiring, dtype, stored, path, overwrite, tiles))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn spgemm(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    first: PyRef<'_, PySparse>,
    second: PyRef<'_, PySparse>,
    mask: Option<PyRef<'_, PySparse>>,
    complement: bool,
    semiring: &str,
    dtype: &str,
    stored: &str,
    path: PathBuf,
    overwrite: bool,
    tiles: (usize, usize),
) -> PyResult<PySparse> {
    let operands = Operands::new([&first, &second], mask, complement, semiring, [dtype, stored])?;
    let session = session.0.clone();
    watching_signals(py, |watch| {
        let resources = resources(&session);
        let _held = session.set_aside("spgemm", resources.memory)?;
        sparse::multiply_sparse(&operands.product(tiles), &resources, &path, overwrite, watch)
    })
    .map(PySparse)
}

/// What `spgemm` will read and write, by name.
#[pyfunction]
#[pyo3(signature = (session, first, second, mask, complement, semiring, dtype, stored))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn foresee_spgemm<'py>(
    py: Python<'py>,
    session: PyRef<'py, PySession>,
    first: PyRef<'py, PySparse>,
    second: PyRef<'py, PySparse>,
    mask: Option<PyRef<'py, PySparse>>,
    complement: bool,
    semiring: &str,
    dtype: &str,
    stored: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let operands = Operands::new([&first, &second], mask, complement, semiring, [dtype, stored])?;
    let session = session.0.clone();
    let said = watching_signals(py, |_| {
        sparse::forecast(&operands.product((0, usize::MAX)), &resources(&session))
    })?;
    let found = PyDict::new(py);
    found.set_item("bytes_read", said.read_bytes)?;
    found.set_item("exact", said.exact)?;
    found.set_item("groups", said.groups)?;
    found.set_item("bytes_written", said.written_bytes)?;
    found.set_item("peak_bytes", resources(&session).memory)?;
    found.set_item("memory_limit", session.options().memory_limit)?;
    found.set_item("overhead_bytes", session.overhead())?;
    found.set_item("budget_bytes", session.budget())?;
    Ok(found)
}

/// Writes the tile rows of several stored matrices to one file.
#[pyfunction]
fn join_sparse(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    parts: Vec<PyRef<'_, PySparse>>,
    path: PathBuf,
    overwrite: bool,
) -> PyResult<u64> {
    let io = session.0.io().clone();
    let parts: Vec<Matrix> = parts.iter().map(|part| part.0.clone()).collect();
    let shape = py
        .detach(|| sparse::join(&parts, &path, overwrite, &io))
        .map_err(to_python)?;
    Ok(shape.entries)
}

/// Opens a stored sparse matrix.
#[pyfunction]
fn open_sparse(py: Python<'_>, session: PyRef<'_, PySession>, path: PathBuf) -> PyResult<PySparse> {
    let session = session.0.clone();
    watching_signals(py, |_| sparse::open(&path, session.io())).map(PySparse)
}

/// Opens compressed rows: row pointers, columns and values, if any, as stored arrays.
#[pyfunction]
#[pyo3(signature = (session, name, indptr, indices, data, shape, side))]
#[allow(clippy::too_many_arguments)] // of the Python side, by name
fn open_rows(
    py: Python<'_>,
    session: PyRef<'_, PySession>,
    name: String,
    indptr: PyRef<'_, PyExpr>,
    indices: PyRef<'_, PyExpr>,
    data: Option<PyRef<'_, PyExpr>>,
    shape: (u64, u64),
    side: u32,
) -> PyResult<PySparse> {
    let io = session.0.io().clone();
    let (indptr, indices): (Expr, Expr) = (indptr.0.clone(), indices.0.clone());
    let data: Option<Expr> = data.map(|data| data.0.clone());
    let opened = py.detach(|| sparse::open_rows(name, [&indptr, &indices], data.as_ref(), shape, side, &io));
    Ok(PySparse(opened.map_err(to_python)?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySparse>()?;
    module.add_class::<PySparseWriter>()?;
    module.add_function(wrap_pyfunction!(parting, module)?)?;
    module.add_function(wrap_pyfunction!(sample_keys, module)?)?;
    module.add_function(wrap_pyfunction!(part, module)?)?;
    module.add_function(wrap_pyfunction!(assemble_sparse, module)?)?;
    module.add_function(wrap_pyfunction!(spgemm, module)?)?;
    module.add_function(wrap_pyfunction!(foresee_spgemm, module)?)?;
    module.add_function(wrap_pyfunction!(open_rows, module)?)?;
    module.add_function(wrap_pyfunction!(join_sparse, module)?)?;
    module.add_function(wrap_pyfunction!(open_sparse, module)?)
}
