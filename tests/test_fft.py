"""Fourier transforms against NumPy: all lengths, axes and norms, and lanes that go by four steps or by convolution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore import fft as chapter
from outcore.errors import ArgumentError, DTypeError, ShapeError

DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "float16")
NORMS = (None, "backward", "ortho", "forward")


@st.composite
def signals(draw: st.DrawFn, ndim: int) -> Any:
    shape = tuple(draw(st.integers(1, 12)) for _ in range(ndim))
    dtype = draw(st.sampled_from(DTYPES))
    random = np.random.default_rng(draw(st.integers(0, 999)))
    values = random.normal(size=shape) * 9
    x = (values + 1j * random.normal(size=shape)).astype(dtype) if dtype[0] == "c" else values.astype(dtype)
    return x, tuple(draw(st.integers(1, length)) for length in shape)


def check(found: oc.Array, expected: Any) -> None:
    value = found.compute()
    assert value.shape == expected.shape
    is_single = value.dtype.itemsize * (1 if value.dtype.kind == "f" else 0.5) == 4
    np.testing.assert_allclose(value, expected, rtol=1e-3 if is_single else 1e-9, atol=2e-3 if is_single else 1e-9)


@settings(max_examples=examples(120), deadline=None)
@given(
    signal=signals(2),
    name=st.sampled_from(["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]),
    axis=st.integers(-2, 1),
    n=st.one_of(st.none(), st.integers(1, 15)),
    norm=st.sampled_from(NORMS),
)
def test_transforms_along_an_axis(signal: Any, name: str, axis: int, n: int | None, norm: Any) -> None:
    x, tile = signal
    if name in ("rfft", "ihfft"):
        x = x.real
    if name in ("irfft", "hfft") and x.shape[axis] == 1 and n is None:
        return
    with session():
        found = getattr(np.fft, name)(oc.rechunk(oc.asarray(x), tile), n=n, axis=axis, norm=norm)
        expected = getattr(np.fft, name)(x, n=n, axis=axis, norm=norm)
        if x.dtype.name in ("float64", "complex128", "int32", "float32", "complex64"):
            assert found.dtype == expected.dtype
        check(found, expected)


@settings(max_examples=examples(60), deadline=None)
@given(
    signal=signals(3),
    name=st.sampled_from(["fftn", "ifftn", "rfftn", "irfftn", "fft2", "rfft2"]),
    axes=st.sampled_from([None, (0, 2), (2, 1), (1,), (-1, 0)]),
    lengths=st.booleans(),
)
def test_transforms_along_several_axes(signal: Any, name: str, axes: Any, lengths: bool) -> None:
    x, tile = signal
    x = x.real if name.startswith("r") else x
    given_axes = {} if axes is None else {"axes": axes}
    count = 2 if name.endswith("2") and axes is None else 3 if axes is None else len(axes)
    s = (5, 4, 6)[:count] if lengths or name == "irfftn" else None
    if s is not None and not given_axes:
        given_axes = {"axes": tuple(range(3 - count, 3))}
    with session():
        found = getattr(np.fft, name)(oc.rechunk(oc.asarray(x), tile), s=s, **given_axes)
        check(found, getattr(np.fft, name)(x, s=s, **given_axes))


@pytest.mark.parametrize("length", [64, 81, 60, 97, 101, 128, 6 * 7 * 11])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_long_lanes_by_four_steps_and_by_convolution(length: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With lanes of a few elements called long, every way is gone; primes have none but the convolution."""
    monkeypatch.setattr(chapter, "_LANE_BYTES", 16 * 16)
    random = np.random.default_rng(2)
    x = (random.normal(size=(3, length)) + 1j * random.normal(size=(3, length))).astype(dtype)
    with session():
        for norm in NORMS:
            check(oc.fft.fft(oc.asarray(x), norm=norm), np.fft.fft(x, norm=norm))
            check(oc.fft.ifft(oc.asarray(x.T), norm=norm, axis=0), np.fft.ifft(x.T, norm=norm, axis=0))
        check(oc.fft.rfft(oc.asarray(x.real)), np.fft.rfft(x.real))
        for n in (length, length + 1):
            check(oc.fft.irfft(oc.asarray(x), n=n), np.fft.irfft(x, n=n))


def test_a_signal_larger_than_memory(tmp_path: Path, out: Path) -> None:
    """6 Mi samples, 96 MiB as complex numbers, in 48 MiB."""
    count = 3 << 21
    x = np.random.default_rng(4).normal(size=count)
    np.save(tmp_path / "x.npy", x)
    with session(pool_limit="48MiB", threads=2):
        spectrum = oc.fft.fft(oc.open(tmp_path / "x.npy"))
        plan = oc.explain({out / "f.npy": spectrum})
        outcome = oc.store({out / "f.npy": spectrum})
        assert (plan.bytes_read, plan.bytes_written) == (outcome.bytes_read, outcome.bytes_written)
        assert outcome.peak_bytes <= 48 << 20
        found = np.load(out / "f.npy")
    expected = np.fft.fft(x)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max() * np.log2(count)


def test_frequencies_and_shifts() -> None:
    with session():
        for n in (1, 2, 5, 8):
            np.testing.assert_array_equal(oc.fft.fftfreq(n, d=0.5).compute(), np.fft.fftfreq(n, d=0.5))
            np.testing.assert_array_equal(oc.fft.rfftfreq(n).compute(), np.fft.rfftfreq(n))
        x = np.arange(15).reshape(3, 5)
        for axes in (None, 0, (1,), (0, 1)):
            np.testing.assert_array_equal(
                np.fft.fftshift(oc.asarray(x), axes=axes).compute(), np.fft.fftshift(x, axes=axes)
            )
            shifted = np.fft.ifftshift(oc.asarray(x), axes=axes)
            np.testing.assert_array_equal(shifted.compute(), np.fft.ifftshift(x, axes=axes))


def test_transforms_that_cannot_be_are_refused() -> None:
    with session():
        with pytest.raises(ShapeError, match="a transform of length 0"):
            oc.fft.fft(oc.ones(4), n=0)
        with pytest.raises(DTypeError, match="integer"):
            oc.fft.fft(oc.ones(4), n=2.5)  # type: ignore[arg-type]
        with pytest.raises(DTypeError, match="rfft: takes real numbers, not complex128"):
            oc.fft.rfft(oc.ones(4, dtype=oc.complex128))
        with pytest.raises(ArgumentError, match="norm 'unitary'"):
            oc.fft.fft(oc.ones(4), norm="unitary")  # type: ignore[arg-type]
        with pytest.raises(ShapeError, match=r"lengths \(4, 4\) for axes \(0,\)"):
            oc.fft.fftn(oc.ones(4), s=(4, 4), axes=(0,))
        with pytest.raises(DTypeError, match="frequencies are floating-point"):
            oc.fft.fftfreq(4, dtype=np.int64)
