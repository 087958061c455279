"""TIFF, BigTIFF and OME-TIFF: as tifffile reads them, with exact forecasts, and refusals by name."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import forecast, run, session

import outcore as oc
from outcore.errors import FormatError, OutcoreError, SourceChangedError, UnsupportedFormatError

RNG = np.random.default_rng(4)
QUIET = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
DTYPES = ("u1", "i1", "u2", "i2", "u4", "i8", "f2", "f4", "f8")
NS = "http://www.openmicroscopy.org/Schemas/OME/2016-06"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Without tifffile's log of what is wrong with damaged files."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return (RNG.random(shape) * 100).astype(dtype)


def same(path: Path | str, expected: np.ndarray | None = None) -> None:
    image = tifffile.imread(path) if expected is None else expected
    array = oc.open(path)
    values = array.compute()
    assert values.dtype == image.dtype.newbyteorder("=")
    np.testing.assert_array_equal(values, image)


def lzw(data: bytes) -> bytes:
    """LZW as in section 13 of TIFF 6.0."""
    bits, width, table, string = [f"{256:09b}"], 9, {bytes([one]): one for one in range(256)}, b""
    count = 258
    for at in range(len(data)):
        longer = string + data[at : at + 1]
        if longer in table:
            string = longer
            continue
        bits.append(f"{table[string]:0{width}b}")
        table[longer] = count
        count += 1
        if count == 4094:
            bits.append(f"{256:0{width}b}")
            count, width, table = 258, 9, {bytes([one]): one for one in range(256)}
        elif count == 1 << width:
            width += 1
        string = data[at : at + 1]
    if string:
        bits.append(f"{table[string]:0{width}b}")
        width += count > 258 and count + 1 == 1 << width
    bits.append(f"{257:0{width}b}")
    text = "".join(bits)
    return int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")


def set_tag(path: Path | str, tag: int, value: int) -> None:
    """Writes another value into each page: tifffile alone lacks the encoders of most compressions."""
    with tifffile.TiffFile(path, mode="r+") as file:
        for page in file.pages:
            page.aspage().tags[tag].overwrite(value)


CODES = {"zlib": 8, "lzw": 5, "zstd": 50000}
ENCODERS = {"zlib": zlib.compress, "lzw": lzw, "zstd": lambda data: bytes(numcodecs.Zstd(1).encode(data))}


def strips(image: np.ndarray, rows: int, compression: str, predictor: int) -> Iterator[bytes]:
    """Pages of an image as strips: rows, columns and samples."""
    for page in image:
        for first in range(0, len(page), rows):
            strip = page[first : first + rows].copy()
            if predictor == 2:
                strip[:, 1:] = strip[:, 1:] - strip[:, :-1]
            yield ENCODERS[compression](strip.tobytes())


@st.composite
def images(draw: Any) -> tuple[np.ndarray, dict[str, Any]]:
    dtype = draw(st.sampled_from(DTYPES))
    stack = draw(st.lists(st.integers(1, 4), max_size=2))
    page = draw(st.lists(st.integers(1, 70), min_size=2, max_size=2))
    shape, options = (*stack, *page), {}
    colours = draw(st.sampled_from((None, "contig", "separate")))
    if colours is not None and dtype in ("u1", "u2"):
        shape = (*stack, *page, 3) if colours == "contig" else (*stack, 3, *page)
        options = {"planarconfig": colours, "photometric": "rgb"}
    else:
        options = {"photometric": "minisblack"}
    cut = draw(st.sampled_from(("image", "strips", "tiles")))
    if cut == "strips":
        options["rowsperstrip"] = draw(st.integers(1, 40))
    elif cut == "tiles":
        options["tile"] = draw(st.sampled_from(((16, 16), (32, 16), (16, 64))))
    options["compression"] = draw(st.sampled_from((None, "zlib")))
    if options["compression"] and dtype in ("u1", "i1", "u2", "i2", "u4"):
        options["predictor"] = draw(st.booleans())
    options |= {"bigtiff": draw(st.booleans()), "byteorder": draw(st.sampled_from("<>"))}
    return numbers(shape, dtype), options


@given(images())
@QUIET
def test_images_are_read_as_tifffile_reads_them(image: tuple[np.ndarray, dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.tif"
        values, options = image
        tifffile.imwrite(path, values, **options)
        same(path)
        with tifffile.TiffFile(path) as file:
            assert oc.open(path).ndim == len(file.series[0].axes)


@given(st.sampled_from(sorted(ENCODERS)), st.sampled_from(("u1", "i2", "u4", "i8")), st.integers(1, 30), st.booleans())
@QUIET
def test_codecs_and_predictors_are_undone(compression: str, dtype: str, rows: int, predicted: bool) -> None:
    image = numbers((2, 29, 17, 3), dtype) if rows % 2 else (np.arange(2 * 29 * 51) // 3).reshape(2, 29, 17, 3)
    image = image.astype(dtype)
    predictor = 2 if predicted else 1
    with tempfile.TemporaryDirectory() as folder:
        tifffile.imwrite(
            f"{folder}/x.tif",
            strips(image, rows, compression, predictor),
            shape=image.shape,
            dtype=dtype,
            rowsperstrip=rows,
            compression="zlib",
            predictor=predictor,
            photometric="rgb" if dtype in ("u1", "u2") else "minisblack",
            planarconfig="contig",
        )
        set_tag(f"{folder}/x.tif", 259, CODES[compression])
        same(f"{folder}/x.tif", image)


def test_parts_cost_what_is_forecast(tmp_path: Path) -> None:
    image = numbers((6, 200, 150), "u2")
    tifffile.imwrite(tmp_path / "x.tif", image, compression="zlib", tile=(64, 64))
    with session():
        x = oc.open(tmp_path / "x.tif")
        assert x.dims == (None, "Y", "X") or x.dims == ("Q", "Y", "X")
        part = {tmp_path / "part.npy": x[2:4, 60:190, 10:] + 1, tmp_path / "mean.npy": x.mean(axis="Y")}
        assert forecast(part) == run(part)
    np.testing.assert_array_equal(np.load(tmp_path / "part.npy"), image[2:4, 60:190, 10:] + 1)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_stack_eight_times_the_pool_is_read_within_it(compression: str | None, tmp_path: Path) -> None:
    page = np.tile(np.arange(512, dtype="u2"), (512, 1))
    stack = np.broadcast_to(page, (384, 512, 512))
    tifffile.imwrite(tmp_path / "x.tif", stack, compression=compression, compressionargs={"level": 1}, rowsperstrip=100)
    with session(pool_limit=24 << 20):
        x = oc.open(tmp_path / "x.tif")
        assert x.nbytes == 8 * (24 << 20)
        targets = {tmp_path / "most.npy": x.max(axis=2)}
        assert forecast(targets) == run(targets)
    assert (np.load(tmp_path / "most.npy") == 511).all()


def test_axes_of_ome_are_names(tmp_path: Path) -> None:
    image = numbers((2, 3, 4, 20, 30), "u2")
    tifffile.imwrite(tmp_path / "x.ome.tif", image, metadata={"axes": "TCZYX"}, compression="zlib")
    x = oc.open(tmp_path / "x.ome.tif")
    assert x.dims == ("T", "C", "Z", "Y", "X")
    np.testing.assert_array_equal(x.max(axis="Z").compute(), image.max(axis=2))
    np.testing.assert_array_equal(x[1, :, 2].compute(), image[1, :, 2])


def write_pair(folder: Path, image: np.ndarray) -> None:
    """An OME image of two planes, each in a file of its own, which both describe all of it."""
    names = {f"{at}.ome.tif": uuid.uuid4() for at in range(len(image))}
    planes = "".join(
        f'<TiffData FirstZ="{at}" PlaneCount="1"><UUID FileName="{name}">urn:uuid:{number}</UUID></TiffData>'
        for at, (name, number) in enumerate(names.items())
    )
    for at, (name, number) in enumerate(names.items()):
        xml = (
            f'<?xml version="1.0" encoding="UTF-8"?><OME xmlns="{NS}" UUID="urn:uuid:{number}"><Image ID="Image:0">'
            f'<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="{image.shape[2]}" '
            f'SizeY="{image.shape[1]}" SizeZ="{len(image)}" SizeC="1" SizeT="1">'
            f'<Channel ID="Channel:0:0" SamplesPerPixel="1"/>{planes}</Pixels></Image></OME>'
        )
        tifffile.imwrite(folder / name, image[at], description=xml, metadata=None, rowsperstrip=8, compression="zlib")


def test_planes_in_several_files_are_one_array(tmp_path: Path) -> None:
    image = numbers((2, 30, 20), "u2")
    write_pair(tmp_path, image)
    same(tmp_path / "0.ome.tif", image)
    with session():
        x = oc.open(tmp_path / "0.ome.tif")
        targets = {tmp_path / "y.npy": x[:, 5:20] * 2}
        assert forecast(targets) == run(targets)
        tifffile.imwrite(tmp_path / "1.ome.tif", image[0], rowsperstrip=8, compression="zlib")
        with pytest.raises(SourceChangedError, match=r"1\.ome\.tif"):
            x[1].compute()


def test_series_and_levels_are_members(tmp_path: Path) -> None:
    first, second = numbers((40, 50), "u1"), numbers((3, 20, 30), "f4")
    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        file.write(first, subifds=1, tile=(16, 16), compression="zlib")
        file.write(first[::2, ::2], subfiletype=1, tile=(16, 16), compression="zlib")
        file.write(second, compression="zlib", photometric="minisblack")
    group = oc.open(tmp_path / "x.tif")
    assert list(group) == ["0", "1"]
    np.testing.assert_array_equal(group["0"].compute(), first)
    np.testing.assert_array_equal(oc.open(tmp_path / "x.tif/1").compute(), second)
    np.testing.assert_array_equal(oc.open(tmp_path / "x.tif/0/1").compute(), first[::2, ::2])
    for member in ("2", "0/2", "x", "1/1"):
        with pytest.raises(FormatError, match=r"no series .*0 \(YX \(40, 50\)\)"):
            oc.open(tmp_path / "x.tif" / member)


def test_what_is_not_read_is_refused_by_name(tmp_path: Path) -> None:
    path, image = tmp_path / "x.tif", numbers((32, 32), "u1")
    cases = {
        r"compression JPEG \(7\)": (259, 7),
        r"compression PACKBITS \(32773\)": (259, 32773),
        r"predictor FLOATINGPOINT \(3\)": (317, 3),
    }
    for match, (tag, value) in cases.items():
        tifffile.imwrite(path, image, compression="zlib", predictor=True)
        set_tag(path, tag, value)
        with pytest.raises(UnsupportedFormatError, match=rf"x\.tif: {match}.*, which outcore does not read"):
            oc.open(path)
    tifffile.imwrite(path, image > 9, photometric="minisblack")
    with pytest.raises(UnsupportedFormatError, match=r"x\.tif: samples of 1 bits"):
        oc.open(path)


def test_damaged_chunks_are_told_by_file_and_byte(tmp_path: Path) -> None:
    path, image = tmp_path / "x.tif", numbers((40, 64), "u2")
    tifffile.imwrite(path, image, compression="zlib", rowsperstrip=10)
    with tifffile.TiffFile(path) as file:
        offset, length = file.pages[0].dataoffsets[2], file.pages[0].databytecounts[2]
    content = bytearray(path.read_bytes())
    content[offset + 2 : offset + length] = bytes(length - 2)
    path.write_bytes(content)
    x = oc.open(path)
    with pytest.raises(FormatError, match=rf"x\.tif: byte {offset}: deflate"):
        x.compute()
    path.write_bytes(content[: offset + 1])
    with pytest.raises(OutcoreError, match=r"x\.tif"):
        oc.open(path).compute()


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    path, image = tmp_path / "x.tif", numbers((2, 20, 30), "u1")
    tifffile.imwrite(path, image, compression="zlib", rowsperstrip=8)
    content = path.read_bytes()
    for at in range(0, len(content), 37):
        for damaged in (content[:at], content[:at] + b"\xff\xfe\x7f" + content[at + 3 :]):
            path.write_bytes(damaged)
            with contextlib.suppress(OutcoreError):
                opened = oc.open(path)
                members = [opened] if isinstance(opened, oc.Array) else [opened[name] for name in opened]
                for member in members:
                    if member.nbytes < 1 << 20:
                        member.compute()


def test_a_replaced_file_is_refused(tmp_path: Path) -> None:
    path, image = tmp_path / "x.tif", numbers((20, 30), "u1")
    tifffile.imwrite(path, image, compression="zlib")
    x = oc.open(path)
    tifffile.imwrite(path, image + 1, compression="zlib")
    with pytest.raises(SourceChangedError, match=r"x\.tif"):
        x.compute()
