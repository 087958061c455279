"""What every benchmark shares: the machine's description, alternating medians, and the record it leaves behind."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "record"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
UNITS = {"": 1, "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB, "TIB": GIB << 10, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def parse_size(text: str | float) -> int:
    """Bytes of "512MiB", "1.75 GiB", "4e9" or a plain number."""
    if not isinstance(text, str):
        return int(text)
    number = text.strip()
    unit = ""
    while number and (number[-1].isalpha()):
        unit = number[-1] + unit
        number = number[:-1]
    if unit.upper() not in UNITS:
        raise ValueError(f"size {text!r}: unit {unit!r} is none of {', '.join(u for u in UNITS if u)}")
    return int(float(number) * UNITS[unit.upper()])


def show_bytes(count: float | None) -> str:
    if count is None:
        return "–"
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} B"


def built(example: str) -> Path:
    """An example of the store's crate, as a program."""
    root = Path(__file__).parent.parent
    command = ["cargo", "build", "--quiet", "--release", "--package", "outcore-store", "--example", example]
    subprocess.run(command, check=True, cwd=root)
    return root / "target" / "release" / "examples" / example


def machine(folder: Path) -> dict[str, Any]:
    """The machine line of a record: processor, cores, memory, and the disk under `folder`. No names, no paths."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "disk": _disk(folder),
    }


def versions(*packages: str) -> dict[str, str]:
    found = {"python": platform.python_version(), "linux": platform.release().split("-")[0]}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def _cpu_model() -> str:
    flags = ""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
        if key.strip() == "flags":
            flags = " (AVX-512)" if "avx512f" in value.split() else ""
    return model + flags


def _disk(folder: Path) -> str:
    """File system and kind of device: "ext4 on a virtual disk"."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == number:
            file_system, source = fields[fields.index("-") + 1 : fields.index("-") + 3]
            return f"{file_system} on {_device_kind(source)}"
    return "unknown"


def _device_kind(source: str) -> str:
    name = Path(source).name
    if name.startswith("vd"):
        return "a virtual disk"
    if name.startswith("nvme"):
        return "NVMe"
    rotational = Path(f"/sys/class/block/{name}/../queue/rotational")
    if rotational.exists():
        return "a hard disk" if rotational.read_text().strip() == "1" else "an SSD"
    return "no block device"


def alternating(cases: Mapping[str, Callable[[], dict[str, Any]]], repeats: int) -> dict[str, dict[str, Any]]:
    """Runs the cases round by round, so that a slow minute of the machine hits all of them, and takes medians.

    A case returns a dict with "seconds", or with "failed" and a reason; a case that failed once is not tried again.
    """
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in cases}
    for number in range(repeats):
        for name, run in cases.items():
            if rounds[name] and rounds[name][-1].get("failed"):
                continue
            outcome = run()
            rounds[name].append(outcome)
            print(f"  round {number + 1}/{repeats}  {name}: {outcome.get('failed') or _brief(outcome)}", flush=True)
    return {name: _median(outcomes) for name, outcomes in rounds.items()}


def _brief(outcome: Mapping[str, Any]) -> str:
    return f"{outcome['seconds']:.2f} s"


def _median(outcomes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The outcome with the median time, with the spread of all beside it."""
    failed = [outcome for outcome in outcomes if outcome.get("failed")]
    if failed:
        return failed[0]
    ordered = sorted(outcomes, key=lambda outcome: outcome["seconds"])
    times = [outcome["seconds"] for outcome in ordered]
    middle = dict(ordered[(len(ordered) - 1) // 2])
    return middle | {
        "seconds": statistics.median(times),
        "seconds_min": times[0],
        "seconds_max": times[-1],
        "seconds_by_round": [outcome["seconds"] for outcome in outcomes],
        "n": len(times),
    }


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A markdown table; numbers are the caller's to format."""
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def write_record(
    name: str,
    title: str,
    folder: Path,
    sections: Sequence[str],
    figures: Mapping[str, Any],
    packages: Sequence[str] = (),
) -> Path:
    """Leaves record/<date>-<name>.md for people and .json for programs."""
    RECORD.mkdir(exist_ok=True)
    date = datetime.date.today().isoformat()
    line, used = machine(folder), versions("outcore", "numpy", *packages)
    head = [
        f"# {title}",
        f"{date} · {line['cpu']}, {line['cores']} cores, {show_bytes(line['memory_bytes'])}, {line['disk']}",
        ", ".join(f"{package} {version}" for package, version in used.items()),
    ]
    page = RECORD / f"{date}-{name}.md"
    page.write_text("\n\n".join([*head, *sections]) + "\n")
    content = {"machine": line, "versions": used, "date": date, "figures": figures}
    page.with_suffix(".json").write_text(json.dumps(content, indent=1, default=str) + "\n")
    print("\n" + "\n\n".join(sections) + f"\n\nrecord: {page.relative_to(RECORD.parent.parent)}")
    return page
