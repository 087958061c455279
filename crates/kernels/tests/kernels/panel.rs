//! Work on tiles of factorizations against sums written out, for real and complex tiles of all shapes.

use outcore_dtype::{Complex, DType};
use outcore_kernels::{BadPivot, Panel, RightHandSides};

type Z = Complex<f64>;

const SIZES: [usize; 6] = [0, 1, 2, 7, 33, 70];

/// A tile of numbers, row by row.
struct Tile {
    panel: Panel,
    width: usize,
    numbers: Vec<Z>,
}

fn tile(panel: Panel, height: usize, width: usize, seed: f64) -> Tile {
    let wave = |at: usize, f: f64| (at as f64 * f + seed).sin();
    let imaginary = |at| {
        if panel.dtype() == DType::C128 {
            wave(at, 2.3)
        } else {
            0.0
        }
    };
    Tile {
        panel,
        width,
        numbers: (0..height * width)
            .map(|at| Z::new(wave(at, 0.9), imaginary(at)))
            .collect(),
    }
}

/// Large on the diagonal, so that solves are well conditioned; what is above it must not be read.
fn lower(panel: Panel, n: usize, seed: f64) -> Tile {
    let mut tile = tile(panel, n, n, seed);
    for row in 0..n {
        tile.numbers[row * n + row] = Z::new(n as f64 + 2.0, 0.0);
        tile.numbers[row * n + row + 1..(row + 1) * n].fill(Z::new(f64::NAN, 0.0));
    }
    tile
}

impl Tile {
    fn at(&self, row: usize, column: usize) -> Z {
        self.numbers[row * self.width + column]
    }

    /// As a lower triangle.
    fn lower_at(&self, row: usize, column: usize) -> Z {
        if column > row {
            Z::ZERO
        } else {
            self.at(row, column)
        }
    }

    /// Words that are aligned for complex numbers, and the bytes in use.
    fn stored(&self) -> (Vec<Z>, usize) {
        match self.panel.dtype() {
            DType::C128 => (self.numbers.clone(), self.numbers.len() * 16),
            _ => {
                let mut words = vec![Z::ZERO; self.numbers.len().div_ceil(2)];
                let reals: &mut [f64] = bytemuck::cast_slice_mut(&mut words);
                reals.iter_mut().zip(&self.numbers).for_each(|(to, from)| *to = from.re);
                (words, self.numbers.len() * 8)
            }
        }
    }

    fn check(&self, words: &[Z], expected: impl Fn(usize, usize) -> Option<Z>, what: &str) {
        let reals: &[f64] = bytemuck::cast_slice(words);
        for (at, before) in self.numbers.iter().enumerate() {
            let found = match self.panel.dtype() {
                DType::C128 => words[at],
                _ => Z::new(reals[at], 0.0),
            };
            let wanted = expected(at / self.width, at % self.width).unwrap_or(*before);
            let error = (found - wanted).norm();
            assert!(error < 1e-10 * (1.0 + wanted.norm()), "{what}: {found} is not {wanted}");
        }
    }
}

/// Does work on bytes of a tile with those of others.
fn worked(on: &Tile, with: &[&Tile], work: impl FnOnce(&[&[u8]], &mut [u8])) -> Vec<Z> {
    let stored: Vec<_> = with.iter().map(|tile| tile.stored()).collect();
    let inputs: Vec<&[u8]> = stored
        .iter()
        .map(|(words, bytes)| &bytemuck::cast_slice::<Z, u8>(words)[..*bytes])
        .collect();
    let (mut words, bytes) = on.stored();
    work(&inputs, &mut bytemuck::cast_slice_mut::<Z, u8>(&mut words)[..bytes]);
    words
}

fn each(mut test: impl FnMut(Panel, [usize; 3])) {
    for dtype in [DType::F64, DType::C128] {
        let panel = Panel::new(dtype).expect("a type of panels");
        for m in SIZES {
            for n in SIZES {
                for k in [0, 1, 5, 40] {
                    test(panel, [m, n, k]);
                }
            }
        }
    }
}

#[test]
fn products_are_subtracted() {
    each(|panel, [m, n, k]| {
        let (a, b, c) = (tile(panel, m, k, 0.1), tile(panel, n, k, 0.7), tile(panel, m, n, 1.9));
        let found = worked(&c, &[&a, &b], |of, c| {
            panel.subtract_product([m, n, k], of[0], of[1], c)
        });
        let sum = |i, j| (0..k).map(|p| a.at(i, p) * b.at(j, p).conj()).sum::<Z>();
        c.check(&found, |i, j| Some(c.at(i, j) - sum(i, j)), &format!("{m} {n} {k}"));
    });
}

#[test]
fn squares_are_subtracted_below_the_diagonal_alone() {
    each(|panel, [_, n, k]| {
        let (a, c) = (tile(panel, n, k, 0.3), tile(panel, n, n, 1.1));
        let found = worked(&c, &[&a], |of, c| panel.subtract_square([n, k], of[0], c));
        let sum = |i, j| (0..k).map(|p| a.at(i, p) * a.at(j, p).conj()).sum::<Z>();
        c.check(
            &found,
            |i, j| (j <= i).then(|| c.at(i, j) - sum(i, j)),
            &format!("{n} {k}"),
        );
    });
}

#[test]
fn solves_from_the_right_are_undone_by_products() {
    each(|panel, [m, n, _]| {
        let (l, x) = (lower(panel, n, 0.5), tile(panel, m, n, 1.3));
        let mut b = tile(panel, m, n, 0.0);
        let product = |i: usize, j: usize| (0..=j).map(|p| x.at(i, p) * l.at(j, p).conj()).sum::<Z>();
        (0..m * n).for_each(|at| b.numbers[at] = product(at / n, at % n));
        let found = worked(&b, &[&l], |of, b| panel.solve_right([m, n], of[0], b));
        b.check(&found, |i, j| Some(x.at(i, j)), &format!("{m} {n}"));
    });
}

#[test]
fn products_and_solves_from_the_left_undo_each_other() {
    each(|panel, [_, n, k]| {
        let (l, b) = (lower(panel, n, 0.2), tile(panel, n, k, 2.1));
        let mut workspace = vec![0; panel.product_bytes([n, k])];
        for adjoint in [false, true] {
            let mut multiply =
                |of: &[&[u8]], b: &mut [u8]| panel.multiply_left([n, k], of[0], adjoint, b, &mut workspace);
            let element = |i, p| {
                if adjoint {
                    l.lower_at(p, i).conj()
                } else {
                    l.lower_at(i, p)
                }
            };
            let sum = |i, j| (0..n).map(|p| element(i, p) * b.at(p, j)).sum::<Z>();
            let found = worked(&b, &[&l], &mut multiply);
            b.check(&found, |i, j| Some(sum(i, j)), &format!("{n} {k} {adjoint}"));
            let back = worked(&b, &[&l], |of, b| {
                multiply(of, b);
                panel.solve_left([n, k], of[0], adjoint, b);
            });
            b.check(&back, |_, _| None, &format!("{n} {k} {adjoint}: back"));
        }
    });
}

#[test]
fn factors_of_a_diagonal_tile_multiply_to_it() {
    for dtype in [DType::F64, DType::C128] {
        let panel = Panel::new(dtype).expect("a type of panels");
        for n in SIZES {
            let l = lower(panel, n, 0.4);
            let mut a = tile(panel, n, n, 0.0);
            let product = |i, j| (0..n).map(|p| l.lower_at(i, p) * l.lower_at(j, p).conj()).sum::<Z>();
            (0..n * n).for_each(|at| {
                let (row, column) = (at / n, at % n);
                a.numbers[at] = if column > row {
                    Z::new(f64::NAN, 0.0)
                } else {
                    product(row, column)
                };
            });
            let mut workspace = vec![0; panel.factor_bytes(n)];
            let found = worked(&a, &[], |_, a| {
                panel.factorize(n, a, &mut workspace).expect("positive definite")
            });
            a.check(&found, |i, j| Some(l.lower_at(i, j)), &format!("{n}"));
        }
        let mut indefinite = tile(panel, 3, 3, 0.0);
        (0..3).for_each(|at| indefinite.numbers[at * 4] = Z::new(-1.0, 0.0));
        let mut workspace = vec![0; panel.factor_bytes(3)];
        worked(&indefinite, &[], |_, a| {
            let refused = panel.factorize(3, a, &mut workspace);
            assert!(matches!(refused, Err(BadPivot(_))));
        });
    }
    assert_eq!(Panel::new(DType::I64), None);
}

/// The number at a place of words, as the elements of a panel lie in them.
fn number(panel: Panel, words: &[Z], at: usize) -> Z {
    match panel.dtype() {
        DType::C128 => words[at],
        _ => Z::new(bytemuck::cast_slice::<Z, f64>(words)[at], 0.0),
    }
}

#[test]
fn fronts_keep_columns_of_the_factor_and_the_contribution_block() {
    for dtype in [DType::F64, DType::C128] {
        let panel = Panel::new(dtype).expect("a type of panels");
        for (side, pivots) in [(1, 1), (5, 2), (9, 4), (9, 9), (40, 5), (70, 33), (70, 70), (33, 0)] {
            let l = lower(panel, side, 0.3);
            let product = |row, column, to| {
                let terms = (0..to).map(|at| l.lower_at(row, at) * l.lower_at(column, at).conj());
                terms.sum::<Z>()
            };
            // Column by column, so a row of the tile is a column of the front.
            let mut front = tile(panel, side, side, 0.0);
            for at in 0..side * side {
                let (column, row) = (at / side, at % side);
                front.numbers[at] = if row < column {
                    Z::ZERO
                } else {
                    product(row, column, side)
                };
            }
            let mut workspace = vec![0; panel.elimination_bytes(pivots)];
            let found = worked(&front, &[], |_, front| {
                panel
                    .eliminate([side, pivots], front, &mut workspace)
                    .expect("positive definite");
            });
            for column in 0..side {
                for row in column..side {
                    let wanted = match column < pivots {
                        true => l.lower_at(row, column),
                        false => product(row, column, side) - product(row, column, pivots),
                    };
                    let found = number(panel, &found, column * side + row);
                    let error = (found - wanted).norm();
                    assert!(
                        error < 1e-9 * (1.0 + wanted.norm()),
                        "{side} {pivots}: {found} is not {wanted}"
                    );
                }
            }
        }
        for (side, pivots, bad) in [(4, 3, 2), (30, 20, 17)] {
            let mut front = tile(panel, side, side, 0.0);
            front.numbers.fill(Z::ZERO);
            (0..side).for_each(|at| front.numbers[at * side + at] = Z::new(1.0, 0.0));
            front.numbers[bad * side + bad] = Z::new(-1.0, 0.0);
            let mut workspace = vec![0; panel.elimination_bytes(pivots)];
            worked(&front, &[], |_, front| {
                let refused = panel.eliminate([side, pivots], front, &mut workspace);
                assert_eq!(refused, Err(BadPivot(bad)));
            });
        }
    }
}

#[test]
fn right_hand_sides_are_solved_with_columns_and_with_tiles() {
    for dtype in [DType::F64, DType::C128] {
        let panel = Panel::new(dtype).expect("a type of panels");
        let vectors = RightHandSides::new(panel);
        for (pivots, below, width) in [(1, 0, 1), (3, 2, 1), (7, 5, 3), (33, 20, 4)] {
            let side = pivots + below;
            let l = lower(panel, side, 0.5);
            let b = tile(panel, side, width, 1.7);
            // Columns of L from the diagonal down; rows below the pivots lie behind a gap.
            let mut columns = tile(panel, 0, 1, 0.0);
            for column in 0..pivots {
                columns.numbers.extend((column..side).map(|row| l.at(row, column)));
            }
            let targets: Vec<usize> = (pivots..side).map(|row| row + 2).collect();
            let mut rows = tile(panel, side + 2, width, 0.0);
            for row in 0..side {
                let place = if row < pivots { row } else { row + 2 };
                (0..width).for_each(|at| rows.numbers[place * width + at] = b.at(row, at));
            }
            for adjoint in [false, true] {
                let found = worked(&rows, &[&columns], |of, rows| {
                    let sizes = [pivots, width, 0];
                    match adjoint {
                        false => vectors.forward(sizes, of[0], &targets, rows),
                        true => vectors.backward(sizes, of[0], &targets, rows),
                    }
                });
                let x = |row: usize, at: usize| {
                    let place = if row < pivots { row } else { row + 2 };
                    number(panel, &found, place * width + at)
                };
                for at in 0..width {
                    for row in 0..side {
                        // L X = B at the pivots, and below them B less the products; or Lᴴ X = B with X there.
                        let own = |column: usize| match adjoint {
                            false if row < pivots || column < pivots => l.lower_at(row, column),
                            true if row < pivots => l.lower_at(column, row).conj(),
                            _ => Z::new(f64::from(u8::from(row == column)), 0.0),
                        };
                        let product: Z = (0..side).map(|column| own(column) * x(column, at)).sum();
                        let error = (product - b.at(row, at)).norm();
                        assert!(
                            error < 1e-9 * (1.0 + product.norm()),
                            "{pivots} {below} {width} {adjoint} {row}"
                        );
                    }
                }
            }
        }
        for [m, k, n] in [[3, 1, 4], [20, 5, 33]] {
            let (l, x, y) = (tile(panel, m, n, 0.1), tile(panel, n, k, 0.6), tile(panel, m, k, 2.2));
            let found = worked(&y, &[&l, &x], |of, y| {
                vectors.subtract([m, k, n], of[0], false, of[1], y)
            });
            let sum = |row, at| (0..n).map(|inner| l.at(row, inner) * x.at(inner, at)).sum::<Z>();
            y.check(&found, |row, at| Some(y.at(row, at) - sum(row, at)), "a product");
            let back = worked(&x, &[&l, &y], |of, x| {
                vectors.subtract([n, k, m], of[0], true, of[1], x)
            });
            let sum = |row, at| (0..m).map(|inner| l.at(inner, row).conj() * y.at(inner, at)).sum::<Z>();
            x.check(
                &back,
                |row, at| Some(x.at(row, at) - sum(row, at)),
                "an adjoint product",
            );
        }
    }
}
