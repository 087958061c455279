//! Connected components, each of which is ordered by itself.

use crate::graph::{View, Weighted};
use crate::watch::{Patience, Stopped};

const NONE: u32 = u32::MAX;

/// The vertices of a graph, component after component, small ones first; ascending in each, and in all small ones
/// together.
pub(super) struct Components {
    pub(super) vertices: Vec<u32>,
    /// Number of vertices in small components.
    pub(super) small: usize,
    /// Sizes of the large components.
    pub(super) sizes: Vec<usize>,
    /// For each vertex its number in its component; None if the graph is one large component.
    pub(super) numbers: Option<Vec<u32>>,
}

impl Components {
    /// Components of at most `small_max` vertices are small.
    pub(super) fn of(view: View<'_>, small_max: usize, patience: &Patience<'_>) -> Result<Components, Stopped> {
        let vertices = view.vertices();
        // For each vertex the first vertex found of its component, until the large ones are counted.
        let mut labels = vec![NONE; vertices];
        let mut reached: Vec<u32> = Vec::with_capacity(vertices);
        // First vertices of the large components, ascending, and their sizes.
        let (mut firsts, mut sizes) = (Vec::new(), Vec::new());
        for first in 0..vertices {
            if labels[first] != NONE {
                continue;
            }
            let start = reached.len();
            labels[first] = first as u32;
            reached.push(first as u32);
            let mut at = start;
            while at < reached.len() {
                let list = view.neighbours_of(reached[at] as usize);
                patience.work(list.len() + 1)?;
                for &other in list {
                    if labels[other as usize] == NONE {
                        labels[other as usize] = first as u32;
                        reached.push(other);
                    }
                }
                at += 1;
            }
            if reached.len() - start > small_max {
                firsts.push(first as u32);
                sizes.push(reached.len() - start);
            }
        }
        if sizes.first() == Some(&vertices) {
            reached
                .iter_mut()
                .enumerate()
                .for_each(|(at, vertex)| *vertex = at as u32);
            return Ok(Components {
                vertices: reached,
                small: 0,
                sizes,
                numbers: None,
            });
        }
        let small = vertices - sizes.iter().sum::<usize>();
        let mut starts = Vec::with_capacity(sizes.len());
        let mut places = Vec::with_capacity(sizes.len());
        sizes.iter().fold(small, |start, &size| {
            starts.push(start);
            places.push(start);
            start + size
        });
        let mut place_small = 0;
        for (vertex, label) in labels.iter_mut().enumerate() {
            let place = match firsts.binary_search(label) {
                Ok(component) => {
                    *label = (places[component] - starts[component]) as u32;
                    &mut places[component]
                }
                Err(_) => &mut place_small,
            };
            reached[*place] = vertex as u32;
            *place += 1;
        }
        Ok(Components {
            vertices: reached,
            small,
            sizes,
            numbers: Some(labels),
        })
    }
}

/// The graph of one component.
pub(super) fn part(
    whole: View<'_>,
    numbers: &[u32],
    vertices: &[u32],
    patience: &Patience<'_>,
) -> Result<Weighted, Stopped> {
    let directed = vertices.iter().map(|&vertex| whole.degree(vertex as usize)).sum();
    let mut part = Weighted {
        starts: Vec::with_capacity(vertices.len() + 1),
        neighbours: Vec::with_capacity(directed),
        ..Weighted::default()
    };
    part.starts.push(0);
    for &vertex in vertices {
        let list = whole.neighbours_of(vertex as usize);
        patience.work(list.len() + 1)?;
        part.neighbours
            .extend(list.iter().map(|&other| numbers[other as usize]));
        part.starts.push(part.neighbours.len() as u64);
    }
    if !whole.vertex_weights.is_empty() {
        part.vertex_weights = vertices
            .iter()
            .map(|&vertex| whole.vertex_weights[vertex as usize])
            .collect();
    }
    Ok(part)
}
