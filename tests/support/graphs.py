"""Graphs to test with, and their files written by a second hand: the format as it is documented, in plain Python."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import google_crc32c
import networkx as nx
import numpy as np
from hypothesis import strategies as st

import outcore as oc

PAGE = 4096
HEADER_END = 208
WORDS = ("weights", "lists", "list_bytes", "index", "large_lists", "degrees", "large_degrees", "checksums")


def crc(data: bytes) -> int:
    return int(google_crc32c.value(data))


def encode(vertex: int, neighbours: Sequence[int]) -> bytes:
    """A list: number of neighbours, two bits for the length of each gap, gaps of 1 to 4 bytes."""
    if not neighbours:
        return b""
    apart = neighbours[0] - vertex
    near = 2 * apart if apart >= 0 else -2 * apart - 1
    plain = near >= 1 << 32
    head, rest = bytearray(), len(neighbours) << 1 | plain
    while rest >= 0x80:
        head.append(rest & 0x7F | 0x80)
        rest >>= 7
    head.append(rest)
    gaps = [neighbours[0] if plain else near]
    gaps += [after - before for before, after in itertools.pairwise(neighbours)]
    lengths = [max((gap.bit_length() + 7) // 8, 1) for gap in gaps]
    codes = bytearray(-(-len(gaps) // 4))
    for at, length in enumerate(lengths):
        codes[at // 4] |= (length - 1) << 2 * (at % 4)
    coded = (gap.to_bytes(length, "little") for gap, length in zip(gaps, lengths, strict=True))
    return bytes(head + codes) + b"".join(coded)


@dataclass
class Section:
    """One direction: the bytes of each list, the number of neighbours of each vertex, and all weights."""

    lists: list[bytes]
    degrees: list[int]
    weights: bytes = b""
    # Words of the header's that lie.
    lies: dict[str, int] = field(default_factory=dict)
    index: bytes | None = None


def section(lists: Sequence[Sequence[int]], weights: bytes = b"") -> Section:
    return Section([encode(vertex, each) for vertex, each in enumerate(lists)], [len(each) for each in lists], weights)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % PAGE)


def index_of(lengths: Iterable[int]) -> tuple[bytes, int]:
    known = list(lengths)
    large = [(vertex, length) for vertex, length in enumerate(known) if length >= 255]
    return bytes(min(length, 255) for length in known) + b"".join(struct.pack("<IQ", *each) for each in large), len(
        large
    )


def assemble(sections: Sequence[Section], *, dtype: str = "", edges: int | None = None, **header: int) -> bytes:
    """The file, with every checksum right."""
    vertices = header.get("vertices", len(sections[0].lists))
    edges = sum(sections[0].degrees) if edges is None else edges
    body, places = b"", b""
    for part in sections:
        body = padded(body)
        weights, lists = padded(part.weights), padded(b"".join(part.lists))
        index, large_lists = index_of(map(len, part.lists))
        index = index if part.index is None else part.index
        degrees, large_degrees = index_of(part.degrees)
        sums = b"".join(
            struct.pack("<I", crc(pages[at : at + PAGE]))
            for pages in (weights, lists)
            for at in range(0, len(pages), PAGE)
        )
        at = PAGE + len(body)
        after = at + len(weights) + len(lists)
        words = {
            "weights": at,
            "lists": at + len(weights),
            "list_bytes": sum(map(len, part.lists)),
            "index": after,
            "large_lists": large_lists,
            "degrees": after + len(index),
            "large_degrees": large_degrees,
            "checksums": after + len(index) + len(degrees),
        }
        words |= part.lies
        places += struct.pack("<8Q4I", *(words[word] for word in WORDS), crc(index), crc(degrees), crc(sums), 0)
        body += weights + lists + index + degrees + sums
    version, flags = header.get("version", 1), header.get("flags", len(sections) - 1)
    head = b"OCGRAPHS" + struct.pack("<IIQQ16s", version, flags, vertices, edges, dtype.encode()) + places
    head += bytes(HEADER_END - len(head))
    return padded(padded(head + struct.pack("<I", crc(head))) + body)


def lists_of(graph: Any, direction: str = "out") -> list[list[int]]:
    adjacency = graph.pred if direction == "in" else graph.adj
    return [sorted(adjacency[vertex]) for vertex in range(len(graph))]


def file_of(graph: Any, dtype: str = "") -> bytes:
    """The file of a graph of networkx's with nodes 0 to n - 1, whose edges have a weight if there is a type."""

    def one(direction: str) -> Section:
        lists = lists_of(graph, direction)
        ends = ((v, u) if direction == "in" else (u, v) for u, each in enumerate(lists) for v in each)
        weights = np.array([graph.edges[end]["weight"] for end in ends], dtype).tobytes() if dtype else b""
        return section(lists, weights)

    return assemble([one(name) for name in ("out", "in")[: 1 + graph.is_directed()]], dtype=dtype)


def write(graph: Any, folder: Path, dtype: str = "", name: str = "g.ocg") -> oc.graph.Graph:
    return opened(folder / name, file_of(graph, dtype))


def opened(path: Path, data: bytes) -> oc.graph.Graph:
    """The file of some bytes. It is long written: what is new is looked at twice, some milliseconds apart."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))
    return oc.graph.open(path)


def weighted(graph: Any, seed: int = 0, highest: int = 9) -> Any:
    """The same with whole weights from 0: sums of them are exact."""
    random = np.random.default_rng(seed)
    for *_, data in graph.edges(data=True):
        data["weight"] = int(random.integers(0, highest + 1))
    return graph


def rmat(bits: int, edges: int, seed: int = 0, *, directed: bool = True) -> Any:
    ends = np.stack(
        [np.asarray(oc.compute(part)) for part in oc.sparse.rmat_edges(1 << bits, edges, seed=seed)], axis=1
    )
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(1 << bits))
    graph.add_edges_from(ends.tolist())
    return graph


def isolated(graph: Any) -> Any:
    """With vertices without edges before, between and behind, and loops."""
    made = type(graph)()
    made.add_nodes_from(range(3 * len(graph) + 5))
    made.add_edges_from((3 * u + 2, 3 * v + 2) for u, v in graph.edges())
    made.add_edges_from((v, v) for v in (0, 2, 8))
    return made


KINDS: dict[str, Callable[[], Any]] = {
    "empty": lambda: nx.empty_graph(0),
    "one": lambda: nx.empty_graph(1),
    "loop": lambda: nx.Graph([(0, 0)]),
    "edgeless": lambda: nx.empty_graph(70),
    "path": lambda: nx.path_graph(70),
    "star": lambda: nx.star_graph(400),
    "complete": lambda: nx.complete_graph(80),
    "circles": lambda: nx.disjoint_union(nx.cycle_graph(65), nx.cycle_graph(3)),
    "tree": lambda: nx.balanced_tree(3, 4),
    "isolated": lambda: isolated(nx.gnp_random_graph(50, 0.1, seed=1)),
    "rmat": lambda: rmat(9, 3000, directed=False),
}


def directed_of(graph: Any, seed: int = 0) -> Any:
    """Each edge one way, the other, or both."""
    random = np.random.default_rng(seed)
    made = nx.DiGraph()
    made.add_nodes_from(graph)
    for u, v in graph.edges():
        way = random.integers(3)
        made.add_edges_from([(u, v)] * int(way != 1) + [(v, u)] * int(way != 0))
    return made


@st.composite
def graphs(draw: st.DrawFn, directed: bool | None = None) -> Any:
    """A drawn graph, with loops and vertices without edges."""
    directed = draw(st.booleans()) if directed is None else directed
    graph = nx.DiGraph() if directed else nx.Graph()
    count = draw(st.sampled_from((0, 1, 2, 3, 7, 33, 100, 300)))
    graph.add_nodes_from(range(count))
    if count:
        random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        edges = int(count * draw(st.sampled_from((0.0, 0.5, 1.0, 3.0, 8.0))))
        power = draw(st.sampled_from((1, 3)))
        graph.add_edges_from((count * random.random((edges, 2)) ** power).astype(int).tolist())
    return weighted(graph, draw(st.integers(0, 5)))


def circulant(n: int, steps: Sequence[int], *, weights: bool = False) -> bytes:
    """The file of a circle of vertices, each with neighbours so many steps away both ways; steps are the weights."""
    around = sorted([*steps, *(-step for step in steps)])
    far = max(steps)
    inner = encode(far, [far + step for step in around])
    edge = {v: sorted(((v + step) % n, abs(step)) for step in around) for v in (*range(far), *range(n - far, n))}
    lists = [encode(v, [u for u, _ in edge[v]]) if v in edge else inner for v in range(n)]
    values = b""
    if weights:
        inner_weights = np.abs(np.array(around, np.float64)).tobytes()
        values = b"".join(
            np.array([w for _, w in edge[v]], np.float64).tobytes() if v in edge else inner_weights for v in range(n)
        )
    return assemble([Section(lists, [len(around)] * n, values)], dtype="float64" if weights else "")
