//! Places of the inverse that are wanted, by the tiles of the factor that they lie in.

use std::ops::Range;

use super::analysis::Analysis;
use super::places::FrontPlaces;
use crate::EngineError;

/// Rows and columns, in the order of elimination, sorted by the tiles of the factor that have their places.
#[derive(Debug)]
pub struct WantedPlaces {
    places: Vec<[u32; 2]>,
    /// Where the places of each tile of the factor begin, and the last end.
    starts: Vec<u32>,
}

impl WantedPlaces {
    /// Places on and below the diagonal, with the number that each has among them in their new order.
    ///
    /// # Errors
    /// A place that the factor has not.
    pub fn new(analysis: &Analysis, places: &[[u32; 2]]) -> Result<(WantedPlaces, Vec<u32>), EngineError> {
        let mut of_tile: Vec<(u32, u32)> = Vec::with_capacity(places.len());
        for (number, place) in places.iter().enumerate() {
            let tile = tile_of(analysis, *place).ok_or_else(|| {
                let [one, other] = place.map(|at| analysis.order.get(at as usize).copied().unwrap_or(at));
                EngineError::Argument(format!(
                    "inverse_entries: the factor has no element at ({other}, {one}), nor at ({one}, {other}), as it has at all \
                     entries of the matrix; solve gives whole columns of the inverse"
                ))
            })?;
            of_tile.push((tile, number as u32));
        }
        of_tile.sort_unstable();
        let tiles = analysis.fronts.factor.len();
        let mut starts = Vec::with_capacity(tiles + 1);
        let mut numbers = vec![0; places.len()];
        for (sorted, (tile, number)) in of_tile.iter().enumerate() {
            starts.resize(*tile as usize + 1, sorted as u32);
            numbers[*number as usize] = sorted as u32;
        }
        starts.resize(tiles + 1, places.len() as u32);
        let places = of_tile.iter().map(|(_, number)| places[*number as usize]).collect();
        Ok((WantedPlaces { places, starts }, numbers))
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The places of a tile of the factor.
    pub(super) fn of_tile(&self, tile: usize) -> &[[u32; 2]] {
        &self.places[self.starts[tile] as usize..self.starts[tile + 1] as usize]
    }

    /// Tiles of the factor that have some of the places.
    pub(super) fn tiles_of(&self, places: Range<usize>) -> Range<u64> {
        let first = self.starts.partition_point(|start| *start as usize <= places.start) - 1;
        let end = self.starts.partition_point(|start| (*start as usize) < places.end);
        first as u64..end as u64
    }

    /// The places of the first of some tiles that lie before a place.
    pub(super) fn offset_in(&self, tiles: Range<u64>, place: u64) -> usize {
        (place - u64::from(self.starts[tiles.start as usize])) as usize
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(&self.places).to_vec()
    }

    /// Bytes that the record takes.
    pub(super) fn record_bytes(&self) -> u64 {
        (size_of_val(&*self.places) + size_of_val(&*self.starts)) as u64
    }
}

/// The tile of the factor that has a place.
fn tile_of(analysis: &Analysis, [row, column]: [u32; 2]) -> Option<u32> {
    let nodes = &analysis.fronts.nodes;
    let node = nodes.get(nodes.partition_point(|node| node.columns.end <= column))?;
    let Some(blocks) = node.blocks() else {
        let of = &analysis.supernodes[node.supernodes.start as usize..node.supernodes.end as usize];
        let number = of.partition_point(|one| one.first + one.pivots <= column);
        let one = of.get(number)?;
        let number = node.supernodes.start + number as u32;
        let is_there =
            (row >= column && row < one.first + one.pivots) || analysis.below(number).binary_search(&row).is_ok();
        return is_there.then_some(node.factor);
    };
    let places = FrontPlaces::new(analysis, node);
    let [row, column] = [places.of(row)?, places.of(column)?];
    let block = |place: u32| (0..blocks.all).find(|block| node.block(*block).contains(&place));
    (row >= column).then_some(node.factor + blocks.tile(block(row)?, block(column)?))
}
