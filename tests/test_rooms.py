"""The rooms of the Python package: which may use which, and that no two files use each other.

Every form of import counts: at the top of a file, inside of a function, for types only.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import outcore

ROOT = Path(outcore.__file__).parent
# A room uses those that stand before it.
ROW = (
    *("_core", "_base", "config", "_session", "_show", "_objects", "_lazy", "_run", "_standard", "_typed", "_opening"),
    *("_numpy_like", "_functions", "_loops", "_groups", "random", "linalg", "fft", "stats", "io", "_tables", "_api"),
    *("_numpy", "_xarray", "sparse", "graph", "show", "learn", "outcore", "_command"),
)
# Files that stand at the top for their names, which users import, and the rooms that they belong to.
AT_TOP = {
    **dict.fromkeys(("errors", "constants"), "_base"),
    **dict.fromkeys(("dates", "text"), "_typed"),
    "elementwise": "_standard",
    "_upward": "outcore",
    "__main__": "_command",
}
# Names that a file both imports and lists: they come neither by `import *` nor by a rule.
TWICE = {
    "outcore": {"graph", "sparse"},
    "outcore.learn": {"KFold", "metrics", "train_test_split"},  # the others are imported when they are named
}


class Import(NamedTuple):
    of: str
    line: int
    text: str
    in_function: bool


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def files() -> dict[str, Path]:
    return {name_of(path): path for path in sorted(ROOT.rglob("*.py"))} | {"outcore._core": ROOT / "_core.pyi"}


def imports_of(path: Path) -> Iterator[Import]:
    lines = path.read_text().splitlines()

    def within(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            names = []
            if isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: {child.lineno}: a relative import"
                names = [f"{child.module}.{part.name}" for part in child.names]
            elif isinstance(child, ast.Import):
                names = [part.name for part in child.names]
            for name in names:
                while name and name not in files():
                    name = name.rpartition(".")[0]
                if name:
                    yield Import(name, child.lineno, lines[child.lineno - 1], in_function)
            is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from within(child, in_function or is_function)

    return within(ast.parse(path.read_text()), False)


@cache
def arrows() -> dict[str, set[str]]:
    """By file, those that it imports."""
    found = {name: {part.of for part in imports_of(path)} - {name} for name, path in files().items()}
    return {**found, "outcore._core": set()}


def room_of(name: str) -> str:
    first, *rest = name.split(".")
    return AT_TOP.get(rest[0], rest[0]) if rest else first


def circles() -> list[set[str]]:
    """Files that use each other, directly or not."""
    reached: dict[str, set[str]] = {}
    for name in arrows():
        seen, due = set(), [name]
        while due:
            new = arrows()[due.pop()] - seen
            seen |= new
            due.extend(new)
        reached[name] = seen
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in arrows()}
    return [set(circle) for circle in found if circle]


def test_rooms_use_those_that_stand_before_them() -> None:
    between = defaultdict(list)
    for name, others in arrows().items():
        for other in others:
            if room_of(name) != room_of(other):
                between[room_of(name), room_of(other)].append(f"{name} imports {other}")
    assert {room for pair in between for room in pair} <= set(ROW)
    upward = {pair: between[pair] for pair in between if ROW.index(pair[1]) > ROW.index(pair[0])}
    print(f"{len(between)} arrows between rooms, {len(upward)} of them upward")
    assert upward == {}
    assert len(between) <= 176


def test_no_two_files_use_each_other() -> None:
    assert circles() == []


def test_imports_inside_of_functions_say_why() -> None:
    inside = [
        f"{name}:{part.line}: {part.text}"
        for name, path in files().items()
        for part in imports_of(path)
        if part.in_function
    ]
    assert [line for line in inside if "#" not in line] == []
    assert len(inside) <= 5


def test_few_files_lie_flat() -> None:
    assert len(list(ROOT.glob("*.py"))) <= 35


def test_rooms_say_what_they_are_for_and_where_to_start() -> None:
    for folder in {path.parent for path in files().values()} - {ROOT}:
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        assert len(text.splitlines()) >= 3, folder
        assert "uses" in text, folder
        assert "Start with" in text.replace("\n", " "), folder
        named = re.findall(r"`([\w/]+\.py)`", text)
        assert [name for name in named if not any((base / name).exists() for base in (folder, ROOT.parent))] == [], (
            folder
        )
        assert named, folder


def test_names_that_users_import_stay() -> None:
    for name in (
        *("config", "constants", "dates", "elementwise", "errors", "fft", "graph", "io", "learn", "linalg", "random"),
        *("show", "sparse", "sparse.linalg", "stats", "text"),
    ):
        module = import_module(f"outcore.{name}")
        assert [part for part in getattr(module, "__all__", ()) if not hasattr(module, part)] == []
    assert [part for part in outcore.__all__ if not hasattr(outcore, part)] == []


def test_files_that_collect_names_list_each_once() -> None:
    for name, path in files().items():
        if path.name not in ("__init__.py", "_api.py"):
            continue
        imported, listed = set(), set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported |= {part.asname or part.name for part in node.names}
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                listed = {part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)}
        twice = {part for part in imported & listed if not str(part).startswith("__")}
        assert twice <= TWICE.get(name, set()), name


def test_the_package_loads_numpy_and_the_core_alone() -> None:
    """Each module more takes memory that work could have: NumPy's own parts are loaded where they are used, too, and
    what of Python's own brings much with it: OpenSSL, compressors, logging, all names of characters."""
    heavy = {"numpy.random", "numpy.fft", "rich", "click", "yaml", "scipy", "sklearn", "numba", "networkx"}
    heavy |= {
        "hashlib",
        "bz2",
        "lzma",
        "gzip",
        "zipfile",
        "shutil",
        "tempfile",
        "subprocess",
        "logging",
        "html",
        "difflib",
    }
    code = f"import sys, outcore; print(sorted({heavy!r} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
