"""The help of every public function has an example that gives what it says, and tells the I/O the function costs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.running import session

import outcore as oc

# The command line and the compiled core: the one runs when it is imported, the other has no Python docstrings.
WITHOUT_EXAMPLES = ("outcore.__main__", "outcore._core")
MODULES = sorted(
    found.name for found in pkgutil.walk_packages(oc.__path__, "outcore.") if found.name not in WITHOUT_EXAMPLES
)
CHAPTERS = "config dates fft graph io learn learn.metrics linalg random show sparse stats"
NAMESPACES = ("outcore", *(f"outcore.{name}" for name in CHAPTERS.split()))
_NO_ELEMENTS = "asks for types or shapes only, never for elements"
_NO_ARRAYS = "has to do with settings, not with arrays"
# Functions that need not tell their I/O, and why.
COSTLESS = {
    "outcore.broadcast_shapes": _NO_ELEMENTS,
    "outcore.can_cast": _NO_ELEMENTS,
    "outcore.finfo": _NO_ELEMENTS,
    "outcore.iinfo": _NO_ELEMENTS,
    "outcore.isdtype": _NO_ELEMENTS,
    "outcore.result_type": _NO_ELEMENTS,
    "outcore.config.get": _NO_ARRAYS,
    "outcore.config.names": _NO_ARRAYS,
    "outcore.config.refresh": _NO_ARRAYS,
    "outcore.config.snapshot": _NO_ARRAYS,
}


def public() -> dict[str, Callable[..., Any]]:
    """Every public function and class by its name; constants, types and modules are neither."""
    found = {}
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[f"{namespace}.{name}"] = thing
    return found


def is_result(thing: Callable[..., Any]) -> bool:
    """A named tuple is what a function gives: the function shows it, and says what it cost."""
    return inspect.isclass(thing) and issubclass(thing, tuple)


def tells_cost(name: str, thing: Callable[..., Any]) -> bool:
    """Functions and estimators do; other classes hold what functions have made."""
    return inspect.isfunction(thing) or name.startswith("outcore.learn.")


def examples(module: ModuleType) -> list[doctest.DocTest]:
    """With no names given to them: an example imports what it uses, as those who paste it must."""
    return [test for test in doctest.DocTestFinder().find(module, globs={}) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    with session():
        for example in examples(importlib.import_module(name)):
            runner.run(example, out=said.append)
    assert not runner.failures, "".join(said)


def test_every_public_function_has_an_example() -> None:
    silent = [name for name, thing in public().items() if not is_result(thing) and ">>>" not in (thing.__doc__ or "")]
    assert not silent, f"without an example: {', '.join(silent)}"


def test_every_example_of_a_public_function_is_run() -> None:
    run = {test.docstring for name in MODULES for test in examples(importlib.import_module(name))}
    missed = [name for name, thing in public().items() if ">>>" in (thing.__doc__ or "") and thing.__doc__ not in run]
    assert not missed, f"with an example that no test runs: {', '.join(missed)}"


def test_every_function_tells_its_io() -> None:
    owing = {name for name, thing in public().items() if tells_cost(name, thing) and "I/O" not in (thing.__doc__ or "")}
    assert owing <= set(COSTLESS), f"without a word on I/O: {', '.join(sorted(owing - set(COSTLESS)))}"
    assert set(COSTLESS) <= owing, f"no exceptions any more: {', '.join(sorted(set(COSTLESS) - owing))}"


def test_public_names_are_found() -> None:
    found = public()
    assert {"outcore.sum", "outcore.linalg.svd", "outcore.learn.KMeans", "outcore.config.set"} <= set(found)
    assert len(found) > 300, len(found)
