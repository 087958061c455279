"""networkx's own tests through the backend: no test fails but those of `networkx_failures.toml`, which has the reasons.

Here are files that take little time, and the first test of each reason; docs/graphs.md has the command for all tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import networkx
import pytest

SUITE = Path(networkx.__file__).parent
LISTED = tomllib.loads((Path(__file__).parent / "networkx_failures.toml").read_text())["group"]
FILES = [
    "algorithms/link_analysis/tests/test_pagerank.py",
    "algorithms/shortest_paths/tests/test_unweighted.py",
    "algorithms/tests/test_isolate.py",
]


def listed(*modes: str) -> set[str]:
    """The first test of each reason."""
    return {group["tests"][0] for group in LISTED if group["mode"] in modes}


def failures(scratch: Path, *options: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(SUITE), f"--confcutdir={SUITE}", "--backend", "outcore", *options, *FILES]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NETWORKX"))}
    environment |= {"TMPDIR": str(scratch), "OUTCORE_MEMORY_LIMIT": "1GiB"}
    ended = subprocess.run(
        [*command, *sorted(listed("both", "fallback"))], cwd=SUITE, env=environment, capture_output=True, text=True
    )
    last = ended.stdout.splitlines()[-1]
    assert "passed" in last, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert "error" not in last, ended.stdout[-2000:]
    found = re.findall(r"^FAILED (\S+)", ended.stdout, re.M)
    return {name[name.index("algorithms/") :] for name in found}


@pytest.mark.parametrize("mode", ["alone", "fallback"])
def test_no_test_of_networkx_fails_but_those_listed(mode: str, scratch: Path) -> None:
    options = ["--fallback-to-nx"] if mode == "fallback" else []
    assert failures(scratch, *options) == listed("both", mode)


def test_each_listed_test_exists_and_has_a_reason() -> None:
    for group in LISTED:
        assert group["mode"] in ("both", "fallback")
        assert group["reason"].strip()
        for test in group["tests"]:
            file, *_, name = test.split("::")
            assert f"def {name.partition('[')[0]}(" in (SUITE / file).read_text()
