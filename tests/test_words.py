"""Words and sizes of the Python code: where `Any` stands, names that are no nouns, long files, long functions."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import outcore

PACKAGE = Path(outcore.__file__).parent
TESTS = Path(__file__).parent

# `Any` stands where an object of another library or of the user's own enters or leaves, and nowhere else:
#
# - arguments of NumPy's protocols and of functions that NumPy or networkx dispatches (`_numpy`, `graph/_networkx*`);
# - arrays, files and graphs of other libraries, before they are looked at (`_lazy/foreign`, `sparse/_foreign`,
#   `sparse/_compressed`, `from_scipy`, `from_networkx`, SciPy's factors and operators);
# - what scikit-learn and numba, which have no types, give and take (`learn`, `_functions/compiled`, `jit_kernels`);
# - results whose type depends on the values of arguments, where overloads would not say it (`compute`, `eigsh`,
#   `item`, `tolist`, iteration, operators of dates that answer NotImplemented);
# - content that is read from JSON, pickles, notes and configuration (`JSONObject`, `Keywords`, `noted`, `config`);
# - functions that the package fills in above the files that call them (`_lazy/hooks`), and what they give;
# - attributes of files and members of groups, and what xarray gives and takes (`_lazy/annotated`, `_opening/group`);
# - aliases that name one of these (`NDArray`, `DType`, `Kernel`, `Options`, `Targets`; `Foreign` of `_xarray`).
ANY_MAX = 345
FILE_LINES_MAX = 600
# Lines of the body of a function, without its docstring; a nested function counts with the one around it.
FUNCTION_LINES_MAX = 80
PARAMETERS_MAX = 7
# Functions of the public interface, whose arguments are those of another library, or options by name.
MANY_PARAMETERS = {
    *("graph/_centrality.py: pagerank", "graph/_networkx_measures.py: pagerank"),
    *("_opening/opening.py: open", "_run/run.py: store", "_xarray/backend.py: open_dataset"),
    *("learn/logistic.py: __init__", "learn/mixture.py: __init__"),
    *("sparse/_convert.py: from_coo", "sparse/_generators.py: grid3d", "sparse/_spgemm.py: spgemm"),
    *(f"sparse/linalg/_iterative.py: {name}" for name in ("cg", "bicgstab", "minres")),
    *(f"sparse/linalg/_eigenvalues.py: {name}" for name in ("eigsh", "eigs")),
    *(f"sparse/linalg/_{name}.py: {name}" for name in ("gmres", "lobpcg", "lsmr", "svds")),
}
# Participles and adverbs that say nothing of the thing that they name. `left` stands opposite `right` alone.
NO_NOUNS = {"found", "given", "wanted", "told", "there", "own", "rest", "whose", "that", "those"}


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


class Source(NamedTuple):
    name: str
    lines: int
    nodes: list[ast.AST]


def parsed(path: Path, folder: Path) -> Source:
    text = path.read_text()
    return Source(str(path.relative_to(folder)), text.count("\n"), list(ast.walk(ast.parse(text))))


@cache
def sources(folder: Path) -> list[Source]:
    return [parsed(path, folder) for path in sorted(folder.rglob("*.py"))]


def functions(source: Source) -> Iterator[ast.FunctionDef]:
    return (node for node in source.nodes if isinstance(node, ast.FunctionDef))


def parameters(function: ast.FunctionDef) -> list[str]:
    of = function.args
    return [part.arg for part in (*of.posonlyargs, *of.args, *of.kwonlyargs) if part.arg not in ("self", "cls")]


def code_lines(function: ast.FunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def anys(source: Source) -> int:
    """Annotations that say `Any`, those in quotes as well; imports of it do not count."""
    nodes = source.nodes
    docs = {ast.get_docstring(node, clean=False) for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    quoted = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    named = sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)
    return named + sum(len(re.findall(r"\bAny\b", part)) for part in quoted if part not in docs and "\n" not in part)


def names_bound(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_any_stands_where_foreign_objects_enter() -> None:
    stub = parsed(PACKAGE / "_core.pyi", PACKAGE)
    counts = Counter({source.name: anys(source) for source in [*sources(PACKAGE), stub]})
    print(f"{counts.total()} times Any; most in {counts.most_common(5)}")
    assert counts.total() <= ANY_MAX


def test_files_are_short() -> None:
    lines = {source.name: source.lines for folder in (PACKAGE, TESTS) for source in sources(folder)}
    assert {name: count for name, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    long = {
        f"{source.name}: {function.name}": code_lines(function)
        for folder in (PACKAGE, TESTS)
        for source in sources(folder)
        for function in functions(source)
        if code_lines(function) > FUNCTION_LINES_MAX
    }
    assert long == {}


def test_functions_take_few_parameters() -> None:
    many = {
        f"{source.name}: {function.name}"
        for source in sources(PACKAGE)
        for function in functions(source)
        if len(parameters(function)) > PARAMETERS_MAX
    }
    assert many == MANY_PARAMETERS
    # Fixtures and drawn values are the parameters of tests; functions that these call are held to the limit.
    helpers = {
        f"{source.name}: {function.name}"
        for source in sources(TESTS)
        for function in functions(source)
        if len(parameters(function)) > PARAMETERS_MAX and not function.name.startswith("test_")
    }
    assert helpers == set()


def test_names_are_nouns() -> None:
    bound = {(source.name, part.strip("_")) for source in sources(PACKAGE) for part in names_bound(source)}
    assert {(name, part) for name, part in bound if part in NO_NOUNS} == set()


def test_sentences_have_nouns_for_subjects() -> None:
    """No docstring, comment or page has a sentence that begins with a pronoun."""
    pronoun = re.compile(r"(?:^|[.!?:;] )(?:What|Those|Whose|That(?! is\b))\b[^.]*")
    faults = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED)]
        docs = [ast.get_docstring(node) or "" for node in nodes]
        comments = re.findall(r"^\s*#:? (.*)$", text, re.MULTILINE)
        prose = [paragraph for doc in docs for paragraph in doc.partition(">>>")[0].split("\n\n")] + comments
        faults += [f"{path.name}: {match}" for part in prose for match in pronoun.findall(" ".join(part.split()))]
    for page in sorted((TESTS.parent / "docs").glob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        faults += [
            f"{page.name}: {match}" for part in text.split("\n\n") for match in pronoun.findall(" ".join(part.split()))
        ]
    assert faults == []
