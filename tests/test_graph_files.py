"""Files of graphs: the bytes that are documented; and damaged, cut or lying ones, which are errors of ours."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.graphs import (
    HEADER_END,
    KINDS,
    PAGE,
    WORDS,
    Section,
    assemble,
    directed_of,
    encode,
    file_of,
    opened,
    section,
    weighted,
)
from support.running import assert_nothing_but_kept, session
from support.sizes import examples

import outcore as oc
from outcore.errors import FormatError, MissingFileError, OutcoreError, SourceChangedError
from outcore.graph import Graph

DRAWN = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Within the header: the marked bytes, and its checksum.
HEADER = HEADER_END + 4


def some(directed: bool = True) -> Any:
    """Lists of less and more than 255 bytes, on several pages, and vertices without any."""
    graph = nx.disjoint_union(nx.gnp_random_graph(40, 0.2, seed=1), nx.star_graph(400))
    graph.add_edges_from((45, v) for v in range(60, 400))
    graph.add_node(len(graph))
    return weighted(directed_of(graph) if directed else graph, 2)


def answers(G: Graph) -> list[Any]:
    """What every algorithm finds."""
    n = G.number_of_vertices
    first = [0][:n]
    found = [
        G.degrees("out"),
        G.degrees("in"),
        oc.graph.bfs(G, first, direction="both"),
        oc.graph.shortest_paths(G, first),
        oc.graph.connected_components(G),
        oc.graph.core_number(G),
        oc.graph.pagerank(G, tol=0, iterations=3),
        oc.graph.betweenness_centrality(G, first),
        *G.lists(np.arange(n, dtype=np.int64), "out"),
        *G.lists(np.arange(n, dtype=np.int64), "in"),
    ]
    if G.directed:
        return [*found, oc.graph.strongly_connected_components(G)]
    return [
        *found,
        oc.graph.triangles(G, each=True),
        oc.graph.label_propagation(G, iterations=3),
        oc.graph.maximal_independent_set(G),
    ]


@functools.cache
def whole_of(directed: bool) -> bytes:
    return file_of(some(directed), "float32")


ANSWERS: dict[bool, list[Any]] = {}


def answers_of(directed: bool, folder: Path) -> list[Any]:
    if directed not in ANSWERS:
        ANSWERS[directed] = answers(opened(folder / "right.ocg", whole_of(directed)))
    return ANSWERS[directed]


def outcome(path: Path, data: bytes) -> tuple[list[Any], OutcoreError | None]:
    try:
        return answers(opened(path, data)), None
    except OutcoreError as error:
        failed = error
    assert str(path) in str(failed)
    assert "\n" not in str(failed)
    return [], failed


def error_of(path: Path, data: bytes, right: list[Any]) -> OutcoreError | None:
    """How a changed file is refused; if it is not, it must give what the right one gives."""
    found, error = outcome(path, data)
    if error is not None:
        return error
    for value, wanted in zip(found, right, strict=True):
        assert np.array_equal(value, wanted)
    return None


# -- the bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("directed", "dtype"), [(False, ""), (True, "float32"), (True, "")])
def test_a_second_hand_writes_the_same_file(kind: str, directed: bool, dtype: str, out: Path) -> None:
    graph = weighted(directed_of(KINDS[kind]()) if directed else KINDS[kind]())
    ends = np.array(list(graph.edges()), np.int64).reshape(-1, 2)
    weights = np.array([data["weight"] for *_, data in graph.edges(data=True)], dtype) if dtype else None
    with session(out):
        made = oc.graph.from_arrays(
            ends[:, 0], ends[:, 1], out / "g.ocg", weights=weights, vertices=len(graph), directed=directed
        )
    assert made.path.read_bytes() == file_of(graph, dtype)


def test_the_farthest_neighbours_come_back(out: Path) -> None:
    """Gaps of one to three bytes; those of four, and distances of 33 bits, need a file of 2 GB."""
    n = 70_000
    lists: list[list[int]] = [[] for _ in range(n)]
    lists[0] = [0, 1, 255, 256, 257, 65_535, 65_536, n - 1]
    lists[n - 1] = [0, n - 1]
    lists[300] = list(range(0, n, 3))
    with session(out):
        G = opened(out / "g.ocg", assemble([section(lists), section(lists)]))
        for vertex in (0, 300, n - 1):
            assert G.neighbors(vertex).tolist() == lists[vertex]
        assert G.number_of_entries == sum(map(len, lists))


# -- damage -----------------------------------------------------------------------------------------------------------


def test_every_bit_of_the_header_and_of_what_tells_where_lists_are(out: Path) -> None:
    graph = weighted(directed_of(nx.star_graph(40)))
    whole = file_of(graph, "int16")
    with session(out):
        right = answers(opened(out / "g.ocg", whole))
        # All behind the lists of each direction: two pages of weights and lists come before.
        told = [*range(3 * PAGE, 4 * PAGE), *range(6 * PAGE, 7 * PAGE)]
        for at in [*range(HEADER), *(at for at in told if whole[at])]:
            for bit in range(8) if at < HEADER else (at % 8,):
                data = bytearray(whole)
                data[at] ^= 1 << bit
                assert isinstance(error_of(out / "g.ocg", bytes(data), right), FormatError), at


@DRAWN
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), directed=st.booleans())
def test_a_flipped_bit_anywhere(place: float, bit: int, directed: bool, out: Path) -> None:
    whole = whole_of(directed)
    data = bytearray(whole)
    data[int(place * len(whole))] ^= 1 << bit
    with session(out):
        right = answers_of(directed, out)
        error = error_of(out / "g.ocg", bytes(data), right)
        assert error is None or isinstance(error, FormatError)


def test_every_length_a_file_can_be_cut_to(out: Path) -> None:
    whole = file_of(some(), "float32")
    # The last page is full of zeros behind the last checksum.
    end = len(whole.rstrip(b"\0"))
    with session(out):
        for length in (0, 1, 8, HEADER - 1, HEADER, *range(PAGE - 1, end, 511), end - 1):
            with pytest.raises(FormatError, match=r"g\.ocg"):
                opened(out / "g.ocg", whole[:length])
        # What stands behind all is of no account.
        assert opened(out / "g.ocg", whole + b"more").number_of_vertices == len(some())


def test_bytes_of_anything(out: Path) -> None:
    with session(out):
        for data in (b"", b"OCGRAPHS", b"\0" * 5000, b"OCGRAPHS" + b"\xff" * 9000, os.urandom(10_000)):
            with pytest.raises(FormatError, match=r"g\.ocg"):
                opened(out / "g.ocg", data)
        with pytest.raises(MissingFileError, match="none"):
            oc.graph.open(out / "none.ocg")
        with pytest.raises(OutcoreError):
            oc.graph.open(out)
        path = oc.sparse.from_coo([0], [1], None, (2, 2), out / "a.ocs").path
        with pytest.raises(FormatError, match="does not begin with OCGRAPHS"):
            oc.graph.open(path)


def test_a_file_that_changes_while_it_is_open(out: Path) -> None:
    path = out / "g.ocg"
    with session(out):
        G = opened(path, file_of(nx.path_graph(50)))
        path.write_bytes(file_of(nx.star_graph(49)))
        with pytest.raises((SourceChangedError, FormatError), match=r"g\.ocg"):
            oc.graph.bfs(G, 0)


# -- lies -------------------------------------------------------------------------------------------------------------

HUGE = (2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)


def sections() -> list[Section]:
    graph = some()
    return [
        section([sorted(of[v]) for v in range(len(graph))], np.ones(graph.number_of_edges(), "float32").tobytes())
        for of in (graph.adj, graph.pred)
    ]


def lying(**lies: int) -> bytes:
    parts = sections()
    parts[1].lies = lies
    return assemble(parts, dtype="float32")


LIES: dict[str, Callable[[], bytes]] = {
    **{
        f"{word} {value}": lambda word=word, value=value: lying(**{word: value})
        for word in WORDS
        for value in (0, *HUGE)
    },
    **{
        f"{value} vertices": lambda value=value: assemble(sections(), dtype="float32", vertices=value) for value in HUGE
    },
    **{
        f"{value} edges": lambda value=value: assemble(sections(), dtype="float32", edges=value)
        for value in (0, 1, *HUGE)
    },
    "fewer vertices": lambda: assemble(sections(), dtype="float32", vertices=100),
    "no vertex": lambda: assemble(sections(), dtype="float32", vertices=0),
    "version 2": lambda: assemble(sections(), dtype="float32", version=2),
    "an unknown type": lambda: assemble(sections(), dtype="float33"),
    "a longer type": lambda: assemble(sections(), dtype="float64"),
    "weights beside pages": lambda: lying(weights=PAGE + 8),
    "lists beside pages": lambda: lying(lists=PAGE + 8),
    "lists in the header": lambda: lying(lists=0),
    "weights that are lists": lambda: lying(lists=PAGE),
    "one list more": lambda: lying(large_lists=3),
    "one degree less": lambda: lying(large_degrees=0),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_lies_with_right_checksums(lie: str, out: Path) -> None:
    with session(out), pytest.raises(FormatError, match=r"g\.ocg"):
        answers(opened(out / "g.ocg", LIES[lie]()))


def forged(lists: dict[int, bytes], *, like: int = 4, degrees: dict[int, int] | None = None, dtype: str = "") -> bytes:
    """A circle of some vertices, with other bytes for some lists."""
    own = [sorted({(v - 1) % like, (v + 1) % like}) for v in range(like)]
    part = section(own, np.ones(2 * like, dtype).tobytes() if dtype else b"")
    for vertex, data in lists.items():
        part.lists[vertex] = data
    for vertex, degree in (degrees or {}).items():
        part.degrees[vertex] = degree
    return assemble([part], dtype=dtype, edges=2 * like)


BROKEN = {
    "no neighbour": b"\0\0",
    "more neighbours than bytes": b"\x7e\0\1",
    "a count without an end": b"\xff" * 9,
    "a count of 35 bits": b"\x84\x80\x80\x80\x40\0\0",
    "a vertex beyond": encode(1, [0, 4]),
    "far beyond": encode(1, [2**32 - 2]),
    "before the first": b"\x02\0\x05",
    "a gap that wraps": b"\x04\x0f" + b"\xff" * 8,
    "cut": encode(1, [0, 2])[:-1],
    "longer": encode(1, [0, 2]) + b"\0",
    "gaps of more bytes": b"\x04\x0f\1\2",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_list_that_is_none(broken: str, out: Path) -> None:
    with session(out):
        G = opened(out / "g.ocg", forged({1: BROKEN[broken]}))
        for call in (
            lambda: G.neighbors(1),
            lambda: oc.graph.betweenness_centrality(G, [0]),
            lambda: oc.graph.connected_components(G),
            lambda: oc.graph.triangles(G),
            lambda: oc.graph.pagerank(G),
            lambda: G.number_of_loops,
        ):
            with pytest.raises(FormatError, match=r"g\.ocg: .*(list|neighbour)"):
                call()


@pytest.mark.parametrize("threads", [1, 8])
def test_a_list_that_is_none_ends_all_threads(threads: int, out: Path) -> None:
    """One far within megabytes of others."""
    n = 60_000
    inner = encode(40, [v for v in range(81) if v != 40])
    lists = [b""] * 40 + [inner] * (n - 80) + [b""] * 40
    lists[n // 2] = encode(n // 2, [n] * 80)
    with session(out, threads=threads) as current:
        G = opened(out / "g.ocg", assemble([Section(lists, [80 * bool(each) for each in lists])]))
        for call in (oc.graph.connected_components, oc.graph.pagerank, oc.graph.triangles, oc.graph.core_number):
            with pytest.raises(FormatError, match=r"g\.ocg: .*no vertex"):
                call(G)
            assert_nothing_but_kept(current)
        assert G.neighbors(n // 2 - 1)[0] == n // 2 - 41


def test_degrees_that_are_not_those_of_the_lists(out: Path) -> None:
    with session(out):
        G = opened(out / "g.ocg", forged({}, degrees={0: 1, 1: 3}, dtype="float64"))
        for call in (lambda: G.neighbors(1), lambda: oc.graph.shortest_paths(G, 0)):
            with pytest.raises(FormatError, match="more or fewer neighbours than its degree"):
                call()
        for degrees in ({0: 3}, {0: 1}):
            G = opened(out / "g.ocg", forged({}, degrees=degrees))
            with pytest.raises(FormatError, match=r"degrees come to [79] edges, the header tells of 8"):
                G.degrees()


@DRAWN
@given(data=st.data())
def test_any_lists_with_right_checksums(data: st.DataObject, out: Path) -> None:
    """Graphs that are not what they say, and bytes that are no lists: an answer or an error, no crash and no hang."""
    n = data.draw(st.sampled_from((1, 2, 5, 70)))
    neighbours = st.lists(st.integers(0, n - 1), max_size=9).map(sorted)
    lists = data.draw(st.lists(neighbours, min_size=n, max_size=n))
    parts = [section(lists)]
    if data.draw(st.booleans()):
        # As many edges the other way, and other ones.
        parts.append(section(data.draw(st.permutations(lists))))
    edges = sum(parts[0].degrees)
    for part in parts:
        if data.draw(st.booleans()):
            part.lists[data.draw(st.integers(0, n - 1))] = data.draw(st.binary(max_size=9))
    with session(out):
        found, error = outcome(out / "g.ocg", assemble(parts, edges=edges))
        if error is not None:
            assert isinstance(error, FormatError)
            return
        assert ((found[2] >= -1) & (found[2] < n)).all()
        assert found[9].max(initial=0) < n
