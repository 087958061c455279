//! Tile shapes. They follow from shapes, element types and how sources are stored; nothing else may enter here,
//! or results would change with the machine (docs/placement.md, rule 1).

use outcore_dtype::DType;
use outcore_store::Layout;

use super::Node;

/// Bytes of a tile that is a run of whole rows.
pub const PANEL_BYTES: u64 = 4 << 20;
/// Bytes of a square tile, and the most that an inherited tile may have before it is cut down.
pub const SQUARE_BYTES: u64 = 8 << 20;
/// A row shorter than this is kept whole in a tile of a row-major file.
const WHOLE_ROW_BYTES: u64 = 64 << 10;
/// The shortest run read from a row-major file whose rows are longer than that.
const ROW_RUN_BYTES: u64 = 32 << 10;
/// The runs of a row-major file in wide tiles, and the rows of one: products need little of the inner dimension at a time, and
/// compute for longer than short runs take.
const WIDE_RUN_BYTES: u64 = 16 << 10;
const WIDE_ROWS: u64 = 256;
/// A tile that is cut along two axes or more and smaller than this is replaced by the default.
const SMALL_BYTES: u64 = 256 << 10;

fn bytes(tile: &[u64], item: u64) -> u64 {
    tile.iter()
        .fold(item, |product, &length| product.saturating_mul(length))
}

fn floor_power_of_two(value: u64) -> u64 {
    if value == 0 {
        1
    } else {
        1 << (63 - value.leading_zeros())
    }
}

fn whole(shape: &[u64]) -> Vec<u64> {
    shape.iter().map(|&length| length.max(1)).collect()
}

/// Trailing axes whole, one axis cut to a power of two, leading axes one.
fn panel(shape: &[u64], item: u64) -> Vec<u64> {
    let mut tile = vec![1; shape.len()];
    let mut size = item;
    for axis in (0..shape.len()).rev() {
        let length = shape[axis].max(1);
        if size.saturating_mul(length) <= PANEL_BYTES {
            tile[axis] = length;
            size *= length;
        } else {
            tile[axis] = floor_power_of_two(PANEL_BYTES / size).clamp(1, length);
            break;
        }
    }
    tile
}

/// The tile shape of an array that inherits none: whole if small, square over two long last axes, else a panel.
pub fn default_tile(shape: &[u64], dtype: DType) -> Vec<u64> {
    let item = dtype.size() as u64;
    if bytes(&whole(shape), item) <= PANEL_BYTES {
        return whole(shape);
    }
    let ndim = shape.len();
    if ndim >= 2 {
        let (rows, columns) = (shape[ndim - 2], shape[ndim - 1]);
        let side = floor_power_of_two((SQUARE_BYTES / item).isqrt());
        if rows >= side && columns >= side {
            let mut tile = vec![1; ndim];
            tile[ndim - 2] = side;
            tile[ndim - 1] = side;
            return tile;
        }
    }
    panel(shape, item)
}

/// The tile shape of a stored array: whole chunks of Zarr, whole rows or long runs of `.npy`.
pub fn source_tile(shape: &[u64], dtype: DType, layout: &Layout) -> Vec<u64> {
    let item = dtype.size() as u64;
    match layout {
        Layout::Chunks(chunk) => chunk_tile(shape, chunk, item),
        Layout::RowMajor => {
            let ndim = shape.len();
            let row = shape.last().map_or(item, |&columns| columns.saturating_mul(item));
            if ndim < 2 || row <= WHOLE_ROW_BYTES || bytes(&whole(shape), item) <= PANEL_BYTES {
                return panel(shape, item);
            }
            let mut tile = vec![1; ndim];
            tile[ndim - 1] = (ROW_RUN_BYTES / item).min(shape[ndim - 1].max(1));
            tile[ndim - 2] = (PANEL_BYTES / ROW_RUN_BYTES).min(shape[ndim - 2].max(1));
            tile
        }
        Layout::Memory => default_tile(shape, dtype),
    }
}

/// The tile shape of a row-major file in products, where each tile is used several times along a dimension that the file does not
/// have: short runs of some rows. Nothing for an array that such tiles do not cut both ways.
pub fn wide_tile(shape: &[u64], dtype: DType) -> Option<Vec<u64>> {
    let [.., rows, columns] = *shape else { return None };
    let width = WIDE_RUN_BYTES / dtype.size() as u64;
    (rows > WIDE_ROWS && columns > width).then(|| {
        let mut tile = vec![1; shape.len()];
        tile.splice(shape.len() - 2.., [WIDE_ROWS, width]);
        tile
    })
}

fn chunk_tile(shape: &[u64], chunk: &[u64], item: u64) -> Vec<u64> {
    let mut tile: Vec<u64> = chunk
        .iter()
        .zip(shape)
        .map(|(&chunk, &length)| chunk.clamp(1, length.max(1)))
        .collect();
    for axis in (0..shape.len()).rev() {
        while tile[axis] < shape[axis] && bytes(&tile, item) * 2 <= PANEL_BYTES {
            tile[axis] = (tile[axis] * 2).min(shape[axis]);
        }
    }
    tile
}

/// A tile shape within the axes.
fn clamped(shape: &[u64], tile: &[u64]) -> Vec<u64> {
    let lengths = tile.iter().zip(shape);
    lengths.map(|(&tile, &length)| tile.clamp(1, length.max(1))).collect()
}

/// A tile shape within the axes, cut down where it is huge.
pub fn bounded(shape: &[u64], dtype: DType, tile: &[u64]) -> Vec<u64> {
    let mut tile = clamped(shape, tile);
    if bytes(&tile, dtype.size() as u64) > 4 * SQUARE_BYTES {
        for (tile, fallback) in tile.iter_mut().zip(default_tile(shape, dtype)) {
            *tile = (*tile).min(fallback);
        }
    }
    tile
}

/// A tile shape within the axes, with fewer rows where it is huge: the other lengths stay.
pub fn cut_rows(shape: &[u64], dtype: DType, tile: &[u64]) -> Vec<u64> {
    let mut tile = clamped(shape, tile);
    while tile[0] > 1 && bytes(&tile, dtype.size() as u64) > 4 * SQUARE_BYTES {
        tile[0] = tile[0].div_ceil(2);
    }
    tile
}

/// Makes a tile shape put together from inherited lengths sensible: not longer than the axes, neither huge nor, when
/// cut along several axes, tiny.
pub fn sensible_tile(shape: &[u64], dtype: DType, tile: Vec<u64>) -> Vec<u64> {
    let tile = clamped(shape, &tile);
    let cut = tile.iter().zip(shape).filter(|(tile, length)| tile < length).count();
    if cut >= 2 && bytes(&tile, dtype.size() as u64) < SMALL_BYTES {
        return default_tile(shape, dtype);
    }
    bounded(shape, dtype, &tile)
}

/// Shortens the leading lengths of a tile by powers of two until it has `elements` at most.
pub fn halve(tile: &mut [u64], elements: u64) {
    while tile.iter().product::<u64>() > elements {
        let Some(length) = tile.iter_mut().find(|length| **length > 1) else {
            return;
        };
        *length = floor_power_of_two(*length - 1);
    }
}

/// Whether a reduction along `axes` runs over several tiles.
pub fn is_cut(input: &Node, axes: &[usize]) -> bool {
    axes.iter().any(|&axis| input.tile[axis] < input.shape[axis])
}

/// Whether a reduction along `axes` takes a walk of its own: over several tiles, or in blocks of a single one that a
/// type wider than the stored one has made large.
pub fn is_swept(input: &Node, axes: &[usize]) -> bool {
    is_cut(input, axes) || is_wide(input)
}

/// Whether the array is one tile that is larger than such a tile of a source.
fn is_wide(node: &Node) -> bool {
    node.is_single_tile() && node.nbytes() > PANEL_BYTES
}

/// The tile shape with the axes in `whole` not cut at all, and the others cut until a tile is no larger than a panel.
pub fn uncut(shape: &[u64], dtype: DType, mut tile: Vec<u64>, whole: &[usize]) -> Vec<u64> {
    for &axis in whole {
        tile[axis] = shape[axis].max(1);
    }
    for axis in (0..shape.len()).filter(|axis| !whole.contains(axis)) {
        while tile[axis] > 1 && bytes(&tile, dtype.size() as u64) > PANEL_BYTES {
            tile[axis] = tile[axis].div_ceil(2);
        }
    }
    tile
}

/// The tile shape halved along the first axis of even length until a tile is no larger than a panel, so that none reaches
/// across the ends of those that the array is stored in; along the first axis that can be cut where all lengths are odd.
pub fn halved(dtype: DType, mut tile: Vec<u64>) -> Vec<u64> {
    while bytes(&tile, dtype.size() as u64) > PANEL_BYTES {
        let even = tile.iter().position(|&length| length % 2 == 0 && length > 0);
        match even.or_else(|| tile.iter().position(|&length| length > 1)) {
            Some(axis) => tile[axis] = tile[axis].div_ceil(2),
            None => break,
        }
    }
    tile
}

/// Tiles along each axis; zero for an empty axis.
pub fn counts(shape: &[u64], tile: &[u64]) -> Vec<u64> {
    shape
        .iter()
        .zip(tile)
        .map(|(&length, &tile)| length.div_ceil(tile))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tall_files_are_cut_into_whole_rows() {
        assert_eq!(source_tile(&[1 << 22, 100], DType::F64, &Layout::RowMajor), [4096, 100]);
        assert_eq!(source_tile(&[1 << 22, 10], DType::F64, &Layout::RowMajor), [32768, 10]);
    }

    #[test]
    fn wide_files_are_cut_into_long_runs() {
        assert_eq!(source_tile(&[20000, 20000], DType::F64, &Layout::RowMajor), [128, 4096]);
    }

    #[test]
    fn chunks_are_joined_up_to_the_panel_size() {
        let layout = Layout::Chunks(vec![1000, 100]);
        assert_eq!(source_tile(&[1_000_000, 100], DType::F64, &layout), [4000, 100]);
    }

    #[test]
    fn computed_matrices_are_cut_square() {
        assert_eq!(default_tile(&[20000, 20000], DType::F64), [1024, 1024]);
        assert_eq!(default_tile(&[100, 10], DType::F64), [100, 10]);
    }

    #[test]
    fn uncut_axes_stay_whole_and_the_others_give_way() {
        assert_eq!(uncut(&[1 << 20, 1000], DType::F64, vec![512, 1000], &[0]), [1 << 20, 1]);
        assert_eq!(uncut(&[1000, 1 << 20], DType::F64, vec![1000, 512], &[0]), [1000, 512]);
        assert_eq!(uncut(&[1 << 20, 0], DType::F64, vec![512, 1], &[0, 1]), [1 << 20, 1]);
    }

    #[test]
    fn halves_of_tiles_lie_within_the_tiles() {
        assert_eq!(halved(DType::F64, vec![50, 91, 416]), [25, 91, 208]);
        assert_eq!(halved(DType::F64, vec![25, 91, 208]), [25, 91, 208]);
        assert_eq!(halved(DType::F64, vec![1025, 1025]), [257, 1025]);
    }

    #[test]
    fn empty_and_scalar_arrays_have_a_tile() {
        assert_eq!(default_tile(&[], DType::F64), Vec::<u64>::new());
        assert_eq!(default_tile(&[0, 5], DType::F64), [1, 5]);
        assert_eq!(counts(&[0, 5], &[1, 5]), [0, 1]);
    }
}
