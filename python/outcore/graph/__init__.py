"""Graphs on disk: lists of neighbours that are read when they are wanted, with what is known of each vertex in
memory."""

from outcore._lazy.absent import hinted
from outcore.graph._centrality import betweenness_centrality, degree_histogram, pagerank
from outcore.graph._communities import label_propagation, louvain_communities, maximal_independent_set
from outcore.graph._components import (
    connected_components,
    core_number,
    strongly_connected_components,
    topological_sort,
)
from outcore.graph._counts import average_clustering, clustering, scan_statistics, triangles
from outcore.graph._forecast import GraphForecast, explain
from outcore.graph._graph import Graph, open
from outcore.graph._making import from_arrays, from_edges, from_networkx, from_sparse, to_sparse
from outcore.graph._program import VertexProgram, state
from outcore.graph._searching import bfs, diameter, shortest_paths

__getattr__ = hinted(__name__)

__all__ = [
    "Graph",
    "GraphForecast",
    "VertexProgram",
    "average_clustering",
    "betweenness_centrality",
    "bfs",
    "clustering",
    "connected_components",
    "core_number",
    "degree_histogram",
    "diameter",
    "explain",
    "from_arrays",
    "from_edges",
    "from_networkx",
    "from_sparse",
    "label_propagation",
    "louvain_communities",
    "maximal_independent_set",
    "open",
    "pagerank",
    "scan_statistics",
    "shortest_paths",
    "state",
    "strongly_connected_components",
    "to_sparse",
    "topological_sort",
    "triangles",
]
