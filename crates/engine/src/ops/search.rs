//! Where values belong in a sorted row that stays in memory.

use std::sync::Arc;

use outcore_kernels::sort::{
    count_less, count_less_equal, scatter_items, searchsorted, sort_index, sort_index_workspace_bytes, KeyOrder, Side,
};

use super::{algorithm, show};
use crate::expr::Expr;
use crate::task::{Access, Alone, Bound, Grid, Recipe, Work};
use crate::EngineError;
use outcore_dtype::DType;

/// A sorted row of so many bytes stays in the processor's cache: values need not come in order.
const CACHED_BYTES: u64 = 1 << 17;

/// For each of a row of `values` how many elements of the sorted row come before it (`Left`), or before it or equal it
/// (`Right`), int64.
///
/// # Errors
/// Types that differ or have no order; more than one axis.
pub fn search(sorted: &Expr, values: &Expr, side: Side) -> Result<Expr, EngineError> {
    let order = check_search(sorted, values)?;
    let mut result = values.grid();
    result.dtype = DType::I64;
    let work = HeldSearch {
        order,
        side,
        sorted: sorted.grid(),
        values: values.grid(),
        result: [result],
    };
    Ok(algorithm(Arc::new(work), &[sorted.clone(), values.clone()])?.swap_remove(0))
}

/// The order in which both are searched.
///
/// # Errors
/// As `search`.
pub fn check_search(sorted: &Expr, values: &Expr) -> Result<KeyOrder, EngineError> {
    if sorted.ndim() != 1 || values.ndim() != 1 {
        return Err(EngineError::Shape(format!(
            "searchsorted: a sorted array of shape {} and values of shape {} are not two rows",
            show(&sorted.shape),
            show(&values.shape)
        )));
    }
    match KeyOrder::new(sorted.dtype, false) {
        Some(order) if sorted.dtype == values.dtype => Ok(order),
        _ => Err(EngineError::DType(format!(
            "searchsorted: {} among {} have no common order",
            values.dtype, sorted.dtype
        ))),
    }
}

#[derive(Clone, Debug)]
struct HeldSearch {
    order: KeyOrder,
    side: Side,
    sorted: Grid,
    values: Grid,
    result: [Grid; 1],
}

/// Places in the workspace.
struct SearchLayout {
    index: usize,
    places: usize,
    sort: usize,
    bytes: usize,
}

const ALIGNED: usize = 64;
/// Values that are put in order together.
const TOGETHER: usize = 1 << 16;

impl HeldSearch {
    fn is_cached(&self) -> bool {
        self.sorted.tiles() <= 1 && self.sorted.shape[0] * self.sorted.dtype.size() as u64 <= CACHED_BYTES
    }

    fn layout(&self, count: usize) -> SearchLayout {
        let index = (count * self.order.dtype().size()).next_multiple_of(ALIGNED);
        let places = index + (count * size_of::<u32>()).next_multiple_of(ALIGNED);
        let sort = places + (count * size_of::<i64>()).next_multiple_of(ALIGNED);
        SearchLayout {
            index,
            places,
            sort,
            bytes: sort + sort_index_workspace_bytes(self.order, count),
        }
    }
}

impl Alone for HeldSearch {
    fn key(&self) -> Vec<u8> {
        vec![u8::from(self.side == Side::Right)]
    }
    fn recipe(&self) -> Option<Recipe> {
        Some(Recipe::new("search").flag(self.side == Side::Right))
    }

    fn results(&self) -> &[Grid] {
        &self.result
    }
}

impl Work for HeldSearch {
    fn label(&self) -> String {
        "searchsorted".into()
    }

    fn tasks(&self) -> u64 {
        self.values.tiles()
    }

    fn operands(&self, task: u64, each: &mut dyn FnMut(usize, u64, Access)) {
        each(1, task, Access::Read);
        (0..self.sorted.tiles()).for_each(|tile| each(0, tile, Access::Read));
        each(2, task, Access::Create);
    }

    fn workspace_bytes(&self, task: u64) -> u64 {
        match self.is_cached() {
            true => 0,
            false => self.layout((self.values.elements(task) as usize).min(TOGETHER)).bytes as u64,
        }
    }

    fn operations(&self) -> f64 {
        200.0 * self.values.shape[0] as f64
    }

    fn run(&self, _task: u64, tiles: &mut Bound<'_>, workspace: &mut [u8]) -> Result<(), EngineError> {
        let (values, sorted) = tiles
            .reads
            .split_first()
            .ok_or_else(|| EngineError::Internal("searchsorted reads values".into()))?;
        let out = &mut *tiles.writes[0];
        if sorted.is_empty() {
            out.fill(0);
            return Ok(());
        }
        if self.is_cached() {
            searchsorted(self.order, sorted[0], values, self.side, 0, out);
            return Ok(());
        }
        let item = self.order.dtype().size();
        let chunks = values.chunks(TOGETHER * item);
        for (values, out) in chunks.zip(out.chunks_mut(TOGETHER * size_of::<i64>())) {
            self.search(sorted, values, out, workspace);
        }
        Ok(())
    }
}

impl HeldSearch {
    /// Values in order find their places one tile after the other, and near each other.
    fn search(&self, sorted: &[&[u8]], values: &[u8], out: &mut [u8], workspace: &mut [u8]) {
        let item = self.order.dtype().size();
        let count = values.len() / item;
        let layout = self.layout(count);
        let (keys, rest) = workspace.split_at_mut(layout.index);
        let (index, rest) = rest.split_at_mut(layout.places - layout.index);
        let (places, sort) = rest.split_at_mut(layout.sort - layout.places);
        let (keys, index) = (&mut keys[..count * item], &mut index[..count * size_of::<u32>()]);
        let places = &mut places[..count * size_of::<i64>()];
        keys.copy_from_slice(values);
        sort_index(self.order, keys, index, sort);
        let mut at = 0;
        for (tile, elements) in sorted.iter().enumerate() {
            let rest = &keys[at * item..];
            let last = &elements[elements.len() - item..];
            let here = match self.side {
                _ if tile + 1 == sorted.len() => rest.len() / item,
                Side::Left => count_less_equal(self.order, rest, last),
                Side::Right => count_less(self.order, rest, last),
            };
            let base = (tile as u64 * self.sorted.tile[0]) as i64;
            let places = &mut places[at * size_of::<i64>()..(at + here) * size_of::<i64>()];
            searchsorted(self.order, elements, &rest[..here * item], self.side, base, places);
            at += here;
        }
        scatter_items(size_of::<i64>(), index, places, out);
    }
}
