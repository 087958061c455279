"""The stub of the Rust module says what the module has: the same names, and the same parameters."""

from __future__ import annotations

import ast
import builtins
import inspect
from pathlib import Path

import pytest

import outcore
from outcore import _core

STUB = ast.parse((Path(outcore.__file__).parent / "_core.pyi").read_text())
# Types and bases that exist for the checker only.
ONLY_IN_STUB = {"Target"}
BASES_IN_STUB = {"Generic[_T]"}


def public(names):
    return {name for name in names if not name.startswith("_")}


def parameters(function):
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


CLASSES = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name not in ONLY_IN_STUB]
FUNCTIONS = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
METHODS = [
    (owner.name, node)
    for owner in CLASSES
    for node in owner.body
    if isinstance(node, ast.FunctionDef) and not node.decorator_list and node.name != "__init__"
]


def test_the_stub_names_everything_the_module_has_and_nothing_more():
    assert public(dir(_core)) == {node.name for node in (*CLASSES, *FUNCTIONS)}


@pytest.mark.parametrize("owner", CLASSES, ids=lambda node: node.name)
def test_a_class_has_the_members_its_stub_names(owner):
    members = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    for base in (base for base in owner.bases if ast.unparse(base) not in BASES_IN_STUB):
        members |= set(dir(getattr(builtins, ast.unparse(base))))
    assert public(dir(getattr(_core, owner.name))) == public(members)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda node: node.name)
def test_a_function_takes_the_parameters_its_stub_names(function):
    assert list(inspect.signature(getattr(_core, function.name)).parameters) == parameters(function)


@pytest.mark.parametrize(("owner", "method"), METHODS, ids=[f"{owner}.{node.name}" for owner, node in METHODS])
def test_a_method_takes_the_parameters_its_stub_names(owner, method):
    found = inspect.signature(getattr(getattr(_core, owner), method.name)).parameters
    assert list(found) == parameters(method)
