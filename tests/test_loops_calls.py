"""Functions of whole slices in loop programs: the same bits as NumPy's, or refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.loop_runs import Tiled, assert_same, plain, random_values, run_within, stored
from support.loop_sources import function_of
from support.running import forecast, load, session

import outcore as oc
from outcore.errors import ArgumentError, FunctionError

KERNEL = np.array([0.25, 0.5, 0.25])
LARGER = np.frompyfunc(max, 2, 1)


def solved(line: Any, k: float) -> Any:
    """Thomas's algorithm: (1 + 2 k) x[i] - k (x[i-1] + x[i+1]) = line[i]."""
    n = len(line)
    x, upper = line.copy(), np.empty(n)
    upper[0], x[0] = -k / (1 + 2 * k), line[0] / (1 + 2 * k)
    for i in range(1, n):
        by = 1 + 2 * k + k * upper[i - 1]
        upper[i], x[i] = -k / by, (line[i] + k * x[i - 1]) / by
    for i in range(n - 2, -1, -1):
        x[i] -= upper[i] * x[i + 1]
    return x


def alternating(u: Any, k: float, steps: int) -> Any:
    """Peaceman and Rachford: lines along one axis, then along the other."""
    for _ in range(steps):
        for i in range(u.shape[0]):
            u[i, :] = solved(u[i, :], k)
        for j in range(u.shape[1]):
            u[:, j] = solved(u[:, j], k=k)
    return u


def spectral(u: Any, steps: int) -> Any:
    for t in range(1, steps):
        for y in range(u.shape[1]):
            u[t, y, :] = np.fft.ifft(0.5j * np.fft.fft(u[t - 1, y, :]))
    return u


def normalized(a: Any, norms: Any, largest: Any) -> Any:
    for i in range(len(a)):
        norms[i] = np.linalg.norm(a[i, 1:])
        largest[i] = a[i, 1:].argmax() + i
        a[i, 1:] /= norms[i] + 1
        a[i, 0] = 2 * a[i, 0]
    return a, norms, largest


def orthogonal(a: Any) -> Any:
    """Gram and Schmidt, of columns."""
    for j in range(a.shape[1]):
        for k in range(j):
            a[:, j] -= np.sum(a[:, k] * a[:, j]) * a[:, k]
        a[:, j] = a[:, j] / np.sqrt(np.sum(a[:, j] * a[:, j], dtype=np.float64))
    return a


def triangles(a: Any, out: Any) -> Any:
    for i in range(1, len(a)):
        out[i, :i] = np.sort(a[i, :i])[::-1]
        if i < 6:
            out[i, i::2] = np.median(a[i, i:]) - np.float32(i)
    return out


def stacked(frames: Any, planes: Any, w: Any) -> Any:
    """Planes of three axes, and arrays without subscripts."""
    for t in range(frames.shape[0] - 1, -1, -1):
        planes[t, :, 1:] = (w @ frames[t, :, :] + frames[0, :, :] * t)[:, 1:]
        frames[t, :, :] = np.rot90(frames[t, :, :], 2) * len(w) + frames.shape[2]
    return planes, frames


def carried(a: Any, sums: Any) -> Any:
    total = 0.0
    for i in range(len(a)):
        weight = a[i, 0] / (i + 1)
        sums[i, :] = np.convolve(a[i, :], KERNEL * weight, mode="same") + total
        total += sums[i, 2]
    return sums, total


def exchanged(u: Any, v: Any, steps: int) -> Any:
    for _ in range(steps):
        for i in range(len(u)):
            v[i, :] = np.roll(u[i, :], 1) + u[len(u) - 1 - i, :]
        u, v = v, u
    return u


def named(a: Any, b: Any, x: Any) -> Any:
    """Arrays by their names alone, ufuncs that lazy arrays have not, and functions of elements that take slices."""
    for i in range(len(a)):
        a[i, :] = LARGER(np.spacing(a[i, :]), b[i, :2]) + np.round(a[i, :], 1)
        a[i, 1:] += np.add(a[i, 1:], 0.1, dtype="f4")
        x[i] = max(b[i, :]) + np.clip(b[i, 1:], a_min=0.2, a_max=0.4).sum()
        b[i, ::2] = np.ones(2)
    x[0] = x @ x
    x[1] = b.max() + a.T.sum()
    return a, b, x


def typed(whole: Any, truths: Any) -> Any:
    for i in range(len(whole)):
        whole[i, :] = np.cumsum(whole[i, :] * 0.7)
        truths[i, :] = np.logical_and.accumulate(whole[i, :] > 2)
        whole[i, 1:] += np.diff(whole[i, :])
    return whole, truths


def whole(x: Any, a: Any) -> Any:
    """A recurrence of vectors with a row of a matrix each, and one array altogether."""
    for t in range(len(a)):
        x[:] = np.tanh(np.cumsum(x[:]) + a[t, :])
    x[::2] = np.sort(x[::2])
    return x


PROGRAMS: dict[str, tuple[Any, list[Any], list[tuple[int, ...] | None]]] = {
    "alternating": (alternating, [random_values(9, 7), 0.3, 2], [(4, 3), None, None]),
    "spectral": (spectral, [random_values(4, 5, 8) + 0j, 4], [(2, 2, 3), None]),
    "normalized": (normalized, [random_values(8, 6), np.zeros(8), np.zeros(8, "i4")], [(3, 2), (3,), (5,)]),
    "orthogonal": (orthogonal, [random_values(7, 5)], [(3, 2)]),
    "triangles": (triangles, [random_values(9, 9).astype("f4"), np.ones((9, 9), "f4")], [(4, 4), (2, 9)]),
    "stacked": (
        stacked,
        [random_values(3, 4, 5), random_values(3, 4, 5), random_values(4, 4)],
        [(1, 3, 2), (2, 2, 2), (3, 3)],
    ),
    "carried": (carried, [random_values(6, 5), np.zeros((6, 5))], [(2, 3), (4, 2)]),
    "exchanged": (exchanged, [random_values(6, 5), np.zeros((6, 5)), 3], [(2, 3), (3, 2), None]),
    "named": (named, [random_values(5, 2), random_values(5, 4), np.zeros(5)], [(2, 1), (3, 3), (2,)]),
    "typed": (typed, [np.arange(20, dtype="i2").reshape(4, 5), np.zeros((4, 5), bool)], [(3, 2), (2, 2)]),
    "whole": (whole, [random_values(7), random_values(5, 7)], [(3,), (2, 4)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_slices_are_what_numpy_has(name: str, tmp_path: Path) -> None:
    function, values, tiles = PROGRAMS[name]
    expected, arguments = plain(function, values), stored(tmp_path, values, tiles)
    for limit, threads in ((1, 1), (1 << 20, 2)):
        found = run_within(tmp_path, oc.loops(function), arguments, pool_limit=limit, threads=threads)
        assert_same(found.results, expected)
    for argument, value in zip(arguments, values, strict=True):
        if isinstance(argument, Tiled):
            assert_same([np.load(argument.path)], [value])


FUNCTIONS = ("np.sort", "np.cumsum", "np.flip", "np.max", "1 + np.sum", "KERNEL[1] * np.diff", "np.asarray")


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_drawn_calls_are_numpys_or_refused(data: st.DataObject) -> None:
    def part(subscript: str) -> str:
        cut = data.draw(st.sampled_from([":", "1:", ":-1", "::2", ":3", "i:", ":i + 1", "2:3"]))
        return data.draw(st.sampled_from([f"{subscript}, {cut}", f"{cut}, {subscript}"]))

    def read() -> str:
        called = data.draw(st.sampled_from(FUNCTIONS))
        array = data.draw(st.sampled_from("uvs"))
        at = data.draw(st.sampled_from(["i", "0", "n - 1 - i", "3"]))
        taken = "s[:]" if array == "s" else f"{array}[{part(at)}]"
        return f"{called}({taken})"

    lines = []
    for _ in range(data.draw(st.integers(1, 3))):
        target = data.draw(st.sampled_from(["s[i]", f"u[{part('i')}]", f"v[{part('i')}]", "u[i, 1]"]))
        operator = data.draw(st.sampled_from(["=", "+=", "*="]))
        lines.append(f"{target} {operator} {read()}" + (f" + {read()}" if data.draw(st.booleans()) else ""))
    body = "\n        ".join(lines)
    source = f"def drawn(u, v, s):\n    n = len(s)\n    for i in range(n):\n        {body}\n    return u, v, s\n"
    function = function_of(source)
    function.__globals__["KERNEL"] = KERNEL
    values = [random_values(5, 5), random_values(5, 5) + 1, random_values(5)]
    lazy = [oc.rechunk(oc.asarray(value), tile) for value, tile in zip(values, ((2, 3), (3, 2), 2), strict=True)]
    try:
        expected = plain(function, values)
    except (ValueError, TypeError):
        expected = ()  # shapes that do not go together, or an array where a number stands
    with session():
        try:
            found = oc.compute(*oc.loops(function)(*lazy))
        except (ArgumentError, FunctionError):
            assert not expected
            return
    assert expected
    assert_same(found, expected)


MANY = "q[i, :] = np.sum([q[:1, :2].sum(), q[:3, :4].sum(), {}.sum(), q[0].sum()])"
REFUSED = {
    "of elements": ("s[i] = np.linalg.norm(u[i, 0])", "`np.linalg.norm` is not taken"),
    "of a local name": ("t = np.sum(u[i, :])", "`np.sum` is not taken"),
    "of a carried name": ("t = 0.0\n        t += u[i, :].sum()", r"`u\[i, :\].sum` is not taken here: a function of"),
    "of a row without a colon": ("u[i, :] = u[i, :] + np.sort(u[i])[0]", None),
    "of rows without a colon": ("u[i] = np.sort(u[i])", r"where `u\[i\]` is a slice, it is written with a colon"),
    "own creation": ("u[i, :] = oc.zeros(5)", "`oc.zeros` is a function of lazy arrays"),
    "of a parameter": ("u[i, :] = n(u[i, :])", "`n` is not taken, since `n` is a name of the program itself"),
    "method of a parameter": ("u[i, :] = n.smoothed(u[i, :])", r"`n\.smoothed` is not taken, since `n` is a name of"),
    "lazy function": ("u[i, :] = oc.sort(u[i, :])", "`oc.sort` is a function of lazy arrays"),
    "lazy array": ("u[i, :] = np.sort(u[i, :] + OUTSIDE)", "`OUTSIDE` is an array from outside"),
    "lambda": ("u[i, :] = np.sort((lambda x: x)(u[i, :]))", "lambdas are not taken"),
    "comprehension": ("u[i, :] = np.array([x for x in u[i, :]])", "comprehensions are not taken"),
    "backwards": ("u[i, :] = np.sort(u[i, ::-1])", r"`u\[i, ::-1\]` is no slice of `u`, which has 2 axes"),
    "data in a slice": ("u[i, :] = np.sort(u[i, : s[0]])", "depends on data, and a subscript must follow"),
    "data in a subscript": ("u[i, :] = np.sort(u[s[0], :])", "depends on data, and a subscript must follow"),
    "beyond": ("u[i, :] = np.sort(u[i + 1, :])", "goes from 1 to 5, and axis 0 has length 5"),
    "below": ("u[i, :] = np.sum(u[i, : i - 2])", "`i - 2` ends a slice and may be below 0"),
    "empty": ("u[i, :] = np.sum(u[i, :i])", r"`u\[i, :i\]` may have no elements"),
    "least end": ("u[i, :] = np.sum(u[i, : min(i + 1, 3)])", "not affine|one end"),
    "more axes": ("u[i, :] = np.sort(u[i, :, 0])", "which has 2 axes"),
    "ellipsis": ("u[i, :] = np.sort(u[i, ...])", "which has 2 axes"),
    "no array": ("n[i] = np.sum(u[i, :])", "`n` is a number, and the program takes an array there"),
    "unknown": ("u[i, :] = unknown(u[i, :])", "the name `unknown` is not known: define it above"),
    "as many lengths": (MANY.format("q[0, :5]"), None),
    "too many lengths": (MANY.format("q[0, :5].sum() + q[0, :6]"), "have 8 lengths at most"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_calls_are_refused(name: str) -> None:
    body, said = REFUSED[name]
    source = "def drawn(u, s, n, q):\n    for i in range(5):\n        {}\n    return u, s, q\n"
    function = function_of(source.format(body))
    function.__globals__.update(oc=oc, OUTSIDE=oc.asarray([1.0]))

    def call() -> Any:
        return oc.loops(function)(np.ones((5, 5)), np.ones(5), 1, np.ones((7, 7)))

    if said is None:
        call()
        return
    with pytest.raises(ArgumentError, match=said):
        call()


def failing(a: Any) -> Any:
    for i in range(len(a)):
        a[i, :] = _checked(a[i, :], i)
    return a


def changing(a: Any) -> Any:
    for i in range(len(a)):
        a[i, :] = _sorted_in_place(a[i, :])
    return a


def changing_rows(a: Any) -> Any:
    for i in range(len(a)):
        a[i, :] = _sorted_in_place(a[i]) + 0 * a[i, :]
    return a


def too_long(a: Any) -> Any:
    for i in range(len(a)):
        a[i, 1:] = np.cumsum(a[i, :])
    return a


def _checked(line: Any, i: int) -> Any:
    assert type(i) is int
    if i == 3:
        raise LookupError("no line 3")
    return line


def _sorted_in_place(line: Any) -> Any:
    line.sort()
    return line


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (failing, "no line 3"),
        (changing, "read-only"),
        (changing_rows, "read-only"),
        (too_long, "could not broadcast input array"),
    ],
)
def test_what_a_function_raises_ends_the_run(function: Any, said: str, tmp_path: Path) -> None:
    target = tmp_path / "out.npy"
    with session(), pytest.raises(FunctionError, match=said) as raised:
        oc.store({str(target): oc.loops(function)(random_values(5, 4))})
    assert f"a[i, {'1' if function is too_long else ''}:] = " in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_slices_count_among_memory(tmp_path: Path) -> None:
    """A slice of 1 MiB is in memory beside its tiles, and so is what the function makes of it."""

    def doubled(a: Any) -> Any:
        for i in range(len(a)):
            a[i, :] = np.multiply.accumulate(a[i, :])
        return a

    lines = np.ones((4, 1 << 17))
    with session():
        peak = oc.explain({str(tmp_path / "out.npy"): oc.loops(doubled)(lines)}).peak_bytes
    assert peak >= 3 * 2 * lines[0].nbytes


RESUMED = """
import sys
import numpy as np
import outcore as oc

function = {"sort": np.sort, "cumsum": np.cumsum}[sys.argv[1]]

@oc.loops
def each_row(a, b):
    for i in range(len(a)):
        b[i, :] = function(a[i, :])
    return b

with oc.Session(memory_limit="1GiB", threads=1, progress=False):
    oc.store({"out.zarr": each_row(oc.open("in.npy"), oc.zeros((40, 6)))}, resume=True, overwrite=True)
"""


def test_a_run_goes_on_from_no_other_function(tmp_path: Path) -> None:
    """Functions of two processes may have equal places in them, and are not known to be equal."""
    values = random_values(40, 6)
    np.save(tmp_path / "in.npy", values)
    (tmp_path / "program.py").write_text(RESUMED)
    for name in ("sort", "cumsum"):
        subprocess.run([sys.executable, "program.py", name], cwd=tmp_path, check=True, timeout=60)
        assert_same([load(tmp_path / "out.zarr")], [getattr(np, name)(values, axis=1)])


def test_rows_of_a_file_are_tiles_of_their_own(tmp_path: Path) -> None:
    """A program of rows needs memory for some of them, though tiles of such a file reach over all rows else."""

    def each_row(a: Any, least: Any) -> Any:
        for i in range(len(a)):
            a[i, :] = np.cumsum(a[i, :])
            least[i] = np.min(a[i, 1:])
        return a, least

    values = random_values(96, 1 << 16)
    np.save(tmp_path / "a.npy", values)
    with session(pool_limit=20 << 20):
        found = oc.loops(each_row)(oc.open(tmp_path / "a.npy"), oc.zeros(96))
        targets = {str(tmp_path / f"out{number}.npy"): part for number, part in enumerate(found)}
        assert forecast(targets)["bytes_read"] <= values.nbytes + (1 << 16)
        oc.store(targets)
    assert_same([load(Path(name)) for name in targets], plain(each_row, [values, np.zeros(96)]))
