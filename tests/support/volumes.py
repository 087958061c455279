"""Volumes to test with, and the command line that looks after them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from outcore._command.cli import main


class Volume(NamedTuple):
    home: Path
    disks: list[Path]

    def parts(self) -> int:
        return sum(1 for disk in self.disks for _ in (disk / "parts").iterdir())


def invoke(*arguments: object, code: int = 0) -> Any:
    done = CliRunner().invoke(main, [str(argument) for argument in (*arguments, "--json")])
    assert done.exit_code == code, done.output
    return json.loads(done.output)


def made(folder: Path, *weights: int, layout: str = "rotated", block: str = "64KiB") -> Volume:
    disks = [folder / f"disk-{number}" for number in range(len(weights))]
    named = [f"{disk}={weight}" for disk, weight in zip(disks, weights, strict=True)]
    invoke("volume", "create", folder / "home", *named, "--layout", layout, "--block", block)
    return Volume(folder / "home", disks)


def assert_whole(volume: Volume) -> None:
    found = invoke("volume", "check", volume.home)
    assert (found["damaged"], found["orphans"]) == ([], 0)
