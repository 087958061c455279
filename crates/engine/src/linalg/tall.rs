//! QR of a matrix with many more rows than columns: two reads, or one where only R is asked for.
//!
//! Demmel, Grigori, Hoemmen and Langou (2012), "Communication-optimal parallel and sequential QR and LU factorizations",
//! section 3: each tile of rows is factorized, then stacks of their triangles, up to a single one. Orthogonal factors of the
//! tiles are not kept but made again in a second read, when the factors above say what each is multiplied by.

use std::sync::Arc;

use outcore_dtype::DType;
use outcore_kernels::{gemm, Factor, Factorization, Matrix, MatrixMut};

use crate::expr::{grid, Expr};
use crate::ops::{algorithm, in_tiles};
use crate::task::{Access, Algorithm, Bound, Grid, Recipe, Work};
use crate::EngineError;

/// A tile has at least so many times as many rows as columns, so that triangles are small beside tiles.
const ROWS_MIN: u64 = 4;
/// Triangles that are stacked, at most.
const STACKED_MAX: u64 = 64;

/// Rows of a tile.
fn rows(x: &Expr) -> u64 {
    let columns = x.shape[1].max(1);
    let panel = grid::PANEL_BYTES / (columns * x.dtype.size() as u64);
    panel.max(ROWS_MIN * columns)
}

/// Whether `x` is a matrix with so many more rows than columns that it goes by tiles.
pub fn is_tall(x: &Expr) -> bool {
    x.ndim() == 2 && x.shape[0] >= 2 * rows(x)
}

/// Q (m, n) and R (n, n), or R alone, of a matrix that [`is_tall`].
pub fn tall(x: &Expr, with_basis: bool) -> Result<Vec<Expr>, EngineError> {
    let input = in_tiles(x, vec![rows(x), x.shape[1]]);
    let factors = Arc::new(Factors::new(input.grid(), with_basis));
    let kept = if with_basis { 2 } else { 1 };
    let mut results = algorithm(factors, &[input])?;
    results.truncate(kept);
    Ok(results)
}

/// The sets: R; then, on each level below it, a triangle for each node of the tree. With a basis, Q before them; then, on each
/// level, the orthogonal factor of each stack; then what each node's rows are multiplied by.
#[derive(Clone, Debug)]
struct Factors {
    input: Grid,
    with_basis: bool,
    /// Triangles of each level, the tiles first; the last is one.
    counts: Vec<u64>,
    /// Triangles that are stacked.
    stacked: u64,
    results: Vec<Grid>,
}

impl Factors {
    fn new(input: Grid, with_basis: bool) -> Factors {
        let n = input.shape[1];
        let stacked = (input.tile[0] / n).clamp(2, STACKED_MAX);
        let mut counts = vec![input.tiles()];
        while let Some(&count) = counts.last().filter(|&&count| count > 1) {
            counts.push(count.div_ceil(stacked));
        }
        let square = |count: u64, high: u64| Grid {
            shape: vec![count * high, n],
            tile: vec![high, n],
            dtype: input.dtype,
        };
        let levels = counts.len() - 1;
        let mut results = vec![square(1, n)];
        if with_basis {
            results.insert(0, input.clone());
        }
        results.extend(counts[..levels].iter().map(|&count| square(count, n)));
        if with_basis {
            results.extend(counts[1..].iter().map(|&count| square(count, stacked * n)));
            results.extend(counts[..levels].iter().map(|&count| square(count, n)));
        }
        Factors {
            input,
            with_basis,
            counts,
            stacked,
            results,
        }
    }

    /// Levels of stacks.
    fn levels(&self) -> usize {
        self.counts.len() - 1
    }

    /// The set of a level's triangles. Sets are numbered from the input, which is 0.
    fn triangles(&self, level: usize) -> usize {
        let first = if self.with_basis { 2 } else { 1 };
        if level == self.levels() {
            first
        } else {
            first + 1 + level
        }
    }

    fn stacks(&self, level: usize) -> usize {
        3 + self.levels() + level
    }

    fn factors(&self, level: usize) -> usize {
        3 + 2 * self.levels() + level
    }

    /// The triangles of a level that the stack `stack` is made of.
    fn members(&self, level: usize, stack: u64) -> std::ops::Range<u64> {
        stack * self.stacked..((stack + 1) * self.stacked).min(self.counts[level])
    }

    fn columns(&self) -> usize {
        self.input.shape[1] as usize
    }

    fn sizes(&self, factor: Factor, rows: usize) -> Factorization {
        Factorization {
            factor,
            dtype: self.input.dtype,
            rows,
            columns: self.columns(),
            right: 0,
        }
    }

    fn square_bytes(&self) -> usize {
        self.columns() * self.columns() * self.input.dtype.size()
    }

    /// Rows of a tile of the input.
    fn tile_rows(&self, task: u64) -> usize {
        self.input.region(task)[0].length as usize
    }
}

impl Algorithm for Factors {
    fn name(&self) -> String {
        if self.with_basis { "tall qr" } else { "tall qr triangle" }.into()
    }

    fn key(&self) -> Vec<u8> {
        vec![]
    }

    fn recipe(&self) -> Option<Recipe> {
        let factor = if self.with_basis { Factor::Qr } else { Factor::Triangle };
        Some(Recipe::new("factorize").text(factor.name()))
    }

    fn results(&self) -> &[Grid] {
        &self.results
    }

    fn works(&self, _inputs: &[Grid]) -> Vec<Arc<dyn Work>> {
        let of = Arc::new(self.clone());
        let mut works: Vec<Arc<dyn Work>> = vec![Arc::new(Leaves(of.clone()))];
        let levels = 0..self.levels();
        works.extend(
            levels
                .clone()
                .map(|level| -> Arc<dyn Work> { Arc::new(Up(of.clone(), level)) }),
        );
        if self.with_basis {
            works.extend(
                levels
                    .rev()
                    .map(|level| -> Arc<dyn Work> { Arc::new(Down(of.clone(), level)) }),
            );
            works.push(Arc::new(Basis(of)));
        }
        works
    }
}

/// R of (rows, n) into a tile of n rows; rows that it has not are zeros.
fn triangle(of: &Factors, rows: usize, data: &[u8], out: &mut [u8], workspace: &mut [u8]) -> Result<(), EngineError> {
    let high = rows.min(of.columns());
    let (front, rest) = out.split_at_mut(high * of.columns() * of.input.dtype.size());
    rest.fill(0);
    run(of.sizes(Factor::Triangle, rows), data, &mut [front], workspace)
}

fn run(sizes: Factorization, data: &[u8], outputs: &mut [&mut [u8]], workspace: &mut [u8]) -> Result<(), EngineError> {
    let failed = |failure| EngineError::LinAlg(format!("qr: {failure}"));
    sizes.run(&[data], outputs, workspace).map_err(failed)
}

/// C (m, n) = A (m, k) B (k, n), row by row.
fn multiply(dtype: DType, [m, n, k]: [usize; 3], a: &[u8], b: &[u8], c: &mut [u8]) {
    let matrix = |data, columns: usize| Matrix {
        data,
        offset: 0,
        row_stride: columns as isize,
        column_stride: 1,
    };
    let c = MatrixMut {
        data: c,
        offset: 0,
        row_stride: n as isize,
        column_stride: 1,
    };
    gemm(dtype, [m, n, k], matrix(a, k), matrix(b, n), c, false);
}

/// The triangle of each tile.
#[derive(Debug)]
struct Leaves(Arc<Factors>);

impl Work for Leaves {
    fn label(&self) -> String {
        "qr of tiles".into()
    }
    fn tasks(&self) -> u64 {
        self.0.counts[0]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, task, Access::Read);
        each(self.0.triangles(0), task, Access::Create);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        self.0.sizes(Factor::Triangle, self.0.tile_rows(task)).workspace_bytes() as u64
    }
    fn operations(&self) -> f64 {
        self.0
            .sizes(Factor::Triangle, self.0.input.shape[0] as usize)
            .operations()
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        triangle(
            &self.0,
            self.0.tile_rows(task),
            tiles.reads[0],
            tiles.writes[0],
            workspace,
        )
    }
}

/// Triangles of a level, stacked and factorized: those of the next level, and how they came about.
#[derive(Debug)]
struct Up(Arc<Factors>, usize);

impl Up {
    fn rows(&self, task: u64) -> usize {
        let members = self.0.members(self.1, task);
        (members.end - members.start) as usize * self.0.columns()
    }

    fn sizes(&self, task: u64) -> Factorization {
        let factor = if self.0.with_basis {
            Factor::Qr
        } else {
            Factor::Triangle
        };
        self.0.sizes(factor, self.rows(task))
    }
}

impl Work for Up {
    fn label(&self) -> String {
        "qr of triangles".into()
    }
    fn tasks(&self) -> u64 {
        self.0.counts[self.1 + 1]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        let members = self.0.members(self.1, task);
        members.for_each(|member| each(self.0.triangles(self.1), member, Access::Read));
        each(self.0.triangles(self.1 + 1), task, Access::Create);
        if self.0.with_basis {
            each(self.0.stacks(self.1), task, Access::Create);
        }
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        let stack = self.rows(task) / self.0.columns() * self.0.square_bytes();
        (self.sizes(task).workspace_bytes() + stack) as u64
    }
    fn operations(&self) -> f64 {
        self.sizes(0).operations() * self.tasks() as f64
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let square = self.0.square_bytes();
        let (stack, workspace) = workspace.split_at_mut(tiles.reads.len() * square);
        for (place, triangle) in stack.chunks_exact_mut(square).zip(&tiles.reads) {
            place.copy_from_slice(triangle);
        }
        let (r, basis) = tiles.writes.split_first_mut().expect("a triangle is created");
        let Some(basis) = basis.first_mut() else {
            return triangle(&self.0, self.rows(task), stack, r, workspace);
        };
        let (front, rest) = basis.split_at_mut(stack.len());
        rest.fill(0);
        run(self.sizes(task), stack, &mut [front, r], workspace)
    }
}

/// What the rows of each node of a level are multiplied by: the node's part of its stack's orthogonal factor, times what the
/// stack itself is multiplied by.
#[derive(Debug)]
struct Down(Arc<Factors>, usize);

impl Work for Down {
    fn label(&self) -> String {
        "factors of tiles".into()
    }
    fn tasks(&self) -> u64 {
        self.0.counts[self.1 + 1]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(self.0.stacks(self.1), task, Access::Read);
        if self.1 + 1 < self.0.levels() {
            each(self.0.factors(self.1 + 1), task, Access::Read);
        }
        let members = self.0.members(self.1, task);
        members.for_each(|member| each(self.0.factors(self.1), member, Access::Create));
    }
    fn operations(&self) -> f64 {
        2.0 * self.0.counts[self.1] as f64 * (self.0.columns() as f64).powi(3)
    }
    fn run(&self, _task: u64, tiles: &mut Bound<'_>, _workspace: &mut [u8]) -> Result<(), EngineError> {
        let (n, square) = (self.0.columns(), self.0.square_bytes());
        for (part, out) in tiles.reads[0].chunks_exact(square).zip(&mut tiles.writes) {
            match tiles.reads.get(1) {
                Some(above) => multiply(self.0.input.dtype, [n, n, n], part, above, out),
                None => out.copy_from_slice(part),
            }
        }
        Ok(())
    }
}

/// The orthogonal factor of each tile made again, times what its rows are multiplied by.
#[derive(Debug)]
struct Basis(Arc<Factors>);

impl Basis {
    fn sizes(&self, task: u64) -> Factorization {
        self.0.sizes(Factor::Qr, self.0.tile_rows(task))
    }

    /// Bytes of the tile's own Q and R.
    fn own_bytes(&self, task: u64) -> [usize; 2] {
        let results = self.sizes(task).results().into_iter();
        let mut bytes = results.map(|(shape, dtype)| shape.iter().product::<usize>() * dtype.size());
        std::array::from_fn(|_| bytes.next().expect("Q and R"))
    }
}

impl Work for Basis {
    fn label(&self) -> String {
        "basis of tiles".into()
    }
    fn tasks(&self) -> u64 {
        self.0.counts[0]
    }
    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(0, task, Access::Read);
        each(self.0.factors(0), task, Access::Read);
        each(1, task, Access::Create);
    }
    fn workspace_bytes(&self, task: u64) -> u64 {
        (self.sizes(task).workspace_bytes() + self.own_bytes(task).iter().sum::<usize>()) as u64
    }
    fn operations(&self) -> f64 {
        let rows = self.0.input.shape[0] as usize;
        1.5 * self.0.sizes(Factor::Qr, rows).operations()
    }
    fn run(&self, task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let [basis, triangle] = self.own_bytes(task);
        let (q, rest) = workspace.split_at_mut(basis);
        let (r, rest) = rest.split_at_mut(triangle);
        run(self.sizes(task), tiles.reads[0], &mut [q, r], rest)?;
        let (rows, n) = (self.0.tile_rows(task), self.0.columns());
        let (dtype, k) = (self.0.input.dtype, rows.min(n));
        let factor = &tiles.reads[1][..k * n * dtype.size()];
        multiply(dtype, [rows, n, k], q, factor, tiles.writes[0]);
        Ok(())
    }
}
