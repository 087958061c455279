"""Children that are ended from outside at a chosen moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.workloads import Workload

ROOT = Path(__file__).parent.parent.parent
# Where a child finds what this process does.
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])


def start(work: Workload, out: Path, scratch: Path, **options: Any) -> subprocess.Popen[str]:
    """A child that stores the workload; returns when it has said that it begins."""
    inputs = json.dumps({name: str(path) for name, path in work.paths.items()})
    given = [work.name, str(work.iterations or ""), inputs, str(out), str(scratch), json.dumps(options)]
    command = [sys.executable, "-m", "support.children", *given]
    child = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": PATHS}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    if child.stdout.readline() != "ready\n":
        _, said = child.communicate()
        raise AssertionError(f"the child did not begin: {said}")
    return child


def wait(child: subprocess.Popen[str], seconds: float) -> bool:
    """Whether the child ended by itself within some seconds."""
    try:
        child.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def invoke_clean(folder: Path) -> None:
    """Removes what could be gone on with below a folder."""
    from click.testing import CliRunner

    from outcore._command.cli import main

    assert CliRunner().invoke(main, ["clean", str(folder), "--resumable"]).exit_code == 0
