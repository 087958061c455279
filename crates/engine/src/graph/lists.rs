//! Lists as they are, for those who work on them elsewhere.

use outcore_graph::{ListIndex, Vertex};
use outcore_store::{Direction, GraphFile};

use super::batch::{Chosen, WeightIndex};
use super::means::{Means, Watch};
use super::sweep::{Heading, Sweep};
use super::wanted::{Scratch, Wanted};
use crate::EngineError;

/// Lists of vertices, one behind the other.
#[derive(Debug, Default)]
pub struct Found {
    /// Where the list of each begins, and where the last ends.
    pub begins: Vec<i64>,
    pub neighbours: Vec<Vertex>,
    /// One for each neighbour, if the graph has any.
    pub weights: Vec<f64>,
}

/// The lists of vertices that ascend, with weights where there are some and `degrees` tell where they lie. I/O: the pages that hold them.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn lists(
    file: &GraphFile,
    direction: Direction,
    degrees: Option<&ListIndex>,
    vertices: &[Vertex],
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<Found, EngineError> {
    let wanted = Wanted {
        file,
        direction,
        chosen: Chosen::Listed(vertices),
        weights: WeightIndex::new(file, degrees),
    };
    // Room for as many as the bytes can be, of which what is not used is never touched: what grows is there twice.
    let section = file.section(direction);
    let most: u64 = vertices.iter().map(|vertex| section.index.bytes_of(*vertex)).sum();
    let mut found = Found {
        begins: Vec::with_capacity(vertices.len() + 1),
        neighbours: Vec::with_capacity(most as usize),
        weights: Vec::with_capacity(if degrees.is_some() { most as usize } else { 0 }),
    };
    let (mut next, mut last) = (vertices.iter(), None);
    Sweep::in_parts(wanted, means).whole(Heading::Ascending).run(
        means,
        Scratch::default,
        |scratch, lists| {
            let (mut ends, mut part) = (vec![], Found::default());
            lists.each(scratch, |list| {
                part.neighbours.extend(list.neighbours);
                part.weights.extend(list.weights);
                ends.push((list.vertex, list.neighbours.len() as i64));
            })?;
            Ok((ends, part))
        },
        |(ends, part)| {
            let mut begin = found.neighbours.len() as i64;
            for (vertex, length) in ends {
                // Of a list in parts the first alone begins one.
                if last != Some(vertex) {
                    // Those without neighbours have no list.
                    let behind = next.by_ref().take_while(|next| **next != vertex).count();
                    found.begins.extend(std::iter::repeat_n(begin, behind + 1));
                    last = Some(vertex);
                }
                begin += length;
            }
            found.neighbours.extend(part.neighbours);
            found.weights.extend(part.weights);
            Ok(())
        },
        watch,
    )?;
    let end = found.neighbours.len() as i64;
    found.begins.resize(vertices.len() + 1, end);
    found.neighbours.shrink_to_fit();
    found.weights.shrink_to_fit();
    Ok(found)
}

/// The lowest weight, the sum of all, and whether one is not a number. I/O: one read of lists and weights.
///
/// # Errors
/// The file cannot be read, or is not what it says; what `watch` says.
pub fn weights(
    file: &GraphFile,
    degrees: &ListIndex,
    means: &Means<'_>,
    watch: &mut Watch<'_>,
) -> Result<(f64, f64, bool), EngineError> {
    let wanted = Wanted {
        file,
        direction: Direction::Out,
        chosen: Chosen::All,
        weights: WeightIndex::new(file, Some(degrees)),
    };
    let (mut lowest, mut sum, mut is_nan) = (f64::INFINITY, 0.0, false);
    Sweep::in_parts(wanted, means).whole(Heading::Ascending).run(
        means,
        Scratch::default,
        |scratch, lists| {
            let (mut lowest, mut sum) = (f64::INFINITY, 0.0);
            lists.each(scratch, |list| {
                lowest = list.weights.iter().copied().fold(lowest, f64::min);
                sum += list.weights.iter().sum::<f64>();
            })?;
            Ok((lowest, sum))
        },
        |(least, part)| {
            (lowest, sum, is_nan) = (lowest.min(least), sum + part, is_nan || part.is_nan());
            Ok(())
        },
        watch,
    )?;
    Ok((lowest, sum, is_nan))
}
