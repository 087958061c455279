"""Configuration: layers, sizes, names; sessions and the exceptions' codes."""

from __future__ import annotations

import pickle

import pytest

import outcore as oc
from outcore import config, errors
from outcore._base import machine
from outcore._base.sizes import format_size, parse_size
from outcore._base.times import format_time
from outcore._session import session as _session


@pytest.fixture(autouse=True)
def fresh_configuration(monkeypatch, tmp_path):
    """No file, no variables, no overrides of another test."""
    for key in config.names():
        monkeypatch.delenv(f"OUTCORE_{key.upper()}", raising=False)
    monkeypatch.delenv("OUTCORE_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(config, "_layers", [])
    config.refresh()
    yield
    config.refresh()


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 << 30), ("512MB", 512 * 10**6), ("1.5 KiB", 1536), ("77", 77), (1024, 1024), ("2g", 2 * 10**9)],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["8 gibberish", "", "-1", -1, True, None, "1e9"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (273_600, "3 d 4 h"),
        (7230, "2 h 0 min"),
        (830.4, "13 min 50 s"),
        (31.02, "31 s"),
        (0.1, "0.1 s"),
        (0.0204, "20.4 ms"),
        (1e-4, "0.1 ms"),
        (3.14e-6, "3.14 µs"),
        (9.9e-7, "< 1 µs"),
        (5.1e-10, "< 1 µs"),
        (0.0, "0 s"),
    ],
)
def test_times_are_written_in_units_of_three_figures(seconds, text):
    assert format_time(seconds) == text


def test_sizes_are_written_in_binary_units():
    assert [format_size(size) for size in (0, 1023, 1536, 1 << 29, 3 << 40)] == [
        "0 B", "1023 B", "1.50 KiB", "512.0 MiB", "3.00 TiB",
    ]  # fmt: skip


def test_set_holds_for_the_block_and_then_returns():
    before = config.get("memory_limit")
    with config.set(memory_limit="512MiB", policy="lru"):
        assert (config.get("memory_limit"), config.get("policy")) == (512 << 20, "lru")
        with config.set(memory_limit="1GiB"):
            assert config.get("memory_limit") == 1 << 30
        assert config.get("memory_limit") == 512 << 20
    assert (config.get("memory_limit"), config.get("policy")) == (before, "next-use")


def test_a_plain_call_of_set_lasts_and_none_takes_it_back():
    config.set(threads=3)
    assert config.get("threads") == 3
    config.set(threads=None)
    assert config.get("threads") is None


def test_layers_file_then_environment_then_set(monkeypatch, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("memory_limit: 1GiB\nthreads: 2\npolicy: clock\nscratch: [/a, /b]\n")
    monkeypatch.setenv("OUTCORE_CONFIG", str(file))
    monkeypatch.setenv("OUTCORE_THREADS", "5")
    monkeypatch.setenv("OUTCORE_REWRITES", "fuse-products=off,reassociate")
    config.refresh()
    with config.set(policy="lru"):
        values = config.snapshot()
    assert values["memory_limit"] == 1 << 30
    assert values["threads"] == 5
    assert values["policy"] == "lru"
    assert values["scratch"] == ["/a", "/b"]
    assert values["rewrites"] == {"fuse-products": False, "reassociate": True}


def test_the_file_in_the_home_folder_is_read(tmp_path):
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "outcore.yaml").write_text("direct_io: off\n")
    config.refresh()
    assert config.get("direct_io") is False


@pytest.mark.parametrize("use", [lambda: config.set(memory_limt="1GiB"), lambda: config.get("memory_limt")])
def test_an_unknown_key_is_refused_with_the_nearest_one(use):
    with pytest.raises(errors.ConfigError, match=r"memory_limt.*did you mean 'memory_limit'"):
        use()


def test_an_unknown_key_in_a_file_names_the_file(monkeypatch, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("thread: 2\n")
    monkeypatch.setenv("OUTCORE_CONFIG", str(file))
    config.refresh()
    with pytest.raises(errors.ConfigError, match=r"settings\.yaml: unknown key 'thread'.*'threads'"):
        config.get("threads")


def test_a_misspelled_variable_is_suspected(monkeypatch):
    monkeypatch.setenv("OUTCORE_MEMORY_LIMT", "1GiB")
    config.refresh()
    with pytest.warns(UserWarning, match="OUTCORE_MEMORY_LIMIT"):
        config.get("memory_limit")


@pytest.mark.parametrize(
    "option", [{"threads": 0}, {"threads": 1.5}, {"memory_limit": "lots"}, {"policy": "best"}, {"direct_io": "maybe"}]
)
def test_a_value_a_key_cannot_take_is_refused(option):
    with pytest.raises(errors.ConfigError, match=next(iter(option))):
        config.set(**option)


def test_a_refused_change_changes_nothing():
    with pytest.raises(errors.ConfigError):
        config.set(threads=2, policy="best")
    assert config.get("threads") is None


def test_the_default_limit_is_a_share_of_the_tighter_of_host_and_group(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("1000000\n")
    assert machine.cgroup_memory([tmp_path]) == 1000000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.cgroup_memory([tmp_path]) is None
    (tmp_path / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert machine.cgroup_memory([tmp_path]) is None
    monkeypatch.setattr(machine, "cgroup_memory", lambda: 1000000)
    monkeypatch.setattr(config, "_limit", None)
    assert config.get("memory_limit") == 800000


def test_the_machine_is_not_asked_at_every_call(monkeypatch):
    asked = []
    monkeypatch.setattr(config, "_limit", None)
    monkeypatch.setattr(machine, "cgroup_memory", lambda: asked.append(1) or 1000000)
    monkeypatch.setattr(config.time, "monotonic", lambda: 7.0 + len(asked))
    for _ in range(100):
        assert config.snapshot()["memory_limit"] == 800000
    assert len(asked) == 1
    config.refresh()
    assert config.get("memory_limit") == 800000
    assert len(asked) == 2


def test_groups_of_both_versions_are_found_with_their_parents(tmp_path):
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (root / "memory" / "a" / "b").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("4:memory:/a/b\n3:cpuset:/x\n")
    assert machine.cgroup_directories(root=root, proc=proc) == [
        root / "memory" / "a" / "b", root / "memory" / "a", root / "memory",
    ]  # fmt: skip
    (root / "c").mkdir()
    (proc / "self" / "cgroup").write_text("0::/c/hidden\n")
    assert machine.cgroup_directories(root=root, proc=proc) == [root / "c", root]


def test_the_same_configuration_gives_the_same_session():
    with config.set(memory_limit="600MiB"):
        first = _session.current()
    with config.set(memory_limit="700MiB"):
        assert _session.current() is not first
    with config.set(memory_limit="600MiB"):
        assert _session.current() is first


def test_an_entered_session_is_the_one_in_use():
    with oc.Session(memory_limit="640MiB") as session:
        assert _session.current() is session
        with config.set(memory_limit="700MiB"):
            assert _session.current() is session
    assert _session.current() is not session
    assert session.options["memory_limit"] == 640 << 20


def test_a_session_refuses_unknown_options():
    with pytest.raises(errors.ConfigError, match="memory_limit"):
        oc.Session(memorylimit=1)


@pytest.mark.parametrize(
    ("code", "kind", "builtin"),
    [
        ("shape", errors.ShapeError, ValueError),
        ("dtype", errors.DTypeError, TypeError),
        ("index", errors.IndexingError, IndexError),
        ("memory", errors.MemoryLimitError, MemoryError),
        ("format", errors.FormatError, ValueError),
        ("io", errors.StorageError, OSError),
        ("missing", errors.MissingFileError, FileNotFoundError),
        ("permission", errors.PermissionDeniedError, PermissionError),
        ("internal", errors.InternalError, RuntimeError),
        ("range", errors.RangeError, OverflowError),
        ("exists", errors.TargetExistsError, FileExistsError),
        ("changed", errors.SourceChangedError, OSError),
        ("quota", errors.ScratchQuotaError, OSError),
        ("plan", errors.PlanError, RuntimeError),
        ("function", errors.FunctionError, RuntimeError),
        ("session", errors.SessionError, RuntimeError),
        ("config", errors.ConfigError, ValueError),
        ("space", errors.DiskFullError, OSError),
        ("unsupported", errors.UnsupportedFormatError, ValueError),
        ("invalid", errors.ArgumentError, ValueError),
        ("cancelled", errors.Cancelled, errors.OutcoreError),
    ],
)
def test_a_code_gives_its_exception_and_survives_pickling(code, kind, builtin):
    error = errors.from_code(code, "what happened", {"need": 5})
    assert type(error) is kind
    assert isinstance(error, builtin)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, str(again), again.details) == (kind, code, "what happened", {"need": 5})


def test_an_unknown_code_is_kept():
    assert errors.from_code("new", "text").code == "new"


def test_a_refused_plan_carries_its_numbers():
    error = errors.from_code("memory", "m", {"operator": "matmul", "need": 9, "limit": 8, "smallest": 10})
    assert (error.operator, error.need, error.limit, error.smallest) == ("matmul", 9, 8, 10)
