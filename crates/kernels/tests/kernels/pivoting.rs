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
    (worst, pivots, records)
}

#[test]
fn pivots_and_what_is_left_make_the_matrix_again() {
    for kind in [PivotedKind::Hermitian, PivotedKind::Symmetric, PivotedKind::Unsymmetric] {
        for is_complex in [false, true] {
            for (side, width) in [(1, 1), (2, 2), (5, 3), (40, 40), (90, 70), (150, 130)] {
                let (worst, pivots, records) = difference(side, width, kind, is_complex, width);
                assert!(worst < 1e-8, "{kind:?} {is_complex} {side} {width}: {worst}");
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
        assert!(records.iter().all(|record| record.form != PivotForm::PERTURBED));
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
        assert_eq!(
            [records[0].form, records[1].form],
            [PivotForm::ONE, PivotForm::PERTURBED]
        );
        assert_eq!(front[3], 1e-8);
    }
}
