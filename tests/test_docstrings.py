"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest
from support.running import session

import outcore as oc

MODULES = sorted(found.name for found in pkgutil.iter_modules(oc.__path__) if found.name not in ("__main__", "_core"))


def examples(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in examples(importlib.import_module(f"outcore.{name}")):
        said: list[str] = []
        with session():
            runner.run(example, out=said.append)
        assert not runner.failures, "".join(said)


def test_there_are_examples() -> None:
    count = sum(len(examples(importlib.import_module(f"outcore.{name}"))) for name in MODULES)
    assert count > 60, count
