//! Any bytes as a file of a sparse matrix, or of a factor: an answer or an error, never a panic or a large allocation. What passes for tile
//! rows is looked at entry by entry and multiplied, under whatever checksum.
#![no_main]

use outcore_coding::tiles::{check_tile_row, TileRow};
use outcore_sparse::{multiply_tile, product_kernel, transposed_kernel, Semiring};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = outcore_store::parse_sparse(bytes);
    let _ = outcore_store::parse_factor(bytes);
    const SIDE: usize = 64;
    let mut aligned = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut aligned)[..bytes.len()].copy_from_slice(bytes);
    let bytes = &bytemuck::cast_slice(&aligned)[..bytes.len()];
    for valued in [false, true] {
        let item = if valued { 8 } else { 0 };
        let Ok(row) = TileRow::new(bytes, item) else { continue };
        for tile in row.tiles().map_while(Result::ok) {
            let _ = tile.for_each(SIDE, SIDE, |row, column| assert!(row < 64 && column < 64));
        }
        if check_tile_row(bytes, item, SIDE as u64, SIDE as u64, u64::MAX).is_err() {
            continue;
        }
        for tile in row.tiles() {
            for kernel in [product_kernel, transposed_kernel] {
                let kernel = kernel(Semiring::PlusTimes, outcore_dtype::DType::F64, valued).expect("float64");
                let (x, mut y) = ([1.0; SIDE], [0.0; SIDE]);
                let (x, y) = (bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y));
                multiply_tile(kernel, tile.expect("checked"), 1, x, y).expect("checked");
            }
        }
    }
});
