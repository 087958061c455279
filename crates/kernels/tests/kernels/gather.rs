//! RowsInBlocks by their positions, out of blocks.

use outcore_kernels::{find_outside, gather_rows, positions_between, RowsInBlocks};

#[test]
fn rows_come_from_the_blocks_they_are_in() {
    for row_bytes in [1usize, 2, 3, 8, 24] {
        let data: Vec<u8> = (0..7 * row_bytes).map(|byte| byte as u8).collect();
        let blocks = [
            &data[..3 * row_bytes],
            &data[3 * row_bytes..6 * row_bytes],
            &data[6 * row_bytes..],
        ];
        let positions: [i64; 5] = [6, 0, 3, 99, 2];
        let mut target = vec![255; 5 * row_bytes];
        let rows = RowsInBlocks {
            row_bytes,
            per_block: 3,
            first: 0,
            blocks: &blocks,
        };
        gather_rows(&rows, bytemuck::cast_slice(&positions), &mut target);
        for (place, position) in target.chunks(row_bytes).zip(positions) {
            match data.get(position as usize * row_bytes..(position as usize + 1) * row_bytes) {
                Some(row) => assert_eq!(place, row),
                None => assert!(place.iter().all(|byte| *byte == 255)),
            }
        }
    }
}

#[test]
fn positions_outside_are_found() {
    let positions: [i64; 3] = [0, 4, -1];
    assert_eq!(find_outside(5, bytemuck::cast_slice(&positions)), Some(-1));
    assert_eq!(find_outside(4, bytemuck::cast_slice(&positions)), Some(4));
    assert_eq!(find_outside(5, bytemuck::cast_slice(&positions[..2])), None);
    assert_eq!(positions_between(bytemuck::cast_slice(&positions[..2]), 1, 9), 1..2);
}
