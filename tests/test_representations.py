"""Everything public in terminals and notebooks: it fits, escapes what it shows, and neither runs nor reads for it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import outcore as oc
from outcore import learn
from outcore._session import record as _record
from outcore._session.session import current
from outcore._show.spy import spy_picture
from outcore._show.tiles import tiles_picture

COLUMNS = 100
PAGE_BYTES = 4096
SCRIPT = "<script>alert(1)</script>"
ROOMS = (
    *("config", "constants", "dates", "elementwise", "errors", "fft", "graph", "io", "learn", "learn.metrics"),
    *("linalg", "random", "sparse", "sparse.linalg", "stats", "text"),
)
# Their text is that of a plan, a drawing or a run, which has tests of its own; errors and `config.set` are no values.
OTHERS = {"Explanation", "Picture", "Profile", "set", "VertexProgram", "Preconditioner"}

Made = dict[str, Any]


def public_classes() -> set[type]:
    modules = [oc, *(importlib.import_module(f"outcore.{name}") for name in ROOMS)]
    values = (getattr(module, name) for module in modules for name in module.__all__)
    ours = {value for value in values if inspect.isclass(value) and value.__module__.startswith("outcore")}
    return {value for value in ours if not issubclass(value, BaseException) and value.__name__ not in OTHERS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path has more than 200 characters."""
    made = tmp_path_factory.mktemp("shown") / "/".join(["a-folder-of-measurements"] * 8) / "x & <b>y</b>"
    made.mkdir(parents=True)
    return made


def arrays(folder: Path) -> Made:
    np.save(folder / "x.npy", np.arange(6000.0).reshape(60, 100))
    x = oc.open(folder / "x.npy")
    named = oc.zeros((40, 30)).annotate(name=SCRIPT, dims=("<i>time</i>", "d" * 300))
    deep = x
    for _ in range(700):
        deep = deep + 1
    return {
        "Array": x,
        "product": x.T @ x,
        "made": (oc.sqrt(x) + 1).sum(axis=0),
        "huge": oc.zeros((10**6, 10**5, 10**6)),
        "axes": oc.ones((12,) * 12),
        "none": oc.zeros((0, 3)),
        "scalar": oc.asarray(3.5),
        "memory": oc.asarray(np.arange(500.0)),
        "held": oc.persist(x + 1),
        "named": named,
        "deep": deep,
        "pending": x[x > 3],
        "Dates": oc.asarray(np.asarray(["2020-01-01", "2021-02-03"], "M8[D]")),
        "Text": oc.asarray(np.asarray([SCRIPT, "ann" * 90])),
        "chosen text": oc.asarray(np.asarray(["ann", "bob"]))[oc.asarray([True, False])],
        "Categorical": oc.Categorical(oc.asarray(np.asarray([1, 0, -1], "int32")), [SCRIPT, "oslo" * 100]),
    }


def gathered(folder: Path, x: oc.Array) -> Made:
    names = {"n" * 300: [1.0, 2.0], SCRIPT: np.asarray([SCRIPT, "y" * 500])}
    table = oc.table(**names)
    members = {"m" * 300: x, "<script>": oc.zeros((10,) * 12), "within": oc.group(x=x)}
    oc.store({folder / "group.zarr": oc.group(**{f"member-{place}": oc.arange(9) for place in range(60)})})
    return {
        "Table": table,
        "wide": oc.table({f"column {place}": [1, 2] for place in range(500)}),
        "filtered": table.filter(table["n" * 300] > 1),
        "Group": oc.group(members, attrs={SCRIPT: 1, "a" * 300: 2}),
        "stored group": oc.open(folder / "group.zarr"),
        "GroupBy": oc.groupby(np.asarray([3, 1, 3])),
        "Histogram": oc.histogram(x, bins=10),
        "TopK": oc.top_k(oc.reshape(x, (-1,)), 3),
        "unique": oc.unique_all(x),
        "Summary": oc.stats.summary(x),
        "Description": oc.stats.describe(x),
        "counted description": oc.stats.describe(x).compute(),
        "finfo": oc.finfo("float64"),
        "info": oc.__array_namespace_info__(),
    }


def matrices(folder: Path) -> Made:
    generator = np.random.default_rng(1)
    A = oc.sparse.from_scipy(scipy.sparse.random(50_000, 40_000, 1e-4, "csr", rng=generator), folder / "a.ocs")
    spd = oc.sparse.from_scipy(scipy.sparse.eye(30, format="csr") * 4.0, folder / "spd.ocs")
    dense = generator.normal(size=(8, 8))
    G = oc.graph.from_arrays([0, 0, 5], [1, 2, 3], folder / f"{'g' * 60}.ocg")
    undirected = oc.graph.from_arrays([0, 0], [1, 2], folder / "u.ocg", directed=False)
    return {
        "SparseMatrix": A,
        "transposed": A.T,
        "lazy": A * 2.0,
        "sparse product": A @ A.T,
        "Factorization": oc.sparse.linalg.cholesky(spd),
        "FactorForecast": oc.sparse.linalg.analyze(spd).explain(),
        "Inertia": oc.sparse.linalg.Inertia(10**15, 10**15, 10**15),
        "LimitCost": oc.sparse.linalg.LimitCost(10**15, 10**15, 10**15, 10**15),
        "LSMRResult": oc.sparse.linalg.lsmr(spd, np.ones(30)),
        "CholeskyFactor": oc.linalg.cho_factor(np.eye(8) * 4),
        "LUFactor": oc.linalg.lu_factor(dense),
        "LDLFactor": oc.linalg.ldl_factor(dense + dense.T),
        "QRFactor": oc.linalg.qr_factor(dense),
        "QRResult": oc.linalg.qr(dense),
        "SVDResult": oc.linalg.svd(dense),
        "EigResult": oc.linalg.eigh(dense + dense.T),
        "SlogdetResult": oc.linalg.slogdet(dense),
        "LstsqResult": oc.linalg.lstsq(dense, dense),
        "Graph": G,
        "undirected": undirected,
        "edges": G.edges,
        "GraphForecast": oc.graph.explain(oc.graph.bfs, G, 0),
        "CachedFile": oc.io.cached(folder / "x.npy"),
        "CacheCounters": oc.io.CacheCounters(*[10**15] * 6),
    }


def models(x: oc.Array) -> Made:
    rows = np.random.default_rng(2).normal(size=(40, 4))
    classes = {name: getattr(learn, name) for name in learn.__all__ if inspect.isclass(getattr(learn, name))}
    return {
        **{name: made() for name, made in classes.items()},
        "fitted": learn.KMeans(n_clusters=3, random_state=0).fit(rows),
        "fitted lazily": learn.PCA(n_components=2).fit(oc.asarray(rows)),
        "parameters": learn.KMeans(init=np.zeros((3000, 4)), n_clusters=10**9, checkpoint=10**12, random_state=10**9),
        "text": learn.NMF(init=f"{SCRIPT}{'i' * 300}", n_components=7),
        "an array": learn.KMeans(init=x),
    }


@pytest.fixture(scope="module")
def made(folder: Path) -> Iterator[Made]:
    with oc.Session(memory_limit="2GiB", progress=False) as session:
        few = arrays(folder)
        x = few["Array"]
        outcome = oc.store({folder / "y.npy": x})
        other = {SCRIPT: "o" * 500, "write_seconds": 1.5}
        yield {
            **few,
            **gathered(folder, x),
            **matrices(folder),
            **models(x),
            "Outcome": outcome,
            "spilled": _record.Outcome(10**17, 10**17, 10**17, 10**17, 1e9, 1e9, 1e9, other),
            "Session": session,
            "Loop": oc.iterate(lambda y: (y / 2, {SCRIPT: y.sum()}), oc.ones(10), max_iter=3),
        }


def representations(value: object) -> list[Callable[[], str]]:
    html = getattr(value, "_repr_html_", None)
    return [lambda: repr(value), lambda: str(value), *([html] if html is not None else [])]


def shown(value: object) -> list[str]:
    return [show() for show in representations(value)]


def read_by(call: Callable[[], object]) -> int:
    """Bytes of arrays and of what says where they are."""
    counters = current().counters
    before = counters()
    call()
    return sum(counters()[name] - before[name] for name in ("bytes_read", "metadata_bytes_read"))


class Elements(HTMLParser):
    """Names and attributes of elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_every_public_class_is_made_here(made: Made) -> None:
    kinds = {type(value) for value in made.values()}
    assert {kind.__name__ for kind in public_classes() - kinds} == set()


def test_text_fits_a_terminal(made: Made) -> None:
    wide = {
        f"{name}: {line}"
        for name, value in made.items()
        for text in ([repr(value)] if name == "FactorForecast" else [repr(value), str(value)])
        for line in text.splitlines()
        if len(line) > COLUMNS
    }
    assert wide == set()


def test_nothing_runs_and_no_more_than_a_page_is_read(made: Made) -> None:
    for name, value in made.items():
        with oc.profile() as seen:
            first, *others = map(read_by, representations(value))
        assert first <= PAGE_BYTES, name
        # Of a group members are opened, a header each, for their shapes: the first time alone.
        assert max(others) <= (0 if name == "stored group" else PAGE_BYTES), name
        assert seen.outcomes == [], name


def test_html_shows_names_as_text_and_needs_nothing_from_elsewhere(made: Made) -> None:
    cards = {name: value._repr_html_() for name, value in made.items() if hasattr(value, "_repr_html_")}
    assert len(cards) > 50
    for name, text in cards.items():
        elements = Elements(text).elements
        assert elements[0] == ("div", {"class": "outcore-card"}), name
        tags = {tag for tag, _ in elements}
        assert tags <= {
            *("div", "style", "table", "tbody", "tr", "th", "td", "code"),
            *("svg", "rect", "line", "path", "text"),
        }, name
        assert not any(key.startswith("on") or key in ("src", "href") for _, attrs in elements for key in attrs), name
        for tag, attrs in elements:
            if tag == "svg":
                assert attrs["role"] == "img"
                assert attrs["aria-label"]
                assert float(attrs["width"] or 0) <= 396, "a card of 420 pixels has room for it"


def test_styles_stay_within_the_card(made: Made) -> None:
    style = re.findall(r"<style>(.*?)</style>", made["Array"]._repr_html_())[0]
    rules = re.findall(r"([^{}]+)\{([^}]*)\}", style)
    assert len(rules) > 5
    for selectors, body in rules:
        assert all(part.startswith(".outcore-card") for part in selectors.split(",")), selectors
        assert not re.search(r"#[0-9a-f]{3}|rgb|position|background:(?!none)", body), body


def test_a_path_is_shortened_with_the_whole_on_hover(made: Made, folder: Path) -> None:
    text = repr(made["Array"])
    assert "x.npy" in text
    assert str(folder) not in text
    titles = [attrs["title"] for _, attrs in Elements(made["Array"]._repr_html_()).elements if "title" in attrs]
    assert str(folder / "x.npy") in titles


def test_first_values_stand_where_they_cost_a_page_at_most(made: Made) -> None:
    assert "[0. 1. 2. 3. 4. 5. …]" in repr(made["Array"])
    assert "[0. 1. 2. 3. 4. 5. …]" in repr(made["memory"])
    assert "[1. 2. 3. 4. 5. 6. …]" in repr(made["held"])
    assert "'2020-01-01'" in repr(made["Dates"])
    assert "[" not in repr(made["product"])
    assert "2.]" in repr(made["Table"])


def test_first_values_are_whole_and_end_with_an_ellipsis() -> None:
    x = np.random.default_rng(3).normal(size=200) * 10.0 ** np.arange(-100, 100)
    arrays = [x[first : first + 20] for first in range(0, 180, 7)] + [
        x[:6] * (1 + 1j),
        x[:3],
        np.arange(10**12, 10**12 + 9),
    ]
    for values in arrays:
        for text in (repr(oc.asarray(values)), repr(oc.table(**{"n" * 30: values}))):
            (said,) = re.findall(r"\[(.*)\]", text)
            numbers = said.removesuffix(" …").split()
            assert ("…" in said) == (len(numbers) < len(values)), text
            assert numbers
            found = np.asarray([complex(number.replace(".j", "j")) for number in numbers])
            digits = 5e-5 * max(1.0, np.abs(values[: len(numbers)]).max())
            assert np.allclose(found, values[: len(numbers)], rtol=1e-3, atol=digits)


def test_a_group_opens_the_members_whose_headers_are_a_page(made: Made, folder: Path) -> None:
    with oc.Session(memory_limit="1GiB", progress=False):
        group = oc.open(folder / "group.zarr")
        text = repr(group)
        shown = [name for name in group if f"{name} (dim_0: 9) int64" in text]
        left = [name for name in group if f"{name}: not opened yet" in text]
        assert len(shown) + len(left) == 40
        read = [(folder / "group.zarr" / name / "zarr.json").stat().st_size for name in shown]
        assert sum(read) <= PAGE_BYTES < sum(read) + 2 * max(read)
        assert group[left[-1]].shape == (9,)
        assert f"{left[-1]} (dim_0: 9) int64" in repr(group)
        assert "not opened yet" not in repr(oc.group({f"x{place}": oc.arange(3) for place in range(40)}))


def test_values_of_other_layouts_are_those_of_numpy(tmp_path: Path) -> None:
    x = np.arange(12, dtype=">i4").reshape(3, 4)
    for name, array in {"big": x, "fortran": np.asfortranarray(x.astype("<f4")), "bool": x > 0, "one": x[0, 0]}.items():
        np.save(tmp_path / f"{name}.npy", array)
        text = repr(oc.open(tmp_path / f"{name}.npy"))
        first = re.search(r": \[(.*?)[ …]*\]\)", text)
        if first is not None:
            numbers = [part == "True" if part in ("True", "False") else float(part) for part in first[1].split()]
            assert numbers == np.ravel(array)[: len(numbers)].tolist(), name


def test_a_lazy_array_says_what_it_is_made_of(made: Made) -> None:
    assert "1 stored array of 46.9 KiB, perhaps more than once" in made["product"]._repr_html_()
    text = made["made"]._repr_html_()
    assert "about 46.9 KiB, 1 stored array" in text
    with oc.Session(memory_limit="1GiB", progress=False):
        assert oc.explain(made["made"]).bytes_read == pytest.approx(60 * 100 * 8, rel=0.1)
    assert "stored array" not in made["deep"]._repr_html_()


def test_a_graph_shows_its_degrees_once_they_were_counted(tmp_path: Path) -> None:
    G = oc.graph.from_arrays([0, 0, 0, 5], [1, 2, 3, 4], tmp_path / "g.ocg")
    assert "<svg" not in G._repr_html_()
    G.degrees("out")
    assert "6 vertices by neighbours that edges lead to, up to 2-3: 4, 1, 1" in G._repr_html_()
    G.degrees("both")
    assert "6 vertices by neighbours, up to 2-3: 0, 5, 1" in G._repr_html_()


def test_files_that_are_gone_or_changed_are_shown_without_values(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(600.0))
    A = oc.sparse.from_scipy(scipy.sparse.eye(30, format="csr"), tmp_path / "a.ocs")
    G = oc.graph.from_arrays([0, 0], [1, 2], tmp_path / "g.ocg")
    x = oc.open(tmp_path / "x.npy")
    lazy = x[x > 3]
    assert "[0. 1." in repr(x)
    np.save(tmp_path / "x.npy", np.arange(600.0) + 7)
    assert "[" not in repr(x)
    for path in tmp_path.iterdir():
        path.unlink()
    for value in (x, x + 1, lazy, A, A.T, G, oc.table(x=x)):
        assert all(shown(value))
    assert "[" not in repr(x)


def test_what_a_closed_session_made_is_shown(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(600.0))
    session = oc.Session(memory_limit="1GiB", progress=False)
    with session:
        x = oc.open(tmp_path / "x.npy")
        A = oc.sparse.from_scipy(scipy.sparse.eye(30, format="csr"), tmp_path / "a.ocs")
        F = oc.linalg.lu_factor(np.eye(4))
        lazy = x[x > 3]
    for value in (session, x, lazy, A, A * 2.0, F):
        assert all(shown(value))


def test_a_session_tells_what_it_holds(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(60_000.0))
    with oc.Session(memory_limit="1GiB", progress=False) as session:
        assert "memory_limit=1.00 GiB" in repr(session)
        assert "0 B kept" in repr(session)
        oc.open(tmp_path / "x.npy").sum().compute()
        kept = session.counters()["kept_bytes"]
        assert kept > 0
        assert "0 B kept" not in repr(session)
        assert "469 KiB" in repr(session) or f"{kept / 1024:.1f} KiB kept" in repr(session)


def test_a_loop_and_groups_have_cards(made: Made) -> None:
    loop = made["Loop"]._repr_html_()
    for said in ("(10,) float64", "3: the most that were asked for", "2.5 in the end"):
        assert said in loop
    assert "3, int64" in made["GroupBy"]._repr_html_()


def test_a_fitted_model_tells_what_it_found(made: Made) -> None:
    assert "fitted: n_features_in_ 4" in repr(made["fitted"])
    assert "cluster_centers_" in made["fitted"]._repr_html_()
    assert "fitted" not in repr(made["KMeans"])
    bundle = made["fitted"]._repr_mimebundle_()
    assert bundle["text/plain"] == repr(made["fitted"])
    assert bundle["text/html"] == made["fitted"]._repr_html_()


def test_pictures_thin_their_lines() -> None:
    few, many = tiles_picture((40, 30), (10, 10)), tiles_picture((10**6, 10**6), (1, 1))
    assert few is not None
    assert many is not None
    assert few.count("<line") == 3 + 2
    assert many.count("<line") <= 32
    assert tiles_picture((), ()) is None
    assert tiles_picture((0, 3), (1, 3)) is None
    stack = tiles_picture((9, 40, 30), (1, 10, 10))
    assert stack is not None
    assert stack.count("<path") == 3
    assert 'aria-label="9 × 40 × 30 elements in 108 tiles of 1 × 10 × 10"' in stack


def test_a_spy_picture_is_darker_where_entries_are() -> None:
    picture = spy_picture((100, 100), [10, 1000])
    assert picture is not None
    faint, dark = (float(part) for part in re.findall(r'fill-opacity="([\d.]+)"', picture))
    assert faint < dark
    assert "2 stored tiles in the order of rows, of 10 to 1,000 entries" in picture
    assert spy_picture((0, 5), []) is None
    many = spy_picture((100, 100), list(range(10_000)))
    assert many is not None
    assert many.count("<rect") <= 41
    more = spy_picture((100, 100), [7] * 82)  # 27 bands of 3 tiles, and one of a single tile
    assert more is not None
    assert len(set(re.findall(r'fill-opacity="([\d.]+)"', more))) == 1, "a band of fewer tiles is no lighter"


TURNING = "n\x1b[31m\x9b2J\u202e" + "x" * 60


@pytest.fixture
def turned(tmp_path: Path) -> list[object]:
    """Plans, drawings and profiles of files whose names have control characters."""
    np.save(tmp_path / f"{TURNING}.npy", np.arange(400.0).reshape(20, 20))
    x = oc.open(tmp_path / f"{TURNING}.npy")
    G = oc.graph.from_arrays([0, 1], [1, 2], tmp_path / f"{TURNING}.ocg")
    with oc.profile() as seen:
        oc.store({tmp_path / "y.npy": x + 1})
        oc.graph.bfs(G, 0)
    drawings = [oc.show.degrees(G, ax=False), oc.show.histogram(x, ax=False), oc.show.image(x, ax=False)]
    plans = [oc.explain(x + 1), oc.explain(oc.sort(x.reshape(-1)), sweep=True), oc.visualize(x + 1)]
    return [x, x + 1, G, seen, oc.profile.compare(seen, seen), *drawings, *plans]


def test_names_neither_command_a_terminal_nor_turn_a_page(turned: list[object]) -> None:
    for value in turned:
        made = [repr(value), str(value)]
        made += [getattr(value, name)() for name in ("_repr_html_", "_repr_svg_") if hasattr(value, name)]
        for text in made:
            assert not {"\x1b", "\x9b", "\u202e"} & set(text), type(value).__name__
