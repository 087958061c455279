"""The child's side of `cgroup.run_limited`: calls one function, reports value, error, peak memory and I/O."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def io_counters() -> dict[str, int]:
    """Bytes this process moved: read_bytes and write_bytes went to the device, rchar and wchar through system calls."""
    return {
        key: int(value) for key, value in (line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    }


def status_bytes(name: str) -> int:
    """A size that the kernel tells of this process: VmRSS is what is resident, VmHWM its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


def peak_rss_bytes() -> int:
    return status_bytes("VmHWM")


def describe(error: BaseException) -> dict[str, Any]:
    said = {"type": type(error).__name__, "message": str(error)}
    for name in ("code", "operator", "need", "limit", "smallest"):
        if hasattr(error, name):
            said[name] = getattr(error, name)
    return said


def main(target: str, arguments: str, report: str) -> None:
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    said: dict[str, Any] = {}
    before = io_counters()
    try:
        said["value"] = function(**json.loads(arguments))
    except Exception as error:
        said["error"] = describe(error)
    after = io_counters()
    said["io"] = {key: after[key] - before[key] for key in after}
    said["peak_rss_bytes"] = peak_rss_bytes()
    Path(report).write_text(json.dumps(said, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
