"""How people hold it: sessions left in any order, odd values, NumPy's integers; what is wrong is said in one line."""

from __future__ import annotations

import copy
import errno
import json
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.running import session

import outcore as oc
from outcore import _core, config, errors
from outcore._command.cli import main
from outcore._session import session as _session

ROOT = Path(__file__).parent.parent
VALUES = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No file of the user's, no changes of another test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(config, "_layers", [])
    config.refresh()
    yield
    config.refresh()


@pytest.fixture
def x() -> oc.Array:
    return oc.asarray(VALUES)


def refuses(kind: type[errors.OutcoreError], words: str, function: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=words) as raised:
        function()
    assert "\n" not in str(raised.value)


# -- sessions and configuration ---------------------------------------------------------------------------------


def entered(made: oc.Session) -> Iterator[oc.Session]:
    with made:
        yield made


def test_sessions_may_be_left_in_any_order() -> None:
    first, second = oc.Session(), oc.Session()
    generators = entered(first), entered(second)
    for generator in generators:
        next(generator)
    assert _session.current() is second
    generators[0].close()
    assert _session.current() is second
    generators[1].close()
    assert _session.current() not in (first, second)
    assert oc.compute(oc.ones(3).sum()) == 3


def test_a_session_entered_twice_closes_when_it_is_left_for_good() -> None:
    outer, inner = oc.Session(), oc.Session()
    with outer, inner:
        with outer:
            assert _session.current() is outer
        assert _session.current() is inner
        assert oc.compute(oc.ones(3).sum()) == 3
    with pytest.raises(errors.SessionError), outer:
        oc.compute(oc.ones(3))


def in_a_thread(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_session_holds_for_the_thread_that_entered_it() -> None:
    with oc.Session() as made:
        assert in_a_thread(_session.current) is not made
        assert in_a_thread(lambda: next(entered(made))) is made
        assert _session.current() is made


def test_a_session_left_by_another_thread_is_left() -> None:
    made = oc.Session()
    generator = entered(made)
    next(generator)
    in_a_thread(generator.close)
    assert _session.current() is not made


def test_settings_are_taken_back_in_any_order() -> None:
    before = config.get("threads"), config.get("window")
    first = config.set(threads=2, window=7)
    second = config.set(threads=3)
    assert (config.get("threads"), config.get("window")) == (3, 7)
    first.__exit__(None, None, None)
    assert (config.get("threads"), config.get("window")) == (3, before[1])
    second.__exit__(None, None, None)
    assert (config.get("threads"), config.get("window")) == before


def test_threads_that_change_settings_leave_none_behind() -> None:
    def work(number: int) -> None:
        for _ in range(200):
            with config.set(threads=number):
                config.get("threads")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert config.get("threads") is None


def test_plain_changes_of_settings_do_not_pile_up() -> None:
    for number in range(1, 50):
        config.set(threads=number)
        config.set(window=number)
    assert len(config._layers) <= 3
    assert (config.get("threads"), config.get("window")) == (49, 49)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"threads": 10**6}, "from 1 to 1024"),
        ({"threads": float("inf")}, "from 1 to 1024"),
        ({"threads": float("nan")}, "from 1 to 1024"),
        ({"io_threads": 257}, "from 1 to 256"),
        ({"window": 2**70}, "not a count"),
        ({"memory_limit": 2**70}, "bytes a size may be"),
        ({"scratch_quota": 2**70}, "bytes a size may be"),
        ({"pool_limit": "99999999999TiB"}, "bytes a size may be"),
        ({"rewrites": {"fuse": True}}, "'fuse' is none of reassociate"),
        ({"rewrites": "pipeline=off,nonsense"}, "'nonsense' is none of"),
    ],
)
def test_settings_beyond_reason_are_refused_when_made(option: dict[str, Any], words: str) -> None:
    refuses(errors.ConfigError, f"{next(iter(option))}: .*{words}", lambda: config.set(**option))


def test_numpys_integers_are_settings() -> None:
    with config.set(memory_limit=np.int64(1 << 30), threads=np.int64(2)):
        assert (config.get("memory_limit"), config.get("threads")) == (1 << 30, 2)


def test_the_rewrites_are_those_of_the_core() -> None:
    with pytest.raises(errors.OutcoreError, match="there is none called") as raised:
        _core.Session({"rewrites": {"nonsense": True}})
    named = re.split(r"[;,]? (?:there are )?", str(raised.value).partition("; there are ")[2])
    assert {*named, "all"} == {*config.REWRITES}


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00\x81", b"\x00\x01\x02"])
def test_a_configuration_that_is_no_text_is_named(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings"
    path.mkdir() if content is None else path.write_bytes(content)
    monkeypatch.setenv("OUTCORE_CONFIG", str(path))
    config.refresh()
    refuses(errors.ConfigError, str(path), lambda: config.get("threads"))


# -- arrays as Python values ------------------------------------------------------------------------------------


def test_arrays_are_iterated_by_rows(x: oc.Array) -> None:
    rows = list(x)
    assert all(isinstance(row, oc.Array) for row in rows)
    np.testing.assert_array_equal(np.stack(oc.compute(*rows)), VALUES)
    assert list(oc.zeros((0, 3))) == []


def test_an_array_without_axes_is_not_iterated() -> None:
    refuses(errors.DTypeError, "iteration over a 0-d array", lambda: iter(oc.asarray(3)))


def test_a_shape_may_be_an_array() -> None:
    for shape in (oc.asarray(3), np.asarray(3), np.int8(3), oc.asarray([3]), np.asarray([3])):
        assert oc.ones(shape).shape == (3,)
    for shape in (2.5, oc.asarray(2.5), "a", [1.5]):
        refuses(errors.DTypeError, "integer", lambda shape=shape: oc.zeros(shape))


@pytest.mark.parametrize("use", [copy.copy, copy.deepcopy, oc.Array.copy, np.copy])
def test_a_copy_is_the_same_value_behind_another_name(use: Callable[[Any], Any]) -> None:
    x = oc.asarray(np.arange(6))
    for original, values in ((x.copy(), np.arange(6)), (x[x > 1], np.arange(2, 6))):
        again = use(original)
        original[0] = 9
        again[1] = 7
        assert original.compute().tolist() == [9, *values[1:]]
        assert again.compute().tolist() == [values[0], 7, *values[2:]]
    assert copy.deepcopy({"a": [x]})["a"][0].shape == (6,)


@pytest.mark.parametrize(
    ("value", "dtype", "kind", "builtin"),
    [
        ([300], "int8", errors.RangeError, OverflowError),
        (300, "int8", errors.RangeError, OverflowError),
        ([-1], "uint8", errors.RangeError, OverflowError),
        ([1 + 2j], float, errors.DTypeError, TypeError),
        (1j, "float32", errors.DTypeError, TypeError),
        ([float("nan")], "int32", errors.ArgumentError, ValueError),
        (["a"], float, errors.ArgumentError, ValueError),
        ([[1], [1, 2]], None, errors.ArgumentError, ValueError),
    ],
)
def test_numbers_that_a_type_cannot_hold_are_refused_as_by_numpy(
    value: Any, dtype: Any, kind: type[errors.OutcoreError], builtin: type[Exception]
) -> None:
    with pytest.raises(builtin):
        np.asarray(value, dtype)
    refuses(kind, ".", lambda: oc.asarray(value, dtype=dtype))
    assert issubclass(kind, builtin)


@pytest.mark.parametrize(
    ("value", "dtype"), [([2.5, -1.5], "int8"), (2.5, "int8"), ([0.1], "float32"), (True, float), (2**63, "uint64")]
)
def test_numbers_are_cast_as_by_numpy(value: Any, dtype: str) -> None:
    found, expected = oc.compute(oc.asarray(value, dtype=dtype)), np.asarray(value, dtype)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_masked_arrays_are_refused(x: oc.Array) -> None:
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    for use in (oc.asarray, oc.sum, lambda part: x + part):
        refuses(errors.DTypeError, r"masked arrays .*x\.filled", lambda use=use: use(masked))


ONE, ZERO = np.int64(1), np.int64(0)
WITH_NUMPYS_INTEGERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reshape": (lambda x: x.reshape(np.int64(6)), lambda a: a.reshape(6)),
    "reshape, two": (lambda x: x.reshape(np.int64(3), np.int64(-1)), lambda a: a.reshape(3, -1)),
    "transpose": (lambda x: x.transpose(ONE, ZERO), lambda a: a.T),
    "roll": (lambda x: oc.roll(x, ONE, axis=ZERO), lambda a: np.roll(a, 1, axis=0)),
    "roll, flat": (lambda x: oc.roll(x, ONE), lambda a: np.roll(a, 1)),
    "roll, both": (lambda x: oc.roll(x, (ONE, 2), axis=(0, ONE)), lambda a: np.roll(a, (1, 2), (0, 1))),
    "moveaxis": (lambda x: oc.moveaxis(x, ZERO, ONE), lambda a: np.moveaxis(a, 0, 1)),
    "repeat": (lambda x: oc.repeat(x, np.int64(2), axis=ONE), lambda a: np.repeat(a, 2, axis=1)),
    "tile": (lambda x: oc.tile(x, np.int64(2)), lambda a: np.tile(a, 2)),
    "expand_dims": (lambda x: oc.expand_dims(x, axis=ONE), lambda a: np.expand_dims(a, 1)),
    "squeeze": (lambda x: x[:1].squeeze(ZERO), lambda a: a[:1].squeeze(0)),
    "flip": (lambda x: oc.flip(x, axis=ZERO), lambda a: np.flip(a, 0)),
    "sum": (lambda x: oc.sum(x, axis=ONE), lambda a: np.sum(a, axis=1)),
    "argmax": (lambda x: oc.argmax(x, axis=ZERO), lambda a: np.argmax(a, axis=0)),
    "concat": (lambda x: oc.concat([x, x], axis=ONE), lambda a: np.concatenate([a, a], axis=1)),
    "stack": (lambda x: oc.stack([x, x], axis=ONE), lambda a: np.stack([a, a], axis=1)),
    "take": (lambda x: oc.take(x, [ONE], axis=ONE), lambda a: np.take(a, [1], axis=1)),
    "diff": (lambda x: oc.diff(x, axis=ZERO, n=ONE), lambda a: np.diff(a, axis=0)),
    "broadcast_to": (lambda x: oc.broadcast_to(x[0], (np.int64(2), 3)), lambda a: np.broadcast_to(a[0], (2, 3))),
    "tril": (lambda x: oc.tril(x, k=ONE), lambda a: np.tril(a, 1)),
    "index": (lambda x: x[ONE, ZERO:], lambda a: a[1]),
}


@pytest.mark.parametrize("case", WITH_NUMPYS_INTEGERS)
def test_numpys_integers_are_integers(case: str, x: oc.Array) -> None:
    ours, theirs = WITH_NUMPYS_INTEGERS[case]
    np.testing.assert_array_equal(oc.compute(ours(x)), theirs(VALUES))


WITH_NUMPYS_ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda a: np.reshape(a, -1, order="C"),
    "ravel": lambda a: np.ravel(a, order="C"),
    "round": lambda a: np.round(a / 7, 2),
    "round, tens": lambda a: np.round(a * 7.5, -1),
    "around": lambda a: np.around(a / 7, decimals=3),
    "round, complex": lambda a: np.round(a / 7 + 1j * a / 9),
    "round, integers": lambda a: np.round(a.astype("i4"), 2),
    "diff, scalar": lambda a: np.diff(a, prepend=0),
    "diff, other axis": lambda a: np.diff(a, axis=0, prepend=1.5, append=2),
    "diff, array": lambda a: np.diff(a, append=np.ones((2, 2))),
    "tile": lambda a: np.tile(a, np.int64(2)),
    "tensordot": lambda a: np.tensordot(a, a, axes=(np.int64(0), np.int64(0))),
    "where": lambda a: np.where(a > 2, a, -a),
    "where of a condition": lambda a: np.where(a > 2)[0],
    "sort": lambda a: np.sort(a, axis=0),
    "argsort": lambda a: np.argsort(a, axis=-1, kind="stable"),
    "cumsum": lambda a: np.cumsum(a),
    "cumprod": lambda a: np.cumprod(a, axis=0),
    "median": lambda a: np.median(a, axis=0),
    "argwhere": lambda a: np.argwhere(a > 2),
}


@pytest.mark.parametrize("case", WITH_NUMPYS_ARGUMENTS)
def test_numpys_functions_take_numpys_arguments(case: str, x: oc.Array) -> None:
    found, expected = WITH_NUMPYS_ARGUMENTS[case](x), WITH_NUMPYS_ARGUMENTS[case](VALUES)
    assert isinstance(found, oc.Array)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(oc.compute(found), expected)


REFUSED_OF_NUMPY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "reshape": ("numpy.reshape.*order 'F'", lambda a: np.reshape(a, -1, order="F")),
    "round": ("round: -1 decimals of int32", lambda a: np.round(a.astype("i4"), -1)),
    "round, complex": ("round: 2 decimals of complex128", lambda a: np.round(a + 1j, 2)),
    "concatenate": ("numpy.concatenate: .*'casting'.* takes arrays, axis", lambda a: np.concatenate([a], casting="no")),
    "sum": ("numpy.sum: .*'initial'.* takes x, axis", lambda a: np.sum(a, initial=1.0)),
    "take": ("numpy.take: .*'mode'", lambda a: np.take(a, [0], axis=0, mode="wrap")),
}


@pytest.mark.parametrize("case", REFUSED_OF_NUMPY)
def test_arguments_of_numpy_without_a_counterpart_are_named(case: str, x: oc.Array) -> None:
    words, function = REFUSED_OF_NUMPY[case]
    refuses(errors.DTypeError, words, lambda: function(x))


# -- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none.npy", "none.zarr", "none"])
def test_a_missing_input_is_a_file_not_found(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / name)
    with pytest.raises(FileNotFoundError) as raised:
        oc.open(path)
    error = raised.value
    assert isinstance(error, errors.StorageError)
    assert (error.errno, error.filename, str(error)) == (errno.ENOENT, path, f"{path}: no such file or directory")
    again = pickle.loads(pickle.dumps(error))
    assert (again.errno, again.filename, str(again)) == (error.errno, error.filename, str(error))


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([0, 3], r"chunks \(0, 3\) .*y\.zarr of shape \(2, 3\)"),
        ([-1, 3], r"chunks \(-1, 3\)"),
        ([1.5, 3], r"\[1.5, 3\] .*y\.zarr are not integers"),
        ([2.0, 3], "are not integers"),
        ([2**70, 3], "lengths run from 1"),
        ([2], r"chunks \(2,\) .*dimensions of \(2, 3\)"),
    ],
)
def test_chunks_that_are_none(chunks: Any, words: str, x: oc.Array, out: Path) -> None:
    path = out / "y.zarr"
    refuses(errors.ShapeError, words, lambda: oc.store({path: x}, chunks={path: chunks}))
    assert not path.exists()


def test_chunks_go_by_path(x: oc.Array, out: Path) -> None:
    wrong: Any = (1, 3)
    refuses(errors.ShapeError, r"chunks is a mapping of paths", lambda: oc.store({out / "y.zarr": x}, chunks=wrong))


def test_functions_and_types_of_their_own_are_no_arrays(x: oc.Array) -> None:
    refuses(errors.DTypeError, "maximum is a function", lambda: oc.aggregate(np.maximum, x, axis=0))  # type: ignore[arg-type]
    words = np.asarray(["a"], dtype=np.dtypes.StringDType())  # type: ignore[attr-defined]
    refuses(errors.DTypeError, "StringDType.* is not supported", lambda: oc.sum(words))


def test_chunks_of_a_npy_file_are_refused(x: oc.Array, out: Path) -> None:
    path = out / "y.npy"
    refuses(errors.ShapeError, r"\(1, 3\) for .*y\.npy", lambda: oc.store({path: x}, chunks={path: (1, 3)}))


def test_chunks_may_be_numpys_integers(x: oc.Array, out: Path) -> None:
    path = out / "y.zarr"
    with session():
        oc.store({path: x}, chunks={path: np.asarray([1, 2])})
    assert json.loads(_core.info(str(path)))["chunks"] == [1, 2]


# -- the command line -------------------------------------------------------------------------------------------


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def stored(folder: Path) -> Path:
    np.save(folder / "A.npy", VALUES)
    return folder / "A.npy"


@pytest.mark.parametrize(
    "expression", ["X + 'a'", "1/0", "zeros('a')", "full((3,), 10**30, dtype='int8')", "zeros(10**30)"]
)
def test_an_expression_that_raises_is_one_line(expression: str, data: Path) -> None:
    arguments = ("explain", expression, "-a", f"X={stored(data)}")
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
    assert result.output.startswith("outcore: ")
    assert json.loads(invoke(*arguments, "--json").output)["error"]["message"] in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("inform", "A.npy"),
        ("info", "A.npy", "--wrong"),
        ("explain", "1 + 1"),
        ("explain", "X @"),
        ("explain", "X", "-a", "X"),
        ("convert", "A.npy", "B.zarr", "--memory-limit", "lots"),
        ("clean", "/nowhere/at/all"),
    ],
)
def test_usage_errors_are_json_when_asked(arguments: tuple[str, ...]) -> None:
    assert invoke(*arguments).exit_code == 2
    result = invoke(*arguments, "--json")
    assert result.exit_code == 2
    assert json.loads(result.output)["error"]["code"] == "usage"


@pytest.mark.parametrize("chunks", ["0,3", "-1,3", "1.5,3", "99999999999999999999999,3", "2", ""])
def test_chunks_that_convert_refuses(chunks: str, data: Path, out: Path) -> None:
    result = invoke("convert", stored(data), out / "B.zarr", "--chunks", chunks, "--json")
    assert result.exit_code in (1, 2)
    assert json.loads(result.output)["error"]["message"]
    assert list(out.iterdir()) == []


def test_convert_says_what_a_target_ends_in(data: Path, out: Path) -> None:
    result = invoke("convert", stored(data), out / "B.txt")
    assert result.exit_code == 1
    assert "outputs end in .npy or .zarr, sparse matrices in .ocs" in result.output
    assert "to .npy, .zarr or" in invoke("convert", "--help").output


# -- the pages --------------------------------------------------------------------------------------------------
