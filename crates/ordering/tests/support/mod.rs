//! Graphs to order, and the fill of an ordering.
#![allow(dead_code)]

pub mod columns;

use outcore_ordering::SymmetricGraph;

/// No vertex.
const NONE: u32 = u32::MAX;

pub struct Owned {
    pub starts: Vec<u64>,
    pub neighbours: Vec<u32>,
}

impl Owned {
    pub fn graph(&self) -> SymmetricGraph<'_> {
        SymmetricGraph {
            starts: &self.starts,
            neighbours: &self.neighbours,
        }
    }

    pub fn vertices(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn of_lists(lists: Vec<Vec<u32>>) -> Owned {
        let mut owned = Owned {
            starts: vec![0],
            neighbours: Vec::new(),
        };
        for list in lists {
            owned.neighbours.extend(list);
            owned.starts.push(owned.neighbours.len() as u64);
        }
        owned
    }

    /// Edges in any order, in one or both directions, loops left out.
    pub fn of_edges(vertices: usize, edges: &[(u32, u32)]) -> Owned {
        let mut lists = vec![Vec::new(); vertices];
        for &(one, other) in edges.iter().filter(|(one, other)| one != other) {
            lists[one as usize].push(other);
            lists[other as usize].push(one);
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        Owned::of_lists(lists)
    }
}

/// Grid of so many points a side in so many dimensions; neighbours are those at distance 1 in one direction, or in any.
pub fn grid(side: usize, dimensions: usize, is_full: bool) -> Owned {
    let vertices = side.pow(dimensions as u32);
    let mut owned = Owned {
        starts: vec![0],
        neighbours: Vec::new(),
    };
    let depth = if dimensions == 3 { side } else { 1 };
    for vertex in 0..vertices {
        let (x, y, z) = (vertex % side, vertex / side % side, vertex / side / side);
        let around = |at: usize, size: usize| at.saturating_sub(1)..(at + 2).min(size);
        for other_z in around(z, depth) {
            for other_y in around(y, side) {
                for other_x in around(x, side) {
                    let steps = other_x.abs_diff(x) + other_y.abs_diff(y) + other_z.abs_diff(z);
                    if steps == 1 || (is_full && steps > 0) {
                        owned
                            .neighbours
                            .push(((other_z * side + other_y) * side + other_x) as u32);
                    }
                }
            }
        }
        owned.starts.push(owned.neighbours.len() as u64);
    }
    owned
}

/// Each vertex as `copies` ones, all neighbours of each other and of the neighbours' copies.
pub fn with_copies(of: &Owned, copies: u32) -> Owned {
    let mut owned = Owned {
        starts: vec![0],
        neighbours: Vec::new(),
    };
    for vertex in 0..of.vertices() {
        let list = of.graph().neighbours[of.starts[vertex] as usize..of.starts[vertex + 1] as usize].to_vec();
        let mut closed: Vec<u32> = list.iter().copied().chain([vertex as u32]).collect();
        closed.sort_unstable();
        for copy in 0..copies {
            let own = vertex as u32 * copies + copy;
            let all = closed
                .iter()
                .flat_map(|&other| (0..copies).map(move |copy| other * copies + copy));
            owned.neighbours.extend(all.filter(|&other| other != own));
            owned.starts.push(owned.neighbours.len() as u64);
        }
    }
    owned
}

pub struct Fill {
    /// Nonzeros of the factor, diagonal included.
    pub nonzeros: u64,
    /// Sum of squares of its column counts.
    pub flops: f64,
}

/// Counts of the factor's columns: elimination tree (Liu 1990, section 4), then Gilbert, Ng, Peyton, "An efficient
/// algorithm to compute row and column counts for sparse Cholesky factorization", SIAM J. Matrix Anal. Appl. 15 (1994),
/// figure 3.
pub fn fill(graph: SymmetricGraph<'_>, order: &[u32]) -> Fill {
    let size = order.len();
    let mut rank = vec![0u32; size];
    for (at, &vertex) in order.iter().enumerate() {
        rank[vertex as usize] = at as u32;
    }
    let list = |at: usize| {
        let vertex = order[at] as usize;
        graph.neighbours[graph.starts[vertex] as usize..graph.starts[vertex + 1] as usize].iter()
    };
    let parent = parents(graph, order, &rank);
    let post = postorder(&parent);
    let mut first = vec![NONE; size];
    let mut delta = vec![0i64; size];
    for (at, &node) in post.iter().enumerate() {
        let mut node = node;
        delta[node as usize] = i64::from(first[node as usize] == NONE);
        while node != NONE && first[node as usize] == NONE {
            first[node as usize] = at as u32;
            node = parent[node as usize];
        }
    }
    let mut max_first = vec![NONE; size];
    let mut previous_leaf = vec![NONE; size];
    let mut set: Vec<u32> = (0..size as u32).collect();
    for &node in &post {
        if parent[node as usize] != NONE {
            delta[parent[node as usize] as usize] -= 1;
        }
        for &other in list(node as usize) {
            let above = rank[other as usize];
            if above <= node {
                continue;
            }
            let seen = max_first[above as usize];
            if seen != NONE && first[node as usize] <= seen {
                continue;
            }
            max_first[above as usize] = first[node as usize];
            delta[node as usize] += 1;
            let previous = std::mem::replace(&mut previous_leaf[above as usize], node);
            if previous != NONE {
                let mut root = previous;
                while set[root as usize] != root {
                    root = set[root as usize];
                }
                let mut at = previous;
                while at != root {
                    at = std::mem::replace(&mut set[at as usize], root);
                }
                delta[root as usize] -= 1;
            }
        }
        if parent[node as usize] != NONE {
            set[node as usize] = parent[node as usize];
        }
    }
    for at in 0..size {
        if parent[at] != NONE {
            delta[parent[at] as usize] += delta[at];
        }
    }
    // Counts so far are of entries below the diagonal and the diagonal of leaves' chains, as CSparse's: each is a
    // column's.
    let nonzeros = delta.iter().map(|&count| count as u64).sum();
    let flops = delta.iter().map(|&count| (count as f64) * (count as f64)).sum();
    Fill { nonzeros, flops }
}

/// The elimination tree of an order, in which each vertex has a rank.
fn parents(graph: SymmetricGraph<'_>, order: &[u32], rank: &[u32]) -> Vec<u32> {
    let size = order.len();
    let list = |at: usize| {
        let vertex = order[at] as usize;
        graph.neighbours[graph.starts[vertex] as usize..graph.starts[vertex + 1] as usize].iter()
    };
    let mut parent = vec![NONE; size];
    let mut ancestor = vec![NONE; size];
    for at in 0..size {
        for &other in list(at) {
            let mut below = rank[other as usize];
            while below < at as u32 {
                let next = std::mem::replace(&mut ancestor[below as usize], at as u32);
                if next == NONE {
                    parent[below as usize] = at as u32;
                    break;
                }
                if next == at as u32 {
                    break;
                }
                below = next;
            }
        }
    }
    parent
}

fn postorder(parent: &[u32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let size = parent.len();
    let (mut child, mut sibling) = (vec![NONE; size], vec![NONE; size]);
    for at in (0..size).rev() {
        if parent[at] != NONE {
            sibling[at] = std::mem::replace(&mut child[parent[at] as usize], at as u32);
        }
    }
    let mut post = Vec::with_capacity(size);
    let mut stack = Vec::new();
    for root in (0..size).filter(|&at| parent[at] == NONE) {
        stack.push(root as u32);
        while let Some(&top) = stack.last() {
            let next = std::mem::replace(&mut child[top as usize], NONE);
            if next == NONE {
                post.push(top);
                stack.pop();
                continue;
            }
            child[top as usize] = sibling[next as usize];
            stack.push(next);
        }
    }
    post
}

/// Column counts by elimination itself, for small graphs.
pub fn fill_naive(graph: SymmetricGraph<'_>, order: &[u32]) -> Fill {
    let mut lists: Vec<std::collections::BTreeSet<u32>> = (0..order.len())
        .map(|vertex| {
            graph.neighbours[graph.starts[vertex] as usize..graph.starts[vertex + 1] as usize]
                .iter()
                .copied()
                .collect()
        })
        .collect();
    let mut total = Fill {
        nonzeros: 0,
        flops: 0.0,
    };
    for &vertex in order {
        let list = std::mem::take(&mut lists[vertex as usize]);
        total.nonzeros += list.len() as u64 + 1;
        total.flops += ((list.len() + 1) * (list.len() + 1)) as f64;
        for &one in &list {
            lists[one as usize].extend(list.iter().copied().filter(|&other| other != one));
            lists[one as usize].remove(&vertex);
        }
    }
    total
}

pub fn path(vertices: u32) -> Owned {
    Owned::of_edges(
        vertices as usize,
        &(1..vertices).map(|at| (at - 1, at)).collect::<Vec<_>>(),
    )
}

/// One vertex that is the neighbour of all others.
pub fn star(vertices: u32) -> Owned {
    Owned::of_edges(vertices as usize, &(1..vertices).map(|at| (0, at)).collect::<Vec<_>>())
}

pub fn complete(vertices: u32) -> Owned {
    Owned::of_lists(
        (0..vertices)
            .map(|at| (0..vertices).filter(|&other| other != at).collect())
            .collect(),
    )
}

pub fn bipartite(one: u32, other: u32) -> Owned {
    let edges: Vec<_> = (0..one)
        .flat_map(|at| (one..one + other).map(move |to| (at, to)))
        .collect();
    Owned::of_edges((one + other) as usize, &edges)
}

pub fn repeated(graph: &Owned, times: u32) -> Owned {
    let vertices = graph.vertices() as u32;
    let list = |at: u32| &graph.neighbours[graph.starts[at as usize] as usize..graph.starts[at as usize + 1] as usize];
    let lists = (0..times).flat_map(|copy| (0..vertices).map(move |at| (copy * vertices, at)));
    Owned::of_lists(
        lists
            .map(|(first, at)| list(at).iter().map(|other| first + other).collect())
            .collect(),
    )
}

/// Xorshift (Marsaglia 2003).
pub fn random_numbers(mut state: u64) -> impl FnMut(u64) -> u32 {
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound) as u32
    }
}

pub fn random(vertices: usize, edges: usize) -> Owned {
    let mut random = random_numbers(88_172_645_463_325_252);
    let edges: Vec<_> = (0..edges)
        .map(|_| (random(vertices as u64), random(vertices as u64)))
        .collect();
    Owned::of_edges(vertices, &edges)
}

/// Preferential attachment: each vertex joins so many ends of earlier edges, met as often as their degree.
pub fn power_law(vertices: u32, edges_each: usize) -> Owned {
    let mut random = random_numbers(88_172_645_463_325_252);
    let mut edges: Vec<(u32, u32)> = vec![(0, 1)];
    for at in 2..vertices {
        for _ in 0..edges_each {
            let (one, other) = edges[random(edges.len() as u64) as usize];
            edges.push((at, if random(2) == 0 { one } else { other }));
        }
    }
    Owned::of_edges(vertices as usize, &edges)
}

/// The equations of a constrained grid: unknowns of a grid, and a multiplier for each of them without a diagonal entry.
pub fn kkt(side: usize) -> Owned {
    let grid = grid(side, 3, false);
    let vertices = grid.vertices() as u32;
    let mut edges = Vec::new();
    for at in 0..vertices {
        for &other in &grid.neighbours[grid.starts[at as usize] as usize..grid.starts[at as usize + 1] as usize] {
            edges.push((at, vertices + other));
            edges.push((at, other));
        }
        edges.push((at, vertices + at));
    }
    Owned::of_edges(2 * vertices as usize, &edges)
}
