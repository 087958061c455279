//! Elimination trees, and how many entries each column of the factor has, without walking the factor.
//!
//! Elimination tree: Liu, The role of elimination trees in sparse factorization, SIMAX 11 (1990), section 4. Counts: Gilbert,
//! Ng, Peyton, An efficient algorithm to compute row and column counts for sparse Cholesky factorization, SIMAX 15 (1994).

use super::pattern::Pattern;
use crate::EngineError;

/// No vertex.
pub const NONE: u32 = u32::MAX;

/// Columns in an order of elimination that is a postorder of their tree.
#[derive(Debug)]
pub struct EliminationTree {
    /// The vertex that is eliminated as each.
    pub order: Vec<u32>,
    /// The place of each vertex in the order.
    pub places: Vec<u32>,
    /// The parent of each column; `NONE` of a root.
    pub parents: Vec<u32>,
    /// Entries of each column of the factor, that of the diagonal among them.
    pub counts: Vec<u32>,
}

/// Bytes that [`EliminationTree::new`] takes at most for so many vertices, its result included.
pub fn tree_bytes(vertices: u64) -> u64 {
    10 * 4 * vertices
}

/// Whether the caller wants the work to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Columns between two looks at the caller.
const COLUMNS_BETWEEN: usize = 1 << 14;

/// # Errors
/// The caller wants the work to stop.
pub fn check(stop: Stop<'_>) -> Result<(), EngineError> {
    match stop() {
        true => Err(EngineError::Cancelled),
        false => Ok(()),
    }
}

/// As [`check`], at some columns.
fn check_at(column: usize, stop: Stop<'_>) -> Result<(), EngineError> {
    match column.is_multiple_of(COLUMNS_BETWEEN) {
        true => check(stop),
        false => Ok(()),
    }
}

impl EliminationTree {
    /// The tree of an order, whose columns are put into postorder.
    ///
    /// # Errors
    /// It was stopped.
    pub fn new(pattern: &Pattern, order: Vec<u32>, stop: Stop<'_>) -> Result<EliminationTree, EngineError> {
        let places = inverse(&order);
        let parents = parents_of(pattern, &order, &places, stop)?;
        let post = postorder(&parents);
        let order: Vec<u32> = post.iter().map(|&column| order[column as usize]).collect();
        let renumbered = inverse(&post);
        let parent_of = |&column: &u32| match parents[column as usize] {
            NONE => NONE,
            parent => renumbered[parent as usize],
        };
        let parents: Vec<u32> = post.iter().map(parent_of).collect();
        let places = inverse(&order);
        let counts = counts_of(pattern, &order, &places, &parents, stop)?;
        Ok(EliminationTree {
            order,
            places,
            parents,
            counts,
        })
    }
}

/// The place of each number in a permutation.
pub fn inverse(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, &number) in order.iter().enumerate() {
        places[number as usize] = place as u32;
    }
    places
}

fn parents_of(pattern: &Pattern, order: &[u32], places: &[u32], stop: Stop<'_>) -> Result<Vec<u32>, EngineError> {
    let mut parents = vec![NONE; order.len()];
    let mut ancestors = vec![NONE; order.len()];
    for (column, &vertex) in order.iter().enumerate() {
        check_at(column, stop)?;
        for &neighbour in pattern.neighbours_of(vertex as usize) {
            let mut at = places[neighbour as usize];
            // Paths are cut short to the column as they are walked.
            while (at as usize) < column {
                let next = std::mem::replace(&mut ancestors[at as usize], column as u32);
                if next == NONE {
                    parents[at as usize] = column as u32;
                    break;
                }
                at = next;
            }
        }
    }
    Ok(parents)
}

/// The columns of a forest, children before parents, each subtree together.
pub fn postorder(parents: &[u32]) -> Vec<u32> {
    let mut first_child = vec![NONE; parents.len()];
    let mut siblings = vec![NONE; parents.len()];
    for column in (0..parents.len()).rev() {
        let parent = parents[column];
        if parent != NONE {
            siblings[column] = std::mem::replace(&mut first_child[parent as usize], column as u32);
        }
    }
    let (mut post, mut stack) = (Vec::with_capacity(parents.len()), vec![]);
    for root in (0..parents.len() as u32).filter(|root| parents[*root as usize] == NONE) {
        stack.push(root);
        while let Some(&column) = stack.last() {
            let child = std::mem::replace(&mut first_child[column as usize], NONE);
            if child == NONE {
                post.push(column);
                stack.pop();
                // The sibling is walked when its parent is on top again.
                if let Some(&parent) = stack.last() {
                    first_child[parent as usize] = siblings[column as usize];
                }
            } else {
                stack.push(child);
            }
        }
    }
    post
}

/// Counts of columns in postorder: each row subtree's leaves are found, and where the paths from them meet.
fn counts_of(
    pattern: &Pattern,
    order: &[u32],
    places: &[u32],
    parents: &[u32],
    stop: Stop<'_>,
) -> Result<Vec<u32>, EngineError> {
    let n = order.len();
    // The first descendant of each column; whether a column is a leaf shows while they are found.
    let mut first = vec![NONE; n];
    let mut deltas = vec![0i64; n];
    for column in 0..n {
        deltas[column] = i64::from(first[column] == NONE);
        let mut at = column as u32;
        while at != NONE && first[at as usize] == NONE {
            first[at as usize] = column as u32;
            at = parents[at as usize];
        }
    }
    let mut most_first = vec![NONE; n];
    let mut last_leaf = vec![NONE; n];
    let mut sets: Vec<u32> = (0..n as u32).collect();
    for column in 0..n {
        check_at(column, stop)?;
        if parents[column] != NONE {
            deltas[parents[column] as usize] -= 1;
        }
        for &neighbour in pattern.neighbours_of(order[column] as usize) {
            let row = places[neighbour as usize] as usize;
            if row <= column {
                continue;
            }
            // A leaf of the row's subtree has no descendant there that was seen.
            if most_first[row] != NONE && first[column] <= most_first[row] {
                continue;
            }
            most_first[row] = first[column];
            deltas[column] += 1;
            let before = std::mem::replace(&mut last_leaf[row], column as u32);
            if before != NONE {
                deltas[meeting(&mut sets, before) as usize] -= 1;
            }
        }
        if parents[column] != NONE {
            sets[column] = parents[column];
        }
    }
    for column in 0..n {
        if parents[column] != NONE {
            deltas[parents[column] as usize] += deltas[column];
        }
    }
    // The diagonal is counted by its own leaf.
    Ok(deltas.iter().map(|&count| count as u32).collect())
}

/// The root of a column's set, with its path cut short.
fn meeting(sets: &mut [u32], column: u32) -> u32 {
    let mut root = column;
    while sets[root as usize] != root {
        root = sets[root as usize];
    }
    let mut at = column;
    while at != root {
        at = std::mem::replace(&mut sets[at as usize], root);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(n: usize, edges: &[(u32, u32)]) -> Pattern {
        let mut lists = vec![vec![]; n];
        for &(one, other) in edges {
            lists[one as usize].push(other);
            lists[other as usize].push(one);
        }
        lists.iter_mut().for_each(|list| {
            list.sort_unstable();
            list.dedup();
        });
        let starts = std::iter::once(0)
            .chain(lists.iter().scan(0, |sum, list| {
                *sum += list.len() as u64;
                Some(*sum)
            }))
            .collect();
        Pattern {
            starts,
            neighbours: lists.concat(),
        }
    }

    /// Parents and counts by eliminating columns as sets.
    fn eliminated(pattern: &Pattern, tree: &EliminationTree) -> (Vec<u32>, Vec<u32>) {
        let n = tree.order.len();
        let mut columns: Vec<std::collections::BTreeSet<u32>> = (0..n)
            .map(|column| {
                let neighbours = pattern.neighbours_of(tree.order[column] as usize).iter();
                let places = neighbours.map(|&neighbour| tree.places[neighbour as usize]);
                places.filter(|&row| row as usize > column).collect()
            })
            .collect();
        let mut parents = vec![NONE; n];
        for column in 0..n {
            let rows = columns[column].clone();
            if let Some(&parent) = rows.first() {
                parents[column] = parent;
                columns[parent as usize].extend(rows.iter().skip(1));
            }
        }
        let counts = columns.iter().map(|rows| rows.len() as u32 + 1).collect();
        (parents, counts)
    }

    proptest::proptest! {
        #[test]
        fn counts_are_those_of_elimination(
            n in 1usize..40,
            edges in proptest::collection::vec((0u32..40, 0u32..40), 0..90),
        ) {
            let edges: Vec<(u32, u32)> = edges
                .into_iter()
                .map(|(one, other)| (one % n as u32, other % n as u32))
                .filter(|(one, other)| one != other)
                .collect();
            let pattern = pattern(n, &edges);
            let order: Vec<u32> = (0..n as u32).map(|at| (at * 7 + 3) % n as u32).collect();
            let is_permutation = { let mut sorted = order.clone(); sorted.sort_unstable(); sorted.dedup(); sorted.len() == n };
            let order = if is_permutation { order } else { (0..n as u32).collect() };
            let tree = EliminationTree::new(&pattern, order, &|| false).unwrap();
            let (parents, counts) = eliminated(&pattern, &tree);
            proptest::prop_assert_eq!(&tree.parents, &parents);
            proptest::prop_assert_eq!(&tree.counts, &counts);
        }
    }
}
