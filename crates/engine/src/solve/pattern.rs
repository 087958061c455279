//! The pattern of A + Aᵀ: the graph that orderings and elimination trees are of.

use outcore_store::Io;

use crate::cancel::Watch;
use crate::sparse::SparseMatrix;
use crate::EngineError;

/// The graph of A + Aᵀ without loops, in rows or in the order of elimination.
#[derive(Debug, Default)]
pub struct Pattern {
    /// Where the neighbours of each vertex begin, and the last end.
    pub starts: Vec<u64>,
    /// Ascending, each edge in both lists.
    pub neighbours: Vec<u32>,
}

/// Bytes that [`Pattern::of`] takes at most, without the tile that is read.
pub fn pattern_bytes(vertices: u64, entries: u64) -> u64 {
    // Places in three lists of starts; columns, and both directions of each edge.
    3 * 8 * (vertices + 1) + 4 * entries + 2 * 4 * entries
}

impl Pattern {
    /// Reads the places of all entries once. With `columns`, each column is the one that they have at its place.
    ///
    /// # Errors
    /// A matrix that cannot be read; an interrupt.
    pub fn of(
        matrix: &SparseMatrix,
        columns: Option<&[u32]>,
        io: &Io,
        watch: &mut Watch<'_>,
    ) -> Result<Pattern, EngineError> {
        let vertices = matrix.file.matrix().rows as usize;
        let (mut counts, mut places) = (vec![0u64; vertices + 1], Vec::new());
        places.reserve_exact(matrix.file.matrix().entries as usize);
        let mut ends = Vec::with_capacity(matrix.file.tiles());
        let mut degrees = vec![0u64; vertices + 1];
        // Rows of a tile are not in order, so entries are put in rows tile by tile.
        for tile in 0..matrix.file.tiles() {
            watch()?;
            let mut entries = matrix.entries(tile, io)?;
            if let Some(columns) = columns {
                for column in &mut entries.columns {
                    *column = u64::from(columns[*column as usize]);
                }
            }
            let off_diagonal = || {
                let pairs = entries.rows.iter().zip(&entries.columns);
                pairs.filter(|(row, column)| row != column)
            };
            let Some(first) = entries.rows.iter().min().copied() else {
                continue;
            };
            let last = entries.rows.iter().max().copied().unwrap_or(first);
            let mut next = vec![places.len(); (last - first + 2) as usize];
            for (&row, &column) in off_diagonal() {
                counts[row as usize] += 1;
                degrees[row as usize] += 1;
                degrees[column as usize] += 1;
            }
            for row in first..=last {
                next[(row - first + 1) as usize] = next[(row - first) as usize] + counts[row as usize] as usize;
            }
            places.resize(next[next.len() - 1], 0u32);
            for (&row, &column) in off_diagonal() {
                let place = &mut next[(row - first) as usize];
                places[*place] = column as u32;
                *place += 1;
            }
            ends.push(places.len());
        }
        symmetrized(&counts, places, degrees, watch)
    }

    pub fn vertices(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn neighbours_of(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }

    /// Bytes that the lists take.
    pub fn bytes(&self) -> u64 {
        8 * self.starts.len() as u64 + 4 * self.neighbours.len() as u64
    }
}

/// Rows between two looks at the caller.
const ROWS_BETWEEN: usize = 1 << 14;

/// Both directions of edges that lie row by row, sorted and once each.
fn symmetrized(
    counts: &[u64],
    places: Vec<u32>,
    mut degrees: Vec<u64>,
    watch: &mut Watch<'_>,
) -> Result<Pattern, EngineError> {
    let mut sum = 0;
    for degree in &mut degrees {
        sum += std::mem::replace(degree, sum);
    }
    let starts = degrees;
    let mut next = starts.clone();
    let mut neighbours = vec![0u32; sum as usize];
    let mut at = 0;
    for (row, &count) in counts.iter().enumerate() {
        if row.is_multiple_of(ROWS_BETWEEN) {
            watch()?;
        }
        for &column in &places[at..at + count as usize] {
            for (one, other) in [(row, column), (column as usize, row as u32)] {
                neighbours[next[one] as usize] = other;
                next[one] += 1;
            }
        }
        at += count as usize;
    }
    drop(places);
    let (mut kept, mut begin) = (0, 0);
    let mut starts = starts;
    for row in 0..starts.len() - 1 {
        if row.is_multiple_of(ROWS_BETWEEN) {
            watch()?;
        }
        let end = starts[row + 1] as usize;
        neighbours[begin..end].sort_unstable();
        starts[row] = kept as u64;
        let mut before = None;
        for at in begin..end {
            let neighbour = neighbours[at];
            if before != Some(neighbour) {
                neighbours[kept] = neighbour;
                kept += 1;
            }
            before = Some(neighbour);
        }
        begin = end;
    }
    if let Some(last) = starts.last_mut() {
        *last = kept as u64;
    }
    neighbours.truncate(kept);
    neighbours.shrink_to_fit();
    Ok(Pattern { starts, neighbours })
}
