//! Incomplete factors without fill of a square matrix by rows, made and solved with row after row: ILU(0), A ≈ LU (Saad 2003,
//! "Iterative methods for sparse linear systems", 10.3.2), and of a Hermitian matrix IC(0), A ≈ LDLᴴ (Meijerink, van der
//! Vorst 1977). L has ones on its diagonal.

use std::ops::{Div, Mul, Sub};

use bytemuck::Pod;
use outcore_dtype::Complex;

/// What factors are made of.
pub trait Number: Pod + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    /// The same in twice the bits, where there are such.
    type Wide: Number;
    fn conj(self) -> Self;
    fn wide(self) -> Self::Wide;
    /// Real and imaginary part.
    fn parts(self) -> (f64, f64);
    fn real(value: f64) -> Self;
}

macro_rules! number {
    ($T:ty, $Wide:ty, |$x:ident| $conj:expr, $wide:expr, $parts:expr, |$value:ident| $real:expr) => {
        impl Number for $T {
            type Wide = $Wide;
            fn conj(self) -> $T {
                let $x = self;
                $conj
            }
            fn wide(self) -> $Wide {
                let $x = self;
                $wide
            }
            fn parts(self) -> (f64, f64) {
                let $x = self;
                $parts
            }
            fn real($value: f64) -> $T {
                $real
            }
        }
    };
}

number!(f32, f64, |x| x, f64::from(x), (f64::from(x), 0.0), |value| value as f32);
number!(f64, f64, |x| x, x, (x, 0.0), |value| value);
number!(
    Complex<f32>,
    Complex<f64>,
    |x| Complex { re: x.re, im: -x.im },
    Complex {
        re: f64::from(x.re),
        im: f64::from(x.im)
    },
    (f64::from(x.re), f64::from(x.im)),
    |value| Complex {
        re: value as f32,
        im: 0.0
    }
);
number!(
    Complex<f64>,
    Complex<f64>,
    |x| Complex { re: x.re, im: -x.im },
    x,
    (x.re, x.im),
    |value| Complex { re: value, im: 0.0 }
);

/// Why there are no factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Broken {
    /// Rows that do not begin where those before end, or whose columns do not ascend within the matrix.
    Malformed,
    /// A row without an entry on the diagonal.
    NoDiagonal(usize),
    /// A pivot that is 0, or of a Hermitian matrix not positive, or no finite number.
    Pivot(usize, f64, f64),
}

/// The factors of a matrix, in the place of its entries.
///
/// Invariants: 1. `starts` ascends from 0 to the number of entries. 2. Columns ascend in each row and are below the order.
/// 3. `diagonal[i]` is where row i has its entry (i, i); of a Hermitian matrix it is the last of the row.
#[derive(Clone, Debug)]
pub struct Incomplete<T> {
    starts: Vec<usize>,
    columns: Vec<u32>,
    diagonal: Vec<usize>,
    values: Vec<T>,
    hermitian: bool,
}

impl<T: Number> Incomplete<T> {
    /// Factors a matrix, of which only what lies on and below the diagonal is given where it is Hermitian. Its diagonal is
    /// multiplied by `scale` first.
    ///
    /// # Errors
    /// Rows that are malformed; a pivot that is none.
    pub fn new(
        starts: Vec<usize>,
        columns: Vec<u32>,
        mut values: Vec<T>,
        hermitian: bool,
        scale: f64,
    ) -> Result<Incomplete<T>, Broken> {
        let order = starts.len().checked_sub(1).ok_or(Broken::Malformed)?;
        let is_whole = starts[0] == 0 && starts[order] == columns.len() && columns.len() == values.len();
        if !is_whole || starts.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(Broken::Malformed);
        }
        let mut diagonal = Vec::with_capacity(order);
        for row in 0..order {
            let own = &columns[starts[row]..starts[row + 1]];
            let end = if hermitian { row + 1 } else { order };
            let is_inside = own.last().is_none_or(|last| (*last as usize) < end);
            if !is_inside || own.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(Broken::Malformed);
            }
            let at = own.binary_search(&(row as u32)).map_err(|_| Broken::NoDiagonal(row))?;
            diagonal.push(starts[row] + at);
        }
        for at in &diagonal {
            values[*at] = values[*at] * T::real(scale);
        }
        let mut made = Incomplete {
            starts,
            columns,
            diagonal,
            values,
            hermitian,
        };
        made.eliminate()?;
        Ok(made)
    }

    pub fn order(&self) -> usize {
        self.diagonal.len()
    }

    fn eliminate(&mut self) -> Result<(), Broken> {
        // Of each column, where the row at work has its entry, from 1 on; 0 where it has none.
        let mut places = vec![0u32; self.order()];
        for row in 0..self.order() {
            let own = self.starts[row]..self.starts[row + 1];
            for (place, column) in (1..).zip(&self.columns[own.clone()]) {
                places[*column as usize] = place;
            }
            match self.hermitian {
                true => self.cholesky(row, &places),
                false => self.lu(row, &places),
            }
            for column in &self.columns[own] {
                places[*column as usize] = 0;
            }
            let (re, im) = self.values[self.diagonal[row]].parts();
            let is_good = if self.hermitian {
                re > 0.0
            } else {
                re != 0.0 || im != 0.0
            };
            if !(is_good && re.is_finite() && im.is_finite()) {
                return Err(Broken::Pivot(row, re, im));
            }
        }
        Ok(())
    }

    /// l_ik ← a_ik / u_kk, a_ij ← a_ij − l_ik u_kj, for the k < i and j > k where row i has entries.
    fn lu(&mut self, row: usize, places: &[u32]) {
        let begin = self.starts[row];
        for at in begin..self.diagonal[row] {
            let pivot = self.columns[at] as usize;
            let factor = self.values[at] / self.values[self.diagonal[pivot]];
            self.values[at] = factor;
            for other in self.diagonal[pivot] + 1..self.starts[pivot + 1] {
                let place = places[self.columns[other] as usize] as usize;
                if place > 0 {
                    let to = begin + place - 1;
                    self.values[to] = self.values[to] - factor * self.values[other];
                }
            }
        }
    }

    /// w_ik = a_ik − Σ_j w_ij l̄_kj, l_ik = w_ik / d_k, d_i = a_ii − Σ_k w_ik l̄_ik.
    fn cholesky(&mut self, row: usize, places: &[u32]) {
        let (begin, end) = (self.starts[row], self.diagonal[row]);
        for at in begin..end {
            let pivot = self.columns[at] as usize;
            let mut sum = self.values[at];
            for other in self.starts[pivot]..self.diagonal[pivot] {
                let place = places[self.columns[other] as usize] as usize;
                if place > 0 {
                    sum = sum - self.values[begin + place - 1] * self.values[other].conj();
                }
            }
            self.values[at] = sum;
        }
        let mut left = self.values[end].parts().0;
        for at in begin..end {
            let before = self.values[at];
            let own = before / self.values[self.diagonal[self.columns[at] as usize]];
            left -= (before * own.conj()).parts().0;
            self.values[at] = own;
        }
        self.values[end] = T::real(left);
    }

    /// Puts the solution in the place of x, `width` columns side by side; with `adjoint`, that of the conjugate transpose.
    /// x has the type of the factors.
    ///
    /// # Panics
    /// x of another length.
    pub fn solve(&self, x: &mut [T], width: usize, adjoint: bool) {
        self.solve_as(x, width, adjoint, |value| value);
    }

    /// As `solve`, of an x with twice the bits.
    ///
    /// # Panics
    /// x of another length.
    pub fn solve_wide(&self, x: &mut [T::Wide], width: usize, adjoint: bool) {
        self.solve_as(x, width, adjoint, T::wide);
    }

    fn solve_as<U: Number>(&self, x: &mut [U], width: usize, adjoint: bool, wide: impl Fn(T) -> U) {
        assert_eq!(x.len(), self.order() * width, "a right side of another length");
        if width == 0 {
            return;
        }
        let take = |to: &mut [U], factor: U, from: &[U]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = *to - factor * *from;
            }
        };
        let divide = |to: &mut [U], by: U| to.iter_mut().for_each(|to| *to = *to / by);
        let column = |at: usize| self.columns[at] as usize * width;
        let pivot = |row: usize| wide(self.values[self.diagonal[row]]);
        if self.hermitian || !adjoint {
            // L, row by row.
            for row in 0..self.order() {
                let (before, own) = x.split_at_mut(row * width);
                for at in self.starts[row]..self.diagonal[row] {
                    let from = column(at);
                    take(&mut own[..width], wide(self.values[at]), &before[from..from + width]);
                }
            }
        } else {
            // Uᴴ, column by column.
            for row in 0..self.order() {
                let (own, after) = x.split_at_mut((row + 1) * width);
                let own = &mut own[row * width..];
                divide(own, pivot(row).conj());
                for at in self.diagonal[row] + 1..self.starts[row + 1] {
                    let to = column(at) - (row + 1) * width;
                    take(&mut after[to..to + width], wide(self.values[at]).conj(), own);
                }
            }
        }
        if self.hermitian {
            for (row, own) in x.chunks_exact_mut(width).enumerate() {
                divide(own, pivot(row));
            }
        }
        if self.hermitian || adjoint {
            // Lᴴ, column by column.
            for row in (0..self.order()).rev() {
                let (before, own) = x.split_at_mut(row * width);
                for at in self.starts[row]..self.diagonal[row] {
                    let to = column(at);
                    take(&mut before[to..to + width], wide(self.values[at]).conj(), &own[..width]);
                }
            }
        } else {
            // U, row by row.
            for row in (0..self.order()).rev() {
                let (own, after) = x.split_at_mut((row + 1) * width);
                let own = &mut own[row * width..];
                for at in self.diagonal[row] + 1..self.starts[row + 1] {
                    let from = column(at) - (row + 1) * width;
                    take(own, wide(self.values[at]), &after[from..from + width]);
                }
                divide(own, pivot(row));
            }
        }
    }
}
