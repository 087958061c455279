//! Graphs as lists of neighbours: the caller's, views with weights, and those made on the way.

/// Undirected graph without loops: neighbours of v are `neighbours[starts[v]..starts[v+1]]`, ascending, each edge in
/// both lists.
#[derive(Clone, Copy)]
pub struct SymmetricGraph<'a> {
    pub starts: &'a [u64],
    pub neighbours: &'a [u32],
}

impl<'a> SymmetricGraph<'a> {
    pub(crate) fn vertices(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub(crate) fn neighbours_of(&self, vertex: usize) -> &'a [u32] {
        &self.neighbours[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }
}

/// A graph with weights, borrowed. No weights at all stand for ones. Edge weights saturate: they only order edges by
/// weight.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) starts: &'a [u64],
    pub(crate) neighbours: &'a [u32],
    pub(crate) edge_weights: &'a [u16],
    pub(crate) vertex_weights: &'a [u32],
}

impl<'a> View<'a> {
    pub(crate) fn plain(graph: SymmetricGraph<'a>) -> View<'a> {
        let starts = if graph.starts.is_empty() { &[0] } else { graph.starts };
        View {
            starts,
            neighbours: graph.neighbours,
            edge_weights: &[],
            vertex_weights: &[],
        }
    }

    #[inline]
    pub(crate) fn vertices(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    pub(crate) fn range(&self, vertex: usize) -> std::ops::Range<usize> {
        self.starts[vertex] as usize..self.starts[vertex + 1] as usize
    }

    #[inline]
    pub(crate) fn degree(&self, vertex: usize) -> usize {
        self.range(vertex).len()
    }

    #[inline]
    pub(crate) fn neighbours_of(&self, vertex: usize) -> &'a [u32] {
        &self.neighbours[self.range(vertex)]
    }

    #[inline]
    pub(crate) fn weight(&self, vertex: usize) -> u32 {
        if self.vertex_weights.is_empty() {
            1
        } else {
            self.vertex_weights[vertex]
        }
    }

    pub(crate) fn total_weight(&self) -> u32 {
        if self.vertex_weights.is_empty() {
            self.vertices() as u32
        } else {
            self.vertex_weights.iter().sum()
        }
    }
}

/// A graph with weights, owned.
#[derive(Default)]
pub(crate) struct Weighted {
    pub(crate) starts: Vec<u64>,
    pub(crate) neighbours: Vec<u32>,
    pub(crate) edge_weights: Vec<u16>,
    pub(crate) vertex_weights: Vec<u32>,
}

impl Weighted {
    pub(crate) fn view(&self) -> View<'_> {
        View {
            starts: &self.starts,
            neighbours: &self.neighbours,
            edge_weights: &self.edge_weights,
            vertex_weights: &self.vertex_weights,
        }
    }
}
