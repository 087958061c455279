"""Runs a Python function in a child process whose memory limit is real, and reports what the kernel saw.

The child sits in a memory cgroup of its own (v1 or v2) when we are root; elsewhere RLIMIT_AS bounds its address space,
and the outcome says why. RLIMIT_AS is stricter than a resident limit (mappings count, touched or not), never laxer.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks import child

ROOT = Path(__file__).parent.parent
SETTLE_SECONDS = 5.0
# What is left of a limit when memory is touched up to it.
TOUCH_MARGIN_BYTES = 64 << 20


@dataclass
class Outcome:
    """What happened to a child. Sizes in bytes, times in seconds; None where the kernel could not say."""

    returncode: int | None
    wall_seconds: float
    limited_by: str
    value: Any = None
    error: dict[str, Any] | None = None
    peak_rss_bytes: int | None = None
    cgroup_peak_bytes: int | None = None
    failcnt: int | None = None
    oom_kills: int | None = None
    io: dict[str, int] = field(default_factory=dict)
    stderr: str = ""

    @property
    def reason(self) -> str | None:
        """Why there is no value, in one line; None when all went well."""
        if self.returncode == 0 and self.error is None:
            return None
        if self.oom_kills:
            return "killed: out of memory"
        if self.returncode is None:
            return "timeout"
        if self.error is not None:
            return f"{self.error['type']}: {self.error['message']}"
        return f"exit status {self.returncode}: {self.stderr.strip().splitlines()[-1:] or ''}"


class Group(Protocol):
    """A memory limit that a shell command can enter, and a process can be put under."""

    label: str

    def enter(self) -> str: ...
    def admit(self, process: int) -> None: ...
    def counters(self) -> dict[str, int | None]: ...
    def remove(self) -> None: ...


class _V1:
    label = "cgroup v1"

    def __init__(self, limit_bytes: int) -> None:
        self.path = _fresh(Path("/sys/fs/cgroup/memory"), _own_path("memory"))
        (self.path / "memory.limit_in_bytes").write_text(str(limit_bytes))
        swap = self.path / "memory.memsw.limit_in_bytes"
        if swap.exists():
            swap.write_text(str(limit_bytes))

    def enter(self) -> str:
        return f"echo $$ > '{self.path}/cgroup.procs'"

    def admit(self, process: int) -> None:
        (self.path / "cgroup.procs").write_text(str(process))

    def counters(self) -> dict[str, int | None]:
        control = dict(line.split() for line in (self.path / "memory.oom_control").read_text().splitlines())
        return {
            "cgroup_peak_bytes": int((self.path / "memory.max_usage_in_bytes").read_text()),
            "failcnt": int((self.path / "memory.failcnt").read_text()),
            "oom_kills": int(control.get("oom_kill", 0)),
        }

    def remove(self) -> None:
        _remove(self.path)


class _V2:
    label = "cgroup v2"

    def __init__(self, limit_bytes: int) -> None:
        mount = Path("/sys/fs/cgroup")
        if "memory" not in (mount / "cgroup.controllers").read_text().split():
            raise OSError("the memory controller is not available to cgroup v2")
        # A group that holds processes cannot hand its controllers on, so the child's group stands at the root.
        (mount / "cgroup.subtree_control").write_text("+memory")
        self.path = _fresh(mount, "/")
        (self.path / "memory.max").write_text(str(limit_bytes))
        swap = self.path / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")

    def enter(self) -> str:
        return f"echo $$ > '{self.path}/cgroup.procs'"

    def admit(self, process: int) -> None:
        (self.path / "cgroup.procs").write_text(str(process))

    def counters(self) -> dict[str, int | None]:
        events = dict(line.split() for line in (self.path / "memory.events").read_text().splitlines())
        peak = self.path / "memory.peak"
        return {
            "cgroup_peak_bytes": int(peak.read_text()) if peak.exists() else None,
            "failcnt": int(events.get("max", 0)),
            "oom_kills": int(events.get("oom_kill", 0)),
        }

    def remove(self) -> None:
        _remove(self.path)


class _AddressSpace:
    def __init__(self, limit_bytes: int, reason: str) -> None:
        self.label = f"RLIMIT_AS ({reason})"
        self.limit_bytes = limit_bytes

    def enter(self) -> str:
        return f"ulimit -v {self.limit_bytes // 1024}"

    def admit(self, process: int) -> None:
        resource.prlimit(process, resource.RLIMIT_AS, (self.limit_bytes, self.limit_bytes))

    def counters(self) -> dict[str, int | None]:
        return {}

    def remove(self) -> None:
        pass


class _Unlimited(_AddressSpace):
    def __init__(self) -> None:
        self.label = "nothing"

    def enter(self) -> str:
        return ":"

    def admit(self, process: int) -> None:
        pass


def _own_path(controller: str) -> str:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return "/"


def _fresh(mount: Path, own: str) -> Path:
    """A new group under our own, so that limits above us still hold; at the mount where ours is not visible."""
    parent = mount / own.lstrip("/")
    path = (parent if parent.is_dir() else mount) / f"outcore-{os.getpid()}-{time.monotonic_ns()}"
    path.mkdir()
    return path


def _remove(path: Path) -> None:
    """A group can be busy for a moment after its last process is gone."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while path.exists():
        try:
            path.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def group(limit_bytes: int | None) -> Iterator[Group]:
    made: Group
    if limit_bytes is None:
        made = _Unlimited()
    else:
        try:
            made = _V2(limit_bytes) if Path("/sys/fs/cgroup/cgroup.controllers").exists() else _V1(limit_bytes)
        except OSError as error:
            made = _AddressSpace(limit_bytes, f"no memory cgroup: {error.strerror or error}")
    try:
        yield made
    finally:
        made.remove()


def is_real() -> bool:
    """Whether limits here come from a cgroup."""
    with group(1 << 30) as made:
        return made.label.startswith("cgroup")


def run_limited(
    target: str,
    arguments: Mapping[str, Any],
    limit_bytes: int | None = None,
    timeout_seconds: float = 3600,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Calls `target` ("package.module:function") with JSON arguments in a child under `limit_bytes`."""
    with group(limit_bytes) as made, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        inner = [sys.executable, "-m", "benchmarks.child", target, json.dumps(dict(arguments)), str(report)]
        command = ["/bin/sh", "-c", f'{made.enter()} && exec "$@"', "sh", *inner]
        path = os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))
        started = time.perf_counter()
        known = os.environ | {"PYTHONPATH": path} | dict(environment or {})
        process = subprocess.Popen(command, env=known, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        try:
            _, stderr = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            _, stderr = process.communicate()
            return Outcome(None, time.perf_counter() - started, made.label, stderr=stderr, **made.counters())
        wall = time.perf_counter() - started
        said = json.loads(report.read_text()) if report.exists() else {}
        return Outcome(process.returncode, wall, made.label, stderr=stderr, **said, **made.counters())


def drop_page_cache(*paths: Path) -> str:
    """Empties the page cache, all of it as root, else for the files below `paths`. Says which."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
        return "drop_caches"
    except OSError:
        for path in paths:
            for file in [path] if path.is_file() else filter(Path.is_file, path.rglob("*")):
                with file.open("rb") as handle:
                    os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return "posix_fadvise"


def touch_memory(size: int = 4 << 30) -> None:
    """Has free memory be there. A virtual machine may have given it back to its host, from which it comes anew at
    0.3 GB/s when it is first written to: whichever program is the next would seem to be as slow."""
    subprocess.run([sys.executable, "-c", "import sys; b'x' * int(sys.argv[1])", str(size)], check=True)


def touch_own_memory(limit: int) -> int:
    """As `touch_memory`, for what this process takes next, up to a resident size of `limit` bytes. The kernel's peak
    begins anew; gives that until now, in bytes."""
    peak = child.peak_rss_bytes()
    size = limit - child.status_bytes("VmRSS") - TOUCH_MARGIN_BYTES
    if size > 0:
        with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory[:: mmap.PAGESIZE] = bytes(len(range(0, size, mmap.PAGESIZE)))
    Path("/proc/self/clear_refs").write_text("5")
    return peak
