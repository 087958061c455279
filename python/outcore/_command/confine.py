"""Runs a command in a process whose memory limit is real: a control group of its own, else a limit on address space."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from outcore._base.machine import cgroup_directories

# Address space counts what is mapped and never touched (libraries, thread stacks), which a control group does not.
_UNTOUCHED_BYTES = 1 << 30


@dataclass(frozen=True)
class Confined:
    """How a confined command ended. `peak_bytes`: the most the kernel charged to its group, page cache included."""

    returncode: int
    how: str
    peak_bytes: int | None
    killed: bool


class _Group:
    """A memory control group made for one command and removed after it."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        path.mkdir()
        try:
            self._limit(limit)
        except OSError:
            self.remove()
            raise

    def _limit(self, limit: int) -> None:
        if (self.path / "memory.max").exists():
            self.version = "v2"
            (self.path / "memory.max").write_text(str(limit))
            with suppress(OSError):  # absent where the kernel has no swap accounting
                (self.path / "memory.swap.max").write_text("0")
        else:
            self.version = "v1"
            (self.path / "memory.limit_in_bytes").write_text(str(limit))
            with suppress(OSError):
                (self.path / "memory.memsw.limit_in_bytes").write_text(str(limit))
            with suppress(OSError):
                (self.path / "memory.swappiness").write_text("0")

    def peak(self) -> int | None:
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            with suppress(OSError, ValueError):
                return int((self.path / name).read_text())
        return None

    def killed(self) -> bool:
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError):
                for line in (self.path / name).read_text().splitlines():
                    key, _, count = line.partition(" ")
                    if key == "oom_kill" and int(count) > 0:
                        return True
        return False

    def remove(self) -> None:
        with suppress(OSError):
            self.path.rmdir()


def _make_group(limit: int) -> tuple[_Group | None, str]:
    """A group with the limit under one of this process's own groups, or the reason why there is none."""
    reason = "no memory control group is mounted"
    for parent in cgroup_directories():
        try:
            return _Group(parent / f"outcore-{os.getpid()}", limit), ""
        except OSError as error:
            reason = f"{parent}: {error.strerror}"
    return None, reason


def run(command: Sequence[str], limit: int, environment: Mapping[str, str] | None = None) -> Confined:
    """Runs a command under a memory limit in bytes and waits for it. Its standard streams are this process's."""
    group, reason = _make_group(limit)
    words = " ".join(map(shlex.quote, command))
    if group is not None:
        # The shell enters the group before it becomes the command, so that its start is charged as well.
        script = f"echo $$ > {shlex.quote(str(group.path / 'cgroup.procs'))} && exec {words}"
        how = f"memory control group {group.version}"
    else:
        script = f"ulimit -v {(limit + _UNTOUCHED_BYTES) >> 10} && exec {words}"
        how = f"address space limited to the limit + 1 GiB of untouched mappings ({reason})"
    try:
        done = subprocess.run(["/bin/sh", "-c", script], env=dict(environment or os.environ), check=False)
        if group is None:
            return Confined(done.returncode, how, None, killed=False)
        return Confined(done.returncode, how, group.peak(), group.killed())
    finally:
        if group is not None:
            group.remove()


def peak_resident() -> int:
    """The most bytes this process ever had resident, as the kernel counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("/proc/self/status has no VmHWM line")
