"""Resources of this machine: memory of the host and of the control group, and where scratch files may go."""

from __future__ import annotations

import os
from pathlib import Path

# Control groups v1 say "no limit" with a number near 2⁶³ instead of a word.
_UNLIMITED = 1 << 60
_DEFAULT_SHARE = 0.8


def host_memory() -> int:
    """Bytes of physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cgroup_directories(
    process: str = "self", root: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")
) -> list[Path]:
    """The memory control groups that bind a process, innermost first; v1 and v2. Empty where there are none."""
    try:
        lines = (proc / process / "cgroup").read_text().splitlines()
    except OSError:
        return []
    directories: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base = root
        elif "memory" in controllers.split(","):
            base = root / "memory"
        else:
            continue
        # Inside a container the path may be the host's; then only the mount's root is visible.
        group = base / path.lstrip("/")
        while True:
            if group.is_dir():
                directories.append(group)
            if group == base or base not in group.parents:
                break
            group = group.parent
    return directories


def cgroup_memory(directories: list[Path] | None = None) -> int | None:
    """The tightest memory limit of the control groups around this process, or None where nothing is limited."""
    limits: list[int] = []
    for group in cgroup_directories() if directories is None else directories:
        for name in ("memory.max", "memory.limit_in_bytes"):
            try:
                text = (group / name).read_text().strip()
            except OSError:
                continue
            if text.isdigit() and int(text) < _UNLIMITED:
                limits.append(int(text))
    return min(limits, default=None)


def default_memory_limit() -> int:
    """0.8 of the smaller of control group limit and physical memory, in bytes."""
    return int(min(host_memory(), cgroup_memory() or host_memory()) * _DEFAULT_SHARE)


def default_scratch() -> str:
    """Where spills go unless told: $TMPDIR, else /var/tmp (which is on a disk where /tmp may be in memory)."""
    for candidate in (os.environ.get("TMPDIR"), "/var/tmp"):
        if candidate and os.path.isdir(candidate) and os.access(candidate, os.W_OK):
            return candidate
    import tempfile  # and with it shutil and all compressors, which imports of outcore do without

    return tempfile.gettempdir()
