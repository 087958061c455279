"""The glossary: its types exist, and names of types that several files define have their reason there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import outcore

ROOT = Path(__file__).parent.parent
PACKAGE = Path(outcore.__file__).parent
GLOSSARY = ROOT / "docs" / "glossary.md"
RUST_TYPE = re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|type)\s+(\w+)", re.MULTILINE)
# Types that functions and modules hold are indented; a `type` there belongs to a trait.
INDENTED_TYPE = re.compile(r"^[ \t]+(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait)\s+(\w+)", re.MULTILINE)


def rust_types() -> dict[str, set[str]]:
    """The files that define each type, without their tests."""
    files = defaultdict(set)
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if "tests" in path.parts or path.stem == "tests":
            continue
        text = path.read_text().partition("#[cfg(test)]\nmod ")[0]
        for name in (*RUST_TYPE.findall(text), *INDENTED_TYPE.findall(text)):
            files[name].add(str(path.relative_to(ROOT)))
    return files


def python_types() -> dict[str, set[str]]:
    """The files that define each class, alias of a type and type variable."""
    files = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        names = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        # Aliases and type variables at the top of a file, which begin with a capital and have small letters.
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and re.match(r"_?[A-Z][a-z]|[A-Z]+[a-z]", target.id):
                    names.append(target.id)
        for name in names:
            files[name].add(str(path.relative_to(PACKAGE)))
    return files


def rows(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    text = GLOSSARY.read_text().partition(heading)[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def named(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


def shared(language: str) -> set[str]:
    table = rows("## Names that several rooms use")
    return {name for cell, of, reason in table if of == language and reason for name in named(cell)}


def several(files: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: places for name, places in files.items() if len(places) > 1}


def test_the_types_of_the_glossary_exist() -> None:
    words = rows("# Glossary")
    assert len(words) > 60
    assert {name for row in words for name in named(row[2])} - set(rust_types()) == set()
    assert {name for row in words for name in named(row[3])} - set(python_types()) == set()


def test_words_and_meanings_are_single() -> None:
    words = [row[0] for row in rows("# Glossary") if not row[0].startswith("*")]
    assert len(words) == len(set(words))
    for word, meaning, *_ in (row for row in rows("# Glossary") if not row[0].startswith("*")):
        assert meaning.endswith("."), word
        assert not re.match(r"(What|That|Those|Whose|One that)\b", meaning), word


def test_python_types_have_one_meaning() -> None:
    assert set(several(python_types())) == shared("Python")


def test_rust_types_have_one_meaning() -> None:
    twice = several(rust_types())
    assert {name: places for name, places in twice.items() if name not in shared("Rust")} == {}
    print("no longer twice:", sorted(shared("Rust") - set(twice)))
