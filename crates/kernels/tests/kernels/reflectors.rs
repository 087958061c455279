//! QR of a column of tiles: reflectors and the triangle make the matrix again, and are orthonormal.

use outcore_dtype::{Complex, DType};
use outcore_kernels::{Panel, Reflectors, TileLayout};

type Number = Complex<f64>;

/// Numbers without a pattern; each fifth column of `with_zeros` is zero.
fn tile([height, width]: [usize; 2], seed: usize, is_complex: bool, with_zeros: bool) -> Vec<Number> {
    let number = |at: usize| ((at * at) as f64 * 0.7 + (at + seed) as f64 * 1.3).sin();
    let of = |at: usize| match with_zeros && (at / height) % 5 == 2 {
        true => Number::default(),
        false => Number::new(number(at), if is_complex { number(at + 7) } else { 0.0 }),
    };
    (0..height * width).map(of).collect()
}

fn bytes(dtype: DType, numbers: &[Number]) -> Vec<u8> {
    match dtype {
        DType::F64 => numbers.iter().flat_map(|number| number.re.to_ne_bytes()).collect(),
        _ => numbers
            .iter()
            .flat_map(|number| [number.re, number.im])
            .flat_map(f64::to_ne_bytes)
            .collect(),
    }
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<Number> {
    let parts: Vec<f64> = bytes
        .chunks_exact(8)
        .map(|part| f64::from_ne_bytes(part.try_into().unwrap()))
        .collect();
    match dtype {
        DType::F64 => parts.iter().map(|&re| Number::new(re, 0.0)).collect(),
        _ => parts
            .chunks_exact(2)
            .map(|parts| Number::new(parts[0], parts[1]))
            .collect(),
    }
}

struct Column {
    width: usize,
    heights: Vec<usize>,
    reflectors: Vec<[Vec<u8>; 2]>,
    r: Vec<u8>,
}

fn factorized(dtype: DType, width: usize, heights: &[usize], with_zeros: bool) -> (Vec<Vec<Number>>, Column) {
    let work = Reflectors::new(Panel::new(dtype).unwrap());
    let mut workspace = vec![0; work.workspace_bytes(width)];
    let is_complex = dtype == DType::C128;
    let tiles: Vec<Vec<Number>> = heights
        .iter()
        .enumerate()
        .map(|(seed, &height)| tile([height, width], seed, is_complex, with_zeros))
        .collect();
    let mut column = Column {
        width,
        heights: heights.to_vec(),
        reflectors: vec![],
        r: vec![],
    };
    for (at, (numbers, &height)) in tiles.iter().zip(heights).enumerate() {
        let count = if at == 0 { height.min(width) } else { width };
        let mut a = bytes(dtype, numbers);
        let mut t = vec![0; Reflectors::triangle_rows(count) * count * dtype.size()];
        if at == 0 {
            column.r = vec![0; count * width * dtype.size()];
            work.factorize([height, width], &mut a, &mut column.r, &mut t, &mut workspace);
        } else {
            work.factorize_below([height, width], &mut column.r, &mut a, &mut t, &mut workspace);
        }
        column.reflectors.push([a, t]);
    }
    (tiles, column)
}

/// The tiles, turned.
fn turned(dtype: DType, of: &Column, tiles: &mut [Vec<u8>], columns: usize, adjoint: bool, layout: TileLayout) {
    let work = Reflectors::new(Panel::new(dtype).unwrap());
    let mut workspace = vec![0; work.workspace_bytes(columns)];
    let mut step = |at: usize| {
        let [v, t] = &of.reflectors[at];
        let of = ([of.heights[at], of.width], &v[..], &t[..]);
        let (first, rest) = tiles.split_first_mut().unwrap();
        match at {
            0 => work.apply(of, adjoint, (first, layout), columns, &mut workspace),
            _ => work.apply_below(
                of,
                adjoint,
                ([first, &mut rest[at - 1]], layout),
                columns,
                &mut workspace,
            ),
        }
    };
    match adjoint {
        true => (0..of.heights.len()).for_each(&mut step),
        false => (0..of.heights.len()).rev().for_each(&mut step),
    }
}

#[test]
fn reflectors_and_the_triangle_make_the_matrix_again() {
    for dtype in [DType::F64, DType::C128] {
        for (width, heights) in [
            (1, vec![1, 1]),
            (3, vec![5, 2]),
            (8, vec![8, 8, 3]),
            (70, vec![90, 70, 1]),
            (130, vec![130, 40]),
            (9, vec![4]),
        ] {
            for with_zeros in [false, true] {
                let (tiles, column) = factorized(dtype, width, &heights, with_zeros);
                let count = heights[0].min(width);
                let r = numbers(dtype, &column.r);
                for layout in [TileLayout::Rows, TileLayout::Columns] {
                    // Q [R; 0], and the lengths of columns that are turned.
                    let mut product: Vec<Vec<u8>> = heights
                        .iter()
                        .map(|height| vec![0; height * width * dtype.size()])
                        .collect();
                    let mut first = vec![Number::default(); heights[0] * width];
                    let place = |row: usize, column: usize, height: usize| match layout {
                        TileLayout::Rows => row * width + column,
                        TileLayout::Columns => column * height + row,
                    };
                    for at in 0..count {
                        for other in 0..width {
                            assert!(at <= other || r[other * count + at] == Number::default());
                            first[place(at, other, heights[0])] = r[other * count + at];
                        }
                    }
                    product[0] = bytes(dtype, &first);
                    turned(dtype, &column, &mut product, width, false, layout);
                    for ((tile, product), &height) in tiles.iter().zip(&product).zip(&heights) {
                        let product = numbers(dtype, product);
                        for row in 0..height {
                            for other in 0..width {
                                let difference = product[place(row, other, height)] - tile[other * height + row];
                                assert!(difference.norm() < 1e-12, "{width} {heights:?} {row} {other}");
                            }
                        }
                    }
                    let before = product.clone();
                    turned(dtype, &column, &mut product, width, true, layout);
                    turned(dtype, &column, &mut product, width, false, layout);
                    for (before, after) in before.iter().zip(&product) {
                        let pairs = numbers(dtype, before).into_iter().zip(numbers(dtype, after));
                        assert!(pairs.into_iter().all(|(one, other)| (one - other).norm() < 1e-12));
                    }
                }
            }
        }
    }
}
