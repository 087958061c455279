//! Systems of linear inequalities over integers, and what they say of a sum of their unknowns.
//!
//! Unknowns are eliminated one by one (Fourier, Motzkin; Schrijver, Theory of linear and integer programming, 12.2), with constants
//! rounded to integers. Bounds may be wider than those of the integer points, never narrower.

use crate::cancel;

/// Rows beyond which a system is given up: nothing is known of it then.
const ROWS_MAX: usize = 2000;
/// Numbers beyond which rows are given up.
const NUMBER_MAX: i128 = 1 << 100;

/// `coefficients · unknowns + constant`, which is at least 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Inequality {
    coefficients: Vec<i128>,
    constant: i128,
}

/// The bounds that a system gives a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extremes {
    /// No integers solve the system.
    Infeasible,
    /// Its least and its largest value; nothing where there is no bound, or none was found.
    Between(Option<i128>, Option<i128>),
}

/// A conjunction of linear inequalities and equalities.
#[derive(Clone, Debug, Default)]
pub(super) struct Polyhedron {
    unknowns: usize,
    rows: Vec<Inequality>,
    equalities: Vec<Inequality>,
}

impl Polyhedron {
    pub fn of(unknowns: usize) -> Polyhedron {
        Polyhedron {
            unknowns,
            ..Polyhedron::default()
        }
    }

    /// The sum with these coefficients and this constant is at least 0.
    pub fn at_least_zero(&mut self, coefficients: Vec<i128>, constant: i128) {
        self.rows.push(Inequality { coefficients, constant });
    }

    /// The sum with these coefficients and this constant is 0.
    pub fn zero(&mut self, coefficients: Vec<i128>, constant: i128) {
        self.equalities.push(Inequality { coefficients, constant });
    }

    /// The least and the largest value of a sum of the unknowns.
    pub fn extremes(&self, of: &[i128]) -> Extremes {
        let mut system = self.clone();
        // One more unknown is the sum.
        for row in system.rows.iter_mut().chain(&mut system.equalities) {
            row.coefficients.push(0);
        }
        let mut sum = of.to_vec();
        sum.push(-1);
        system.zero(sum, 0);
        system.unknowns += 1;
        match system.eliminate_but_last() {
            Some(rows) => extremes_of_one(&rows, self.unknowns),
            None => Extremes::Between(None, None),
        }
    }

    /// Inequalities of the last unknown alone; nothing where the system grew too large.
    fn eliminate_but_last(mut self) -> Option<Vec<Inequality>> {
        let last = self.unknowns - 1;
        while let Some(mut equality) = self.equalities.pop() {
            if !equality.divide() {
                return Some(vec![equality.never()]);
            }
            // An unknown that can be told exactly, if there is one.
            let known = (0..last).filter(|&unknown| equality.coefficients[unknown] != 0);
            let Some(unknown) = known.min_by_key(|&unknown| equality.coefficients[unknown].abs()) else {
                self.rows.extend([equality.clone(), equality.negated()]);
                continue;
            };
            for row in self.rows.iter_mut().chain(&mut self.equalities) {
                if !row.substitute(&equality, unknown) {
                    return None;
                }
            }
        }
        for unknown in 0..last {
            cancel::check();
            self.eliminate(unknown)?;
        }
        Some(self.rows)
    }

    fn eliminate(&mut self, unknown: usize) -> Option<()> {
        let rows = std::mem::take(&mut self.rows);
        let (with, without): (Vec<Inequality>, Vec<Inequality>) =
            rows.into_iter().partition(|row| row.coefficients[unknown] != 0);
        self.rows = without;
        let (lower, upper): (Vec<Inequality>, Vec<Inequality>) =
            with.into_iter().partition(|row| row.coefficients[unknown] > 0);
        for low in &lower {
            for high in &upper {
                let (by, other) = (-high.coefficients[unknown], low.coefficients[unknown]);
                let mut row = low.combined(by, high, other)?;
                row.round();
                self.rows.push(row);
            }
        }
        self.rows.sort_unstable();
        // Of rows with the same coefficients the one with the least constant says most, which comes first.
        self.rows.dedup_by(|next, kept| next.coefficients == kept.coefficients);
        (self.rows.len() <= ROWS_MAX).then_some(())
    }
}

fn extremes_of_one(rows: &[Inequality], unknown: usize) -> Extremes {
    let (mut low, mut high): (Option<i128>, Option<i128>) = (None, None);
    for row in rows {
        let by = row.coefficients[unknown];
        if by == 0 && row.constant < 0 {
            return Extremes::Infeasible;
        }
        if by > 0 {
            let bound = -row.constant.div_euclid(by);
            low = Some(low.map_or(bound, |low| low.max(bound)));
        } else if by < 0 {
            let bound = row.constant.div_euclid(-by);
            high = Some(high.map_or(bound, |high| high.min(bound)));
        }
    }
    match (low, high) {
        (Some(low), Some(high)) if low > high => Extremes::Infeasible,
        _ => Extremes::Between(low, high),
    }
}

fn common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Inequality {
    fn divisor(&self) -> i128 {
        self.coefficients
            .iter()
            .fold(0, |divisor, &by| common_divisor(divisor, by))
    }

    /// Divides an inequality by what all coefficients share; the constant is rounded down, which integers allow.
    fn round(&mut self) {
        let divisor = self.divisor();
        if divisor > 1 {
            self.coefficients.iter_mut().for_each(|by| *by /= divisor);
            self.constant = self.constant.div_euclid(divisor);
        }
    }

    /// Divides an equality likewise; false where no integers solve it.
    fn divide(&mut self) -> bool {
        let divisor = self.divisor();
        if divisor == 0 {
            return self.constant == 0;
        }
        if self.constant % divisor != 0 {
            return false;
        }
        self.coefficients.iter_mut().for_each(|by| *by /= divisor);
        self.constant /= divisor;
        true
    }

    fn never(&self) -> Inequality {
        Inequality {
            coefficients: vec![0; self.coefficients.len()],
            constant: -1,
        }
    }

    fn negated(&self) -> Inequality {
        Inequality {
            coefficients: self.coefficients.iter().map(|by| -by).collect(),
            constant: -self.constant,
        }
    }

    /// `by` times this and `other_by` times the other; nothing where numbers grow too large.
    fn combined(&self, by: i128, other: &Inequality, other_by: i128) -> Option<Inequality> {
        let sum = |a: i128, b: i128| {
            let sum = a.checked_mul(by)?.checked_add(b.checked_mul(other_by)?)?;
            (sum.abs() < NUMBER_MAX).then_some(sum)
        };
        let pairs = self.coefficients.iter().zip(&other.coefficients);
        Some(Inequality {
            coefficients: pairs.map(|(&a, &b)| sum(a, b)).collect::<Option<_>>()?,
            constant: sum(self.constant, other.constant)?,
        })
    }

    /// Puts what an equality says of an unknown in its place; false where numbers grow too large.
    fn substitute(&mut self, equality: &Inequality, unknown: usize) -> bool {
        let (own, by) = (self.coefficients[unknown], equality.coefficients[unknown]);
        if own == 0 {
            return true;
        }
        // Times a positive number, so that an inequality stays what it is.
        match self.combined(by.abs(), equality, -own * by.signum()) {
            Some(mut row) => {
                let divisor = common_divisor(row.divisor(), row.constant);
                if divisor > 1 {
                    row.coefficients.iter_mut().for_each(|by| *by /= divisor);
                    row.constant /= divisor;
                }
                *self = row;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_a_triangle_are_its_corners() {
        let mut triangle = Polyhedron::of(2);
        triangle.at_least_zero(vec![1, 0], 0);
        triangle.at_least_zero(vec![0, 1], 0);
        triangle.at_least_zero(vec![-1, -1], 7);
        assert_eq!(triangle.extremes(&[1, 0]), Extremes::Between(Some(0), Some(7)));
        assert_eq!(triangle.extremes(&[1, -1]), Extremes::Between(Some(-7), Some(7)));
        triangle.zero(vec![1, -1], -9);
        assert_eq!(triangle.extremes(&[1, 0]), Extremes::Infeasible);
    }

    #[test]
    fn even_is_never_odd_and_open_ends_have_no_bound() {
        let mut parity = Polyhedron::of(2);
        parity.zero(vec![2, -2], 1);
        assert_eq!(parity.extremes(&[1, 0]), Extremes::Infeasible);
        let mut open = Polyhedron::of(1);
        open.at_least_zero(vec![2], -3);
        assert_eq!(open.extremes(&[1]), Extremes::Between(Some(2), None));
    }

    #[test]
    fn random_systems_have_no_point_beyond_their_extremes() {
        let mut state = 7u64;
        let mut next = |most: i128| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            i128::from(state >> 33) % (2 * most + 1) - most
        };
        for _ in 0..300 {
            let mut system = Polyhedron::of(3);
            let rows: Vec<(Vec<i128>, i128)> = (0..4).map(|_| ((0..3).map(|_| next(3)).collect(), next(6))).collect();
            for unknown in 0..3 {
                let unit = |by: i128| (0..3).map(|at| if at == unknown { by } else { 0 }).collect::<Vec<_>>();
                system.at_least_zero(unit(1), 4);
                system.at_least_zero(unit(-1), 4);
            }
            rows.iter()
                .for_each(|(by, constant)| system.at_least_zero(by.clone(), *constant));
            let of = [next(2), next(2), next(2)];
            let extremes = system.extremes(&of);
            for x in -4..=4i128 {
                for y in -4..=4i128 {
                    for z in -4..=4i128 {
                        let is_in = rows
                            .iter()
                            .all(|(by, constant)| by[0] * x + by[1] * y + by[2] * z + constant >= 0);
                        if is_in {
                            let value = of[0] * x + of[1] * y + of[2] * z;
                            let Extremes::Between(Some(low), Some(high)) = extremes else {
                                panic!("{extremes:?}")
                            };
                            assert!(low <= value && value <= high);
                        }
                    }
                }
            }
        }
    }
}
