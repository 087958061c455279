"""Configuration: defaults, a YAML file, `OUTCORE_…` variables and `set()`, each over the one before.

The file is `$OUTCORE_CONFIG`, or `~/.config/outcore.yaml` where that exists. Sizes are integers or `"8GiB"`, `"512MB"`.
Configuration only chooses the options of the default session; a `Session` made by hand takes its own.
"""

from __future__ import annotations

import builtins
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from outcore._base import machine
from outcore._base.names import close_names
from outcore._base.sizes import parse_size
from outcore.errors import ConfigError

OptionValues: TypeAlias = dict[str, Any]  # by key, each value as its check has it
POLICIES = ("next-use", "clean-first-lru", "consumer-count", "lru", "clock")
REWRITES = ("reassociate", "fuse-products", "merge-scans", "pipeline", "alternate", "share-tiles", "search", "all")
_SIZE_MAX = (1 << 63) - 1
_THREADS_MAX = 1024
_IO_THREADS_MAX = 256
_WINDOW_MAX = 1 << 31
_PREFIX = "OUTCORE_"
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _size(value: Any) -> int:
    size = parse_size(value)
    if size > _SIZE_MAX:
        raise ValueError(f"{value!r} is more than the {_SIZE_MAX} bytes a size may be")
    return size


def _count(most: int) -> Callable[[Any], int]:
    """Whole numbers from 1 to `most`, also as text."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not 1 <= float(value) <= most or int(value) != float(value):
            raise ValueError(f"{value!r} is not a count from 1 to {most}")
        return int(value)

    return check


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = _WORDS.get(str(value).strip().lower())
    if word is None:
        raise ValueError(f"{value!r} is neither on nor off")
    return word


def _policy(value: object) -> str:
    if value not in POLICIES:
        raise ValueError(f"{value!r} is none of {', '.join(POLICIES)}")
    return str(value)


def _directories(value: Any) -> list[str]:
    parts = value.split(os.pathsep) if isinstance(value, str) else [value] if isinstance(value, os.PathLike) else value
    return [os.fspath(Path(part).expanduser()) for part in parts if os.fspath(part)]


def _rewrites(value: object) -> dict[str, bool]:
    if isinstance(value, Mapping):
        flags = {str(name): _flag(state) for name, state in value.items()}
    else:
        pairs = (part.partition("=") for part in str(value).split(",") if part.strip())
        flags = {name.strip(): _flag(state or "on") for name, _, state in pairs}
    for name in flags:
        if name not in REWRITES:
            raise ValueError(f"{name!r} is none of {', '.join(REWRITES)}")
    return flags


def _text(value: object) -> str:
    return str(value)


# One line per key: what it means is in the docstring of `set`; None everywhere means "decide for me".
_KEYS: dict[str, Callable[[Any], object]] = {
    "memory_limit": _size,
    "pool_limit": _size,
    "threads": _count(_THREADS_MAX),
    "io_threads": _count(_IO_THREADS_MAX),
    "window": _count(_WINDOW_MAX),
    "scratch": _directories,
    "scratch_quota": _size,
    "policy": _policy,
    "rewrites": _rewrites,
    "direct_io": _flag,
    "faults": _text,
    "progress": _flag,
}
_lock = threading.RLock()
_loaded: OptionValues | None = None
# Every call asks for the limit, and asking the control groups takes longer than planning a small one: a limit is known
# for so many seconds. Kept beside its time, so that threads need no lock.
_LIMIT_SECONDS = 1.0
_limit: tuple[float, int] | None = None


def _machine_limit() -> int:
    """The memory limit that the machine and its control groups say."""
    global _limit
    known, now = _limit, time.monotonic()
    if known is None or now - known[0] > _LIMIT_SECONDS:
        known = _limit = now, machine.default_memory_limit()
    return known[1]


def _default(key: str) -> Any:
    if key == "memory_limit":
        return _machine_limit()
    if key == "scratch":
        return [machine.default_scratch()]
    return {"policy": "next-use", "rewrites": {}, "direct_io": True}.get(key)


def _unknown(key: str, source: str) -> ConfigError:
    nearest = close_names(key, _KEYS, count=1, cutoff=0.0)[0]
    return ConfigError(f"{source}: unknown key {key!r}; did you mean {nearest!r}?", {"key": key, "nearest": nearest})


def _checked(key: str, value: object, source: str) -> Any:
    if key not in _KEYS:
        raise _unknown(key, source)
    if value is None:
        return None
    try:
        return _KEYS[key](value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ConfigError(f"{source}: {key}: {error}", {"key": key}) from None


def _read_file() -> OptionValues:
    named = os.environ.get(f"{_PREFIX}CONFIG")
    path = Path(named).expanduser() if named else Path.home() / ".config" / "outcore.yaml"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if named:
            raise ConfigError(f"OUTCORE_CONFIG names {path}, which does not exist") from None
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not a text file: {error}") from None
    import yaml  # only where there is a file, so that a bare import stays light

    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected a mapping of keys to values, found {type(content).__name__}")
    return {key: _checked(str(key), value, str(path)) for key, value in content.items()}


def _read_environment() -> OptionValues:
    values: OptionValues = {}
    for name, text in os.environ.items():
        if not name.startswith(_PREFIX) or name == f"{_PREFIX}CONFIG":
            continue
        key = name.removeprefix(_PREFIX).lower()
        if key in _KEYS:
            values[key] = _checked(key, text or None, name)
        elif nearest := close_names(key, _KEYS, count=1, cutoff=0.8):
            # Others may use the prefix for variables of their own, so a stranger is only suspected of a slip.
            warnings.warn(f"{name} is not read; did you mean {_PREFIX}{nearest[0].upper()}?", stacklevel=4)
    return values


def _base() -> OptionValues:
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = {**_read_file(), **_read_environment()}
        return _loaded


def refresh() -> None:
    """Reads file and environment, and asks the machine, again at the next use. Values changed by `set()` stay.

    A limit of a control group that changes is known a second later without it.

    >>> import outcore as oc
    >>> oc.config.refresh()
    """
    global _loaded, _limit
    with _lock:
        _loaded = _limit = None


def get(key: str) -> Any:
    """The value in force for one key: sizes in bytes, directories as a list.

    Raises ConfigError for an unknown key, naming the nearest one.

    >>> import outcore as oc
    >>> with oc.config.set(threads=2):
    ...     oc.config.get("threads")
    2
    """
    if key not in _KEYS:
        raise _unknown(key, "config.get")
    with _lock:
        value = next((values[key] for _, values in reversed(_layers) if key in values), None)
        if value is None:
            value = _base().get(key)
    return _default(key) if value is None else value


def snapshot(**options: object) -> OptionValues:
    """Every key's value in force, with `options` laid over; what a session is made from. Raises ConfigError as `get`.

    >>> import outcore as oc
    >>> oc.config.snapshot(memory_limit="1GiB")["memory_limit"]
    1073741824
    """
    overrides = {key: _checked(key, value, "Session") for key, value in options.items()}
    return {key: get(key) if overrides.get(key) is None else overrides[key] for key in _KEYS}


class set:
    """Changes configuration, of all threads: for good when called, for a block when used in a `with` statement.

    Keys: `memory_limit` resident bytes of the whole process (default 0.8 of the machine's or control group's),
    `pool_limit` bytes for tiles alone, `threads`, `io_threads`, `window` tasks in flight, `scratch` directories for
    spills, `scratch_quota` bytes, `policy` ("next-use", "clean-first-lru", "consumer-count", "lru", "clock"),
    `rewrites` ({name: on or off}), `direct_io`, `faults` (test harness), `progress` (None: only where someone watches).
    A key set to None returns to what file, environment and machine say. Raises ConfigError for unknown keys and values.

    >>> import outcore as oc
    >>> with oc.config.set(memory_limit="2GiB", threads=2):
    ...     oc.config.get("memory_limit")
    2147483648
    """

    def __init__(self, **options: object) -> None:
        self._values = {key: _checked(key, value, "config.set") for key, value in options.items()}
        with _lock:
            _join_lasting()
            _layers.append((weakref.ref(self), self._values))

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _layers[:] = [layer for layer in _layers if layer[1] is not self._values]


# Changes by `set`, the latest last. A change that can still be taken back is a layer of its own: threads may take
# theirs back in any order; its `set` is alive.
_layers: list[tuple[weakref.ref[set], OptionValues]] = []


def _join_lasting() -> None:
    """Makes one of neighbouring layers that nobody can take back any more, so that plain calls do not pile up."""
    joined: list[tuple[weakref.ref[set], OptionValues]] = []
    for owner, values in _layers:
        if joined and owner() is None and joined[-1][0]() is None:
            values = joined.pop()[1] | values
        joined.append((owner, values))
    _layers[:] = joined


def names() -> builtins.set[str]:
    """The names of all keys; `set` says what they mean.

    >>> import outcore as oc
    >>> "memory_limit" in oc.config.names()
    True
    """
    return builtins.set(_KEYS)


def _renew_lock() -> None:
    """In a forked child: another thread of the parent may have held the old one."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)

__all__ = ["get", "names", "refresh", "set", "snapshot"]
