"""The names, signatures and rules of the array API standard, held against array_api_strict, which has no others."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, IndexingError

VERSION = "2025.12"
strict.set_array_api_strict_flags(api_version=VERSION)

# What the oracle has and the standard has not.
ORACLES_OWN = {
    *("ArrayAPIStrictFlags", "Device", "get_array_api_strict_flags", "reset_array_api_strict_flags"),
    "set_array_api_strict_flags",
}
ABSENT_METHODS = {
    **{
        f"__i{name}__": "arrays are immutable: Python makes `x += y` a new value behind the name, as the standard says"
        for name in (
            *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"),
            *("lshift", "rshift"),
        )
    },
    "__buffer__": "the oracle's way to NumPy, not the standard's; `__array__` is ours",
}
# Where the oracle's signature is not the standard's.
ORACLE_ERRS = {"to_device": "the standard has stream by name, the oracle by place"}


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return {name: part for name, part in inspect.signature(function).parameters.items() if name != "self"}


def assert_takes_what_the_standard_says(ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    by_place = [part for part in parameters(ours).values() if part.kind is not inspect.Parameter.KEYWORD_ONLY]
    for place, (name, part) in enumerate(parameters(theirs).items()):
        if part.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            assert any(own.kind is part.kind for own in parameters(ours).values()), name
            continue
        if part.kind is not inspect.Parameter.KEYWORD_ONLY:
            assert place < len(by_place), f"{name} is passed by place"
            if by_place[place].kind is inspect.Parameter.VAR_POSITIONAL:
                return
            assert part.default is inspect.Parameter.empty or by_place[place].default == part.default, name
        if part.kind is not inspect.Parameter.POSITIONAL_ONLY:
            own = parameters(ours)[name]
            assert own.kind is not inspect.Parameter.POSITIONAL_ONLY, f"{name} is passed by name"
            unset = type(part.default).__name__ == "Undef"  # the oracle's word for None that was not passed
            assert part.default is inspect.Parameter.empty or unset or own.default == part.default, name
    required = [part for part in parameters(ours).values() if part.default is inspect.Parameter.empty]
    assert len([part for part in required if part.kind is not inspect.Parameter.VAR_POSITIONAL]) <= len(
        parameters(theirs)
    )


NAMES = sorted(set(strict.__all__) - ORACLES_OWN)
EXTENSIONS = [f"{space}.{name}" for space in ("linalg", "fft") for name in getattr(strict, space).__all__]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(strict, name))]
METHODS = sorted(
    name
    for name, method in inspect.getmembers(strict.asarray(1).__class__, inspect.isfunction)
    if not name.startswith("_") or (name.startswith("__") and name not in dir(object))
)


def test_every_name_of_the_standard_is_there() -> None:
    assert [name for name in NAMES if not hasattr(oc, name)] == []
    assert [name for name in NAMES if name not in oc.__all__ and name not in ("inf", "e")] == []
    assert oc.__array_api_version__ == VERSION
    assert (oc.e, oc.pi, oc.inf, oc.newaxis) == (strict.e, strict.pi, strict.inf, None)
    assert np.isnan(oc.nan)


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extensions_take_what_the_standard_says(name: str) -> None:
    space, function = name.split(".")
    ours, theirs = getattr(getattr(oc, space), function), getattr(getattr(strict, space), function)
    if inspect.isfunction(theirs):
        assert_takes_what_the_standard_says(ours, theirs)
    assert function in getattr(oc, space).__all__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_what_the_standard_says(name: str) -> None:
    assert_takes_what_the_standard_says(getattr(oc, name), getattr(strict, name))


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ABSENT_METHODS])
def test_methods_take_what_the_standard_says(name: str) -> None:
    if name not in ORACLE_ERRS:
        assert_takes_what_the_standard_says(getattr(oc.Array, name), getattr(type(strict.asarray(1)), name))


def test_attributes_and_absent_methods() -> None:
    assert [
        name for name in ("T", "device", "dtype", "mT", "ndim", "shape", "size") if not hasattr(oc.Array, name)
    ] == []
    assert [name for name in ABSENT_METHODS if hasattr(oc.Array, name)] == []
    assert inspect.signature(oc.Array.to_device).parameters["stream"].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_namespace_is_found_by_version() -> None:
    x = oc.zeros(3)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12", VERSION):
        assert x.__array_namespace__(api_version=version) is oc
    with pytest.raises(ValueError, match=r"'2031\.12' is not known; outcore follows .*2025\.12"):
        x.__array_namespace__(api_version="2031.12")


def test_the_namespace_tells_what_it_can() -> None:
    info, theirs = oc.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities() == theirs.capabilities()
    assert (info.default_device(), info.devices()) == ("cpu", ("cpu",))
    for names in (info.default_dtypes(device="cpu"), info.default_dtypes()):
        assert {name: str(kind) for name, kind in names.items()} == {
            name: kind._np_dtype.name for name, kind in theirs.default_dtypes().items()
        }
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for kind in (None, *kinds, ("bool", "integral"), ()):
        assert set(info.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind))
        assert all(getattr(oc, name) == dtype for name, dtype in info.dtypes(device="cpu", kind=kind).items())
    with pytest.raises(ArgumentError, match=r"kind 'text' is none of 'bool'"):
        info.dtypes(kind="text")
    with pytest.raises(ArgumentError, match="'gpu' is not known"):
        info.dtypes(device="gpu")
    assert oc.zeros((1,) * 64).sum().item() == 0


CREATION: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda device: oc.zeros(2, device=device),
    "ones": lambda device: oc.ones(2, device=device),
    "empty": lambda device: oc.empty(2, device=device),
    "full": lambda device: oc.full(2, 3, device=device),
    "arange": lambda device: oc.arange(2, device=device),
    "linspace": lambda device: oc.linspace(0, 1, 2, device=device),
    "eye": lambda device: oc.eye(2, device=device),
    "asarray": lambda device: oc.asarray([1, 2], device=device),
    "from_dlpack": lambda device: oc.from_dlpack(strict.asarray([1, 2]), device=device),
    "zeros_like": lambda device: oc.zeros_like(oc.ones(2), device=device),
    "ones_like": lambda device: oc.ones_like(oc.ones(2), device=device),
    "empty_like": lambda device: oc.empty_like(oc.ones(2), device=device),
    "full_like": lambda device: oc.full_like(oc.ones(2), 7, device=device),
    "astype": lambda device: oc.astype(oc.ones(2), "int8", device=device),
    "to_device": lambda device: oc.ones(2).to_device(device),
}


@pytest.mark.parametrize("name", CREATION)
def test_the_only_device_is_the_cpu(name: str) -> None:
    assert CREATION[name]("cpu").device == "cpu"
    with pytest.raises(ArgumentError, match="device 'gpu' is not known"):
        CREATION[name]("gpu")


@pytest.mark.parametrize("producer", [np.asarray, strict.asarray, oc.asarray])
@pytest.mark.parametrize("copy", [None, True, False])
def test_dlpack_in(producer: Callable[..., Any], copy: bool | None) -> None:
    for dtype in ("int8", "uint64", "float32", "complex128", "bool"):
        values = np.arange(6).reshape(2, 3).T.astype(dtype)
        found = oc.from_dlpack(producer(values), device="cpu", copy=copy)
        with session():
            np.testing.assert_array_equal(found.compute(), values)
            assert found.dtype == dtype


def test_dlpack_in_borrows_unless_a_copy_is_asked_for() -> None:
    values = strict.asarray([1.0, 2.0])
    borrowed, copied = oc.from_dlpack(values), oc.from_dlpack(values, copy=True)
    values[0] = 9.0
    with session():
        assert borrowed.compute().tolist() == [9.0, 2.0]
        assert copied.compute().tolist() == [1.0, 2.0]


def test_dlpack_out() -> None:
    with session():
        lazy = oc.arange(3) * 2
        assert lazy.__dlpack_device__() == (1, 0)
        for made in (np.from_dlpack(lazy), strict.from_dlpack(lazy), np.from_dlpack(lazy, copy=True, device="cpu")):
            assert np.asarray(made).tolist() == [0, 2, 4]
        for version in (None, (0, 8), (1, 0), (2, 5)):
            name = repr(lazy.__dlpack__(max_version=version, dl_device=(1, 0)))
            assert ("versioned" in name) == (version is not None and version >= (1, 0))
        with pytest.raises(BufferError, match=r"not to \(2, 0\)"):
            lazy.__dlpack__(dl_device=(2, 0))
        with pytest.raises(BufferError, match=r"no memory to share"):
            np.from_dlpack(lazy, copy=False)
        with pytest.raises(ArgumentError, match=r"stream 3 is not known"):
            lazy.__dlpack__(stream=3)


DTYPES = tuple(strict.__array_namespace_info__().dtypes())


def pairs() -> Iterator[tuple[str, str]]:
    """All pairs of types that the standard has a common type for."""
    for left, right in itertools.product(DTYPES, DTYPES):
        try:
            strict.result_type(getattr(strict, left), getattr(strict, right))
        except TypeError:
            continue
        yield left, right


@pytest.mark.parametrize(("left", "right"), list(pairs()))
def test_types_promote_by_the_standards_tables(left: str, right: str) -> None:
    expected = strict.result_type(getattr(strict, left), getattr(strict, right))._np_dtype
    x, y = oc.ones(2, dtype=left), oc.ones(2, dtype=right)
    assert oc.result_type(x, y) == oc.result_type(getattr(oc, left), getattr(oc, right)) == expected
    assert oc.where(oc.ones(2, dtype=oc.bool), x, y).dtype == oc.concat([x, y]).dtype == expected
    assert oc.can_cast(x, expected)
    if expected.kind == "b":
        assert (x & y).dtype == oc.logical_xor(x, y).dtype == expected
        return
    assert (x + y).dtype == oc.multiply(x, y).dtype == oc.pow(x, y).dtype == expected
    assert oc.matmul(x, y).dtype == oc.vecdot(x, y).dtype == oc.tensordot(x, y, axes=1).dtype == expected
    if expected.kind != "c":
        assert oc.maximum(x, y).dtype == oc.clip(x, y, y).dtype == expected
    assert (x == y).dtype == oc.bool


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_scalars_promote_by_the_standards_rules(dtype: str) -> None:
    x, theirs = oc.ones(2, dtype=dtype), strict.ones(2, dtype=getattr(strict, dtype))
    for scalar in (True, 2, 2.5, 2j):
        try:
            expected = (theirs * scalar).dtype._np_dtype
        except TypeError:
            continue  # left open by the standard
        assert (x * scalar).dtype == (scalar * x).dtype == oc.result_type(x, scalar) == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_sums_have_the_standards_types(dtype: str, name: str) -> None:
    if dtype == "bool":
        with pytest.raises(TypeError):
            getattr(strict, name)(strict.ones(2, dtype=strict.bool))
    else:
        expected = getattr(strict, name)(strict.ones(2, dtype=getattr(strict, dtype))).dtype._np_dtype
        assert getattr(oc, name)(oc.ones(2, dtype=dtype)).dtype == expected


def test_what_the_last_revision_added() -> None:
    with session():
        x = oc.asarray(np.arange(6.0).reshape(2, 3))
        assert oc.expand_dims(x, (0, -1)).shape == oc.expand_dims(x, axis=(0, -1)).shape == (1, 2, 3, 1)
        assert oc.permute_dims(x, (-1, -2)).shape == (3, 2)
        assert oc.searchsorted(oc.asarray([1, 3]), 2).item() == 1
        assert oc.isin(x, 3).compute().tolist() == oc.isin(x, x[1:, :1]).compute().tolist() == (x == 3).tolist()
        assert oc.isin(3.0, x, invert=True).item() is False
        assert oc.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
        assert isinstance(oc.broadcast_arrays(x, 1), tuple)
        assert isinstance(oc.meshgrid(oc.arange(2), oc.arange(3)), tuple)
        with pytest.raises(IndexError):
            oc.expand_dims(x, 4)
        assert oc.isin(x * 1j, 3j).compute().tolist() == (x == 3).tolist()


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), lazy=st.booleans())
def test_arrays_of_integers_index_together(data: st.DataObject, seed: int, lazy: bool) -> None:
    """Several arrays broadcast together, beside integers and slices, as in NumPy."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(3, 4, 5))
    shapes = data.draw(
        st.sampled_from([((2,), (2,), (2,)), ((2, 1), (3,), (1, 3)), ((1,), (4,), ()), ((0,), (1,), ())])
    )
    key: list[Any] = [random.integers(-length, length, shape) for length, shape in zip(x.shape, shapes, strict=True)]
    for place in range(3):
        other = data.draw(st.sampled_from(["array", "array", "integer", "slice"]))
        key[place] = {"array": key[place], "integer": -1, "slice": slice(None, None, -1)}[other]
    if not any(isinstance(part, np.ndarray) and part.ndim for part in key):
        key[0] = np.asarray([0, 1])
    key = [part if getattr(part, "ndim", 1) else int(part) for part in key]
    with session():
        cut = oc.rechunk(oc.asarray(x), (2, 3, 2))
        ours = tuple(oc.asarray(part) if lazy and isinstance(part, np.ndarray) else part for part in key)
        np.testing.assert_array_equal(cut[ours].compute(), x[tuple(key)])


def test_positions_outside_are_refused_and_found_nowhere_else() -> None:
    with session():
        x = oc.asarray(np.arange(6.0).reshape(2, 3))
        with pytest.raises(IndexingError, match=r"3 is out of bounds for a length of 3"):
            x[[0, 1], [0, 3]]
        with pytest.raises(IndexError):
            x[oc.asarray([0, 1]), oc.asarray([3, 0])].compute()
        with pytest.raises(IndexingError, match=r"None"):
            x[[0], None]
