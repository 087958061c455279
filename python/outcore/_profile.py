"""`profile()`: a timeline of every run inside a block, as Chrome trace JSON, and what the runs did."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore._session import Outcome

_active: ContextVar[Profile | None] = ContextVar("outcore_profile", default=None)


class Profile:
    """The runs of one block: `outcomes` one per run, and their sums. Made by `profile`.

    >>> import outcore as oc
    >>> with oc.profile() as seen:
    ...     total = oc.arange(10).sum().item()
    >>> seen.to_dict()["runs"]
    1
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.outcomes: list[Outcome] = []
        self.started = time.perf_counter()
        self.events: list[dict[str, Any]] = []

    @property
    def bytes_read(self) -> int:
        """Bytes read from sources and scratch by all runs."""
        return sum(outcome.bytes_read for outcome in self.outcomes)

    @property
    def bytes_written(self) -> int:
        """Bytes written to targets and scratch by all runs."""
        return sum(outcome.bytes_written for outcome in self.outcomes)

    @property
    def bytes_spilled(self) -> int:
        """The part of `bytes_written` that went to scratch."""
        return sum(outcome.bytes_spilled for outcome in self.outcomes)

    @property
    def peak_bytes(self) -> int:
        """The most any run had reserved at once."""
        return max((outcome.peak_bytes for outcome in self.outcomes), default=0)

    @property
    def seconds(self) -> float:
        """Wall time of all runs."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """The sums, for JSON."""
        names = ("bytes_read", "bytes_written", "bytes_spilled", "peak_bytes", "seconds")
        return {"runs": len(self.outcomes), **{name: getattr(self, name) for name in names}}

    def __repr__(self) -> str:
        return f"Profile({', '.join(f'{name}={value}' for name, value in self.to_dict().items())})"

    def _add(self, text: str, offset_seconds: float) -> None:
        content = json.loads(text) if text.strip() else []
        events = content.get("traceEvents", []) if isinstance(content, dict) else content
        run = len(self.outcomes) + 1
        for event in events:
            moved = {**event, "pid": run}
            if "ts" in event:
                moved["ts"] = event["ts"] + offset_seconds * 1e6
            self.events.append(moved)


@contextmanager
def profile(path: str | os.PathLike[str] | None = None) -> Iterator[Profile]:
    """Counts what every run in the block does; with a path, also writes their timeline as Chrome trace JSON.

    Open the file in `chrome://tracing` or ui.perfetto.dev; each run is a process of its own there. I/O: none of its own
    but that file. Raises OSError where it cannot be written.

    >>> import outcore as oc
    >>> with oc.profile() as seen:
    ...     total = oc.arange(10).sum().item()
    >>> len(seen.outcomes), seen.bytes_read
    (1, 0)
    """
    profile = Profile(None if path is None else Path(path))
    token = _active.set(profile)
    try:
        yield profile
    finally:
        _active.reset(token)
        if profile.path is not None:
            profile.path.write_text(json.dumps({"traceEvents": profile.events, "displayTimeUnit": "ms"}))


@contextmanager
def recording() -> Iterator[str | None]:
    """The path a run should write its trace to, if a profile with a path is open."""
    profile = _active.get()
    if profile is None or profile.path is None:
        yield None
        return
    offset = time.perf_counter() - profile.started
    with tempfile.TemporaryDirectory(prefix="outcore-trace-") as directory:
        trace = Path(directory) / "trace.json"
        yield str(trace)
        if trace.exists():
            profile._add(trace.read_text(), offset)


def record(outcome: Outcome) -> None:
    """Adds a run to the profile in force, if any."""
    profile = _active.get()
    if profile is not None:
        profile.outcomes.append(outcome)
