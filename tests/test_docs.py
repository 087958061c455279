"""The project's map names only what exists."""

from __future__ import annotations

import doctest
import importlib.util
import re
import tempfile
from pathlib import Path

import pytest

from outcore import _core
from outcore._command.cli import main

ROOT = Path(__file__).parent.parent
FORMATS = ROOT / "docs" / "formats.md"
PAGES = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name != "CHANGELOG.md"]
# Paths in code quotes that start with one of the repository's folders, or name one of its root files.
FOLDERS = "crates|python|tests|benchmarks|docs|fuzz|examples|\\.ci"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*|[\w.-]+\.(?:toml|md|lock)|Makefile|LICENSE)`")
LINKS = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)[^)]*\)")
# A block of code that begins with the path of the file it quotes.
QUOTED = re.compile(rf"```(?:rust|python)\n(?://|#) ((?:{FOLDERS})/[\w./-]+)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_a_page_names_exists(page):
    text = page.read_text()
    missing = {name for name in NAMED.findall(text) if not (ROOT / name).exists()}
    missing |= {name for name in LINKS.findall(text) if not (page.parent / name).exists()}
    assert not missing


@pytest.mark.parametrize(
    ("page", "files"),
    [("adding-an-operator", 5), ("adding-a-graph-algorithm", 4), ("adding-an-estimator", 1), ("adding-a-format", 11)],
)
def test_the_pages_on_additions_quote_code_as_it_is(page, files):
    quotations = QUOTED.findall((ROOT / "docs" / f"{page}.md").read_text())
    assert len({path for path, _ in quotations}) >= files
    for path, code in quotations:
        lines = iter([line.strip() for line in (ROOT / path).read_text().splitlines()])
        missing = [line for line in code.splitlines() if line.strip() and line.strip() not in lines]
        assert not missing, f"{path} has no longer, in this order: {missing}"


def right_of(results: doctest.TestResults) -> int:
    """How many examples ran, all as shown. Since Python 3.13 those that are skipped count as attempted."""
    assert results.failed == 0
    return results.attempted - int(getattr(results, "skipped", 0))


def test_the_page_on_formats_has_what_formats_can_do():
    lines = [line for line in FORMATS.read_text().splitlines() if line.startswith("| ")]
    rows = {cells[1]: cells[1:] for line in lines for cells in [[cell.strip() for cell in line.split("|")]]}
    of = {
        "npy": "`.npy`, versions 1 to 3",
        "zarr": "Zarr v3",
        "hdf5": "HDF5 (`.h5`, `.h5ad`, MATLAB 7.3)",
        "netcdf3": "NetCDF-3",
    }
    facts = {name: set(abilities) for name, _, abilities in _core.formats()}
    facts["hdf5"].add("write")  # of files that h5py makes
    assert facts.keys() == of.keys()
    for name, row in of.items():
        written, names, groups = rows[row][2:5]
        shown = {"write": written, "attributes": "" if names == "none" else names, "groups": groups}
        assert {ability for ability, cell in shown.items() if cell} == facts[name] & set(shown), name


def test_the_session_on_sparse_matrices_gives_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert right_of(doctest.testfile(str(ROOT / "docs" / "sparse.md"), module_relative=False)) == 24


def test_the_session_on_direct_solvers_gives_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert right_of(doctest.testfile(str(ROOT / "docs" / "solvers.md"), module_relative=False)) == 74


def test_the_session_on_loops_gives_what_it_shows():
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    assert right_of(doctest.testfile(str(ROOT / "docs" / "loops.md"), module_relative=False, optionflags=flags)) == 37


@pytest.mark.filterwarnings("ignore")
def test_the_session_with_xarray_gives_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("xarray", reason="the page is xarray's")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert right_of(doctest.testfile(str(ROOT / "docs" / "xarray.md"), module_relative=False)) == 24


def test_the_session_on_graphs_gives_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    flags = doctest.IGNORE_EXCEPTION_DETAIL  # newer versions of Python add what may have been meant
    assert right_of(doctest.testfile(str(ROOT / "docs" / "graphs.md"), module_relative=False, optionflags=flags)) == 29


def test_the_tutorial_on_graphs_gives_what_it_shows(tmp_path, monkeypatch):
    """With what numba compiles where numba, the optional extra outcore[jit], is installed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text, shown = (ROOT / "docs" / "graph-tutorial.md").read_text(), 0
    if importlib.util.find_spec("numba") is not None:
        text, shown = text.replace("# doctest: +SKIP", ""), 5
    (tmp_path / "tutorial.md").write_text(text)
    assert right_of(doctest.testfile(str(tmp_path / "tutorial.md"), module_relative=False)) == 43 + shown


def test_the_session_on_groups_gives_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert right_of(doctest.testfile(str(ROOT / "docs" / "guide.md"), module_relative=False)) == 33


def test_the_session_on_tables_gives_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert right_of(doctest.testfile(str(ROOT / "docs" / "tables.md"), module_relative=False)) == 24


def test_the_page_on_volumes_names_commands_and_options_there_are():
    text = (ROOT / "docs" / "volumes.md").read_text()
    used = re.findall(r"outcore volume (\w+)([^`\n]*)", text)
    assert {name for name, _ in used} == set(main.commands["volume"].commands)
    for name, rest in used:
        known = {option for parameter in main.commands["volume"].commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z]+", rest)) <= known


def test_the_map_names_every_crate_and_every_room():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(text.encode()) <= 8192
    crates = {f"crates/{path.parent.name}/" for path in (ROOT / "crates").glob("*/Cargo.toml")}
    package = ROOT / "python" / "outcore"
    rooms = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    rooms |= {path.parent.name for path in package.glob("*/__init__.py")}
    assert {name for name in crates if f"`{name}`" not in text} == set()
    assert {name for name in rooms if not re.search(rf"(?<![\w.]){name}\b", text)} == set()


def test_the_life_of_a_matmul_names_functions_there_are():
    text = (ROOT / "docs" / "life-of-a-matmul.md").read_text()
    steps = re.findall(r"`((?:crates|python)/[\w/.]+)`: `(\w+)`", text)
    assert len(steps) >= 20
    missing = {step for step in steps if not re.search(rf"\b(?:fn|def) {step[1]}\b", (ROOT / step[0]).read_text())}
    assert not missing
