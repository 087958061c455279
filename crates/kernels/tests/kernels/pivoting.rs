//! Elimination with threshold pivoting: columns of L, D, U and what is left make the matrix again.

use outcore_dtype::{Complex, DType};
use outcore_kernels::{CandidateSides, Panel, PivotForm, PivotRecord, PivotRule, PivotedKind};

type Number = Complex<f64>;

/// Numbers without a pattern.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
}

fn rule(kind: PivotedKind) -> PivotRule {
    PivotRule {
        kind,
        threshold: 0.01,
        zero: 1e-15,
        perturbation: 1e-8,
    }
}

/// A front, column by column; of each matrix a share of the diagonal is 0.
fn front(side: usize, kind: PivotedKind, is_complex: bool, seed: u64) -> Vec<Number> {
    let mut numbers = Numbers(seed);
    let mut front = vec![Number::default(); side * side];
    for column in 0..side {
        for row in 0..side {
            let value = Number::new(numbers.next(), if is_complex { numbers.next() } else { 0.0 });
            front[column * side + row] = value;
        }
    }
    for column in 0..side {
        for row in 0..=column {
            let value = front[row * side + column];
            match kind {
                PivotedKind::Unsymmetric => {}
                PivotedKind::Hermitian => front[column * side + row] = value.conj(),
                PivotedKind::Symmetric => front[column * side + row] = value,
            }
            if row == column {
                let place = &mut front[column * side + row];
                if kind == PivotedKind::Hermitian {
                    place.im = 0.0;
                }
                if column % 3 != 0 {
                    *place = Number::default();
                }
            }
        }
    }
    front
}

fn as_bytes(values: &[Number], is_complex: bool) -> Vec<u8> {
    match is_complex {
        true => bytemuck::cast_slice(values).to_vec(),
        false => values.iter().flat_map(|value| value.re.to_ne_bytes()).collect(),
    }
}

fn of_bytes(bytes: &[u8], is_complex: bool) -> Vec<Number> {
    match is_complex {
        true => bytemuck::cast_slice(bytes).to_vec(),
        false => bytemuck::cast_slice::<u8, f64>(bytes)
            .iter()
            .map(|re| Number::new(*re, 0.0))
            .collect(),
    }
}

/// Eliminates candidates of a front, and the largest difference of the front and what its parts make.
fn difference(
    side: usize,
    width: usize,
    kind: PivotedKind,
    is_complex: bool,
    most_left: usize,
) -> (f64, usize, Vec<PivotRecord>) {
    let before = front(side, kind, is_complex, (side * 31 + width) as u64);
    let panel = Panel::new(if is_complex { DType::C128 } else { DType::F64 }).unwrap();
    let mut bytes = as_bytes(&before, is_complex);
    let none = PivotRecord {
        column: 0,
        row: 0,
        form: PivotForm::LEFT,
    };
    let mut records = vec![none; width];
    let sides = CandidateSides {
        height: side,
        width,
        lead: side,
    };
    let item = bytes.len() / (side * side);
    let pivots = panel.eliminate_candidates(
        sides,
        rule(kind),
        most_left,
        &mut bytes[..width * side * item],
        &mut records,
    );
    let mut workspace = vec![0; panel.rest_bytes(side)];
    panel.subtract_from_rest(side, pivots, kind, &records, &mut bytes, &mut workspace);
    let after = of_bytes(&bytes, is_complex);
    (remade(&before, &after, width, kind, pivots, &records), pivots, records)
}

/// The largest difference of a front and what its parts make.
fn remade(
    before: &[Number],
    after: &[Number],
    width: usize,
    kind: PivotedKind,
    pivots: usize,
    records: &[PivotRecord],
) -> f64 {
    let side = before.len().isqrt();
    assert_eq!(records.len(), width);
    let at = |row: usize, column: usize| after[column * side + row];
    let is_symmetric = kind != PivotedKind::Unsymmetric;
    let mirrored = |value: Number| {
        if kind == PivotedKind::Hermitian {
            value.conj()
        } else {
            value
        }
    };
    let lower = |row: usize, column: usize| match (row, column) {
        (row, column) if row == column => Number::new(1.0, 0.0),
        (row, column) if row < column => Number::default(),
        (row, column) if is_symmetric && records[column].form == PivotForm::FIRST && row == column + 1 => {
            Number::default()
        }
        _ => at(row, column),
    };
    // D Lᴴ, or U.
    let upper = |row: usize, column: usize| {
        if !is_symmetric {
            return if row <= column {
                at(row, column)
            } else {
                Number::default()
            };
        }
        let below = |row: usize| at(row + 1, row);
        let l = |column: usize, row: usize| mirrored(lower(column, row));
        let own = at(row, row) * l(column, row);
        match records[row].form {
            PivotForm::FIRST => own + mirrored(below(row)) * l(column, row + 1),
            PivotForm::SECOND => own + below(row - 1) * l(column, row - 1),
            _ => own,
        }
    };
    let origin = |place: usize, is_row: bool| match records.get(place) {
        Some(record) if is_row => record.row as usize,
        Some(record) => record.column as usize,
        None => place,
    };
    let mut worst: f64 = 0.0;
    for column in 0..side {
        for row in 0..side {
            if is_symmetric && row < column {
                continue;
            }
            let rest = row >= pivots && column >= pivots;
            let mut value = if rest { at(row, column) } else { Number::default() };
            for pivot in 0..pivots {
                value += lower(row, pivot) * upper(pivot, column);
            }
            let expected = before[origin(column, false) * side + origin(row, true)];
            worst = worst.max((value - expected).norm());
        }
    }
    worst
}

#[test]
fn pivots_and_what_is_left_make_the_matrix_again() {
    for kind in [PivotedKind::Hermitian, PivotedKind::Symmetric, PivotedKind::Unsymmetric] {
        for is_complex in [false, true] {
            for (side, width) in [(1, 1), (2, 2), (5, 3), (40, 40), (90, 70), (150, 130), (400, 300)] {
                let (worst, pivots, records) = difference(side, width, kind, is_complex, width);
                assert!(worst < 1e-11, "{kind:?} {is_complex} {side} {width}: {worst}");
                assert!(pivots + 3 >= width || side < 10, "{kind:?} {side} {width}: {pivots}");
                let left = records.iter().filter(|record| record.form.is_left()).count();
                assert_eq!(left, width - pivots);
            }
        }
    }
}

#[test]
fn no_more_are_left_than_may_be() {
    for kind in [PivotedKind::Hermitian, PivotedKind::Symmetric, PivotedKind::Unsymmetric] {
        let (worst, pivots, records) = difference(60, 60, kind, false, 0);
        assert!(worst < 1e-9, "{worst}");
        assert_eq!(pivots, 60);
        assert!(records
            .iter()
            .all(|record| ![PivotForm::PERTURBED, PivotForm::ZERO].contains(&record.form)));
    }
}

#[test]
fn candidates_that_fail_against_rows_below_are_left() {
    // A column of 1 on the diagonal and 10³ below is no pivot by a threshold of 0.01, and one of 10 is.
    for kind in [PivotedKind::Symmetric, PivotedKind::Unsymmetric] {
        let mut front = vec![0.0f64; 16];
        for (row, value) in [(0, 1.0), (3, 1e3)] {
            front[row] = value;
            front[row * 4] = value;
        }
        front[5] = 10.0;
        (front[7], front[13]) = (1e3, 1e3);
        front[10] = 1.0;
        let panel = Panel::new(DType::F64).unwrap();
        let none = PivotRecord {
            column: 0,
            row: 0,
            form: PivotForm::LEFT,
        };
        let mut records = [none; 3];
        let sides = CandidateSides {
            height: 4,
            width: 3,
            lead: 4,
        };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut front);
        let pivots = panel.eliminate_candidates(sides, rule(kind), 3, &mut bytes[..96], &mut records);
        assert_eq!(pivots, 2);
        let mut taken: Vec<u32> = records[..2].iter().map(|record| record.column).collect();
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        assert_eq!(records[2].column, 0);
    }
}

#[test]
fn where_there_is_no_pivot_one_is_taken_that_is_said() {
    let panel = Panel::new(DType::F64).unwrap();
    let none = PivotRecord {
        column: 0,
        row: 0,
        form: PivotForm::LEFT,
    };
    for kind in [PivotedKind::Symmetric, PivotedKind::Unsymmetric] {
        let mut front = vec![1.0f64, 1.0, 1.0, 1.0];
        let mut records = [none; 2];
        let sides = CandidateSides {
            height: 2,
            width: 2,
            lead: 2,
        };
        let pivots =
            panel.eliminate_candidates(sides, rule(kind), 0, bytemuck::cast_slice_mut(&mut front), &mut records);
        assert_eq!(pivots, 2);
        assert_eq!([records[0].form, records[1].form], [PivotForm::ONE, PivotForm::ZERO]);
        assert_eq!(front[3], 1e-8);
    }
}

#[test]
fn tiles_lose_what_pivots_of_a_block_give() {
    let (n, m, k) = (9, 7, 6);
    let mut numbers = Numbers(5);
    let mut drawn = |count: usize, is_complex: bool| -> Vec<Number> {
        let number = |numbers: &mut Numbers| Number::new(numbers.next(), if is_complex { numbers.next() } else { 0.0 });
        (0..count).map(|_| number(&mut numbers)).collect()
    };
    for kind in [PivotedKind::Hermitian, PivotedKind::Symmetric] {
        for is_complex in [false, true] {
            let panel = Panel::new(if is_complex { DType::C128 } else { DType::F64 }).unwrap();
            let record = |form| PivotRecord {
                column: 0,
                row: 0,
                form,
            };
            let (one, first, second) = (PivotForm::ONE, PivotForm::FIRST, PivotForm::SECOND);
            let records = [one, first, second, one, PivotForm::PERTURBED, PivotForm::LEFT].map(record);
            let mut triangle = drawn(k * (k + 1) / 2, is_complex);
            if kind == PivotedKind::Hermitian {
                (0..k).for_each(|row| triangle[row * (row + 1) / 2 + row].im = 0.0);
            }
            let [a, b] = [drawn(m * k, is_complex), drawn(n * k, is_complex)];
            let d = |row: usize, column: usize| {
                let below = triangle[2 * 3 / 2 + 1];
                match (row, column) {
                    (5, _) | (_, 5) => Number::default(),
                    (row, column) if row == column => triangle[row * (row + 1) / 2 + row],
                    (2, 1) => below,
                    (1, 2) if kind == PivotedKind::Hermitian => below.conj(),
                    (1, 2) => below,
                    _ => Number::default(),
                }
            };
            let turned = |value: Number| {
                if kind == PivotedKind::Hermitian {
                    value.conj()
                } else {
                    value
                }
            };
            let product = |x: &[Number], row: usize, column: usize| -> Number {
                let all = (0..k).flat_map(|p| (0..k).map(move |q| (p, q)));
                all.map(|(p, q)| x[row * k + p] * d(p, q) * turned(b[column * k + q]))
                    .sum()
            };
            let item = if is_complex { 16 } else { 8 };
            let mut w = vec![0; n * k * item];
            let triangle_bytes = as_bytes(&triangle, is_complex);
            panel.times_pivots(
                [n, k],
                kind,
                &as_bytes(&b, is_complex),
                &triangle_bytes,
                &records,
                &mut w,
            );
            for is_square in [false, true] {
                let (x, rows) = if is_square { (&b, n) } else { (&a, m) };
                let before = drawn(rows * n, is_complex);
                let mut c = as_bytes(&before, is_complex);
                panel.subtract_scaled([rows, n, k], kind, is_square, [&as_bytes(x, is_complex), &w], &mut c);
                let after = of_bytes(&c, is_complex);
                for row in 0..rows {
                    for column in 0..n {
                        if is_square && column > row {
                            continue;
                        }
                        let at = row * n + column;
                        let difference = after[at] - (before[at] - product(x, row, column));
                        assert!(
                            difference.norm() < 1e-12,
                            "{kind:?} {is_complex} {is_square} {row} {column}"
                        );
                    }
                }
            }
        }
    }
}
