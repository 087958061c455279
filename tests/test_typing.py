"""Type checkers accept typed calls of the whole public API, and see the types that come out."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from support.namespace import MODULES, public_functions

import outcore as oc

ROOT = Path(__file__).parent.parent
WHOLE_API = ROOT / "tests" / "typing" / "whole_api.py"


def dotted(node: ast.expr) -> str:
    """`oc.linalg.qr` as it is written; nothing for what is no chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def test_the_file_names_the_whole_api() -> None:
    named = {dotted(node) for node in ast.walk(ast.parse(WHOLE_API.read_text())) if isinstance(node, ast.Attribute)}
    public = {f"oc.{name}" for name in public_functions() if not name.startswith("GroupBy.")}
    public |= {f"oc.{chapter}{name}" for chapter, module in MODULES.items() for name in module.__all__}
    public |= {f"array.{name}" for name in dir(oc.Array) if not name.startswith("_")}
    public |= {f"groups.{name}" for name in dir(oc.GroupBy) if not name.startswith("_")}
    assert sorted(public - named) == []


def test_mypy_accepts_it() -> None:
    """With what `make lint` has come to about the package."""
    command = [sys.executable, "-m", "mypy", "--strict", str(WHOLE_API)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None, reason="pyright fetches Node.js, so it is not required"
)
def test_pyright_accepts_it() -> None:
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(WHOLE_API)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_marker_of_typed_packages_is_there() -> None:
    assert (Path(oc.__file__).parent / "py.typed").is_file()
