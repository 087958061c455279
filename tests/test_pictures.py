"""Pictures of plans: passes with their bytes, arrays with what is kept of them, stages, and plans of many passes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore._base.sizes import format_size
from outcore._session.trace import ArrayStrip
from outcore._show.names import strip_names
from outcore._show.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"


def words(picture: Picture) -> list[str]:
    image = ElementTree.fromstring(picture.svg())
    texts = image.iter(f"{SVG}text")
    return ["".join([part.text or "", *(child.tail or "" for child in part)]) for part in texts]


def boxes(picture: Picture, kind: str) -> list[ElementTree.Element]:
    image = ElementTree.fromstring(picture.svg())
    return [part for part in image.iter() if part.get("class") == kind]


@pytest.fixture
def x(tmp_path: Path) -> oc.Array:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((9000, 500)))
    return oc.open(tmp_path / "x.npy")


def test_passes_and_arrays_have_names_and_bytes(x: oc.Array, tmp_path: Path) -> None:
    average = x.mean(axis=0)
    target = {tmp_path / "centred.zarr": x - average}
    with session(tmp_path, pool_limit=12 << 20):
        picture, said = oc.visualize(target), oc.explain(target)
    text = " | ".join(words(picture))
    assert "x.npy" in text
    assert "centred.zarr" in text
    assert "average" in text, "a variable gives its name"
    assert str(tmp_path) not in text, "paths are where they are pointed at"
    assert str(tmp_path / "x.npy") in picture.svg()
    assert format_size(said.passes[0].bytes_read) in text
    assert len(boxes(picture, "ink compute")) == len(said.passes) == 2
    wide = [float(box.get("width", "0")) for box in boxes(picture, "ink compute")]
    assert all(width > 100 for width in wide), "both read the file, each for half of the plan"


def test_printed_pictures_have_a_line_for_each_pass(x: oc.Array, tmp_path: Path) -> None:
    with session(tmp_path):
        one, staged = oc.visualize(x - x.mean(axis=0)), oc.visualize(oc.median(x))
        said = oc.explain(x - x.mean(axis=0))
    first, *passes, last = str(one).splitlines()
    assert first == "A plan of 2 passes:"
    assert [line.split(":")[0] for line in passes] == ["  0", "  1"]
    assert passes[0].endswith(f"  {format_size(said.passes[0].bytes_read)} read")
    assert last == "svg(), html() and png() draw it; dot is its source for Graphviz"
    assert one.dot.startswith("digraph")
    stages = [line for line in str(staged).splitlines() if line.startswith("stage ")]
    assert stages[0].startswith(f"stage 1 of {len(stages)}: ")
    assert all(len(line) <= 100 for line in str(staged).splitlines())


def test_an_image_is_as_wide_as_its_names_and_figures(tmp_path: Path) -> None:
    def extent(name: str) -> tuple[float, float]:
        np.save(tmp_path / name, np.ones((100, 50)))
        image = ElementTree.fromstring(oc.visualize(oc.open(tmp_path / name).sum()).svg())
        begin, _, wide, _ = map(float, (image.get("viewBox") or "").split())
        return begin, wide

    brief, long = extent("x.npy"), extent("temperatures_of_2024.npy")
    assert long[0] < brief[0] < 0, "names stand on the left of what begins at 0"
    assert abs(sum(brief) - sum(long)) <= 1
    assert brief[1] < 800


def test_loops_are_one_row(x: oc.Array, tmp_path: Path) -> None:
    v = oc.ones((500,))
    for _ in range(40):
        v = x.T @ (x @ v)
    with session(tmp_path, pool_limit=32 << 20):
        picture = oc.visualize(v)
    assert any("×" in word for word in words(picture))
    assert len(boxes(picture, "ink compute")) < 10


def test_stages_stand_below_each_other(x: oc.Array, tmp_path: Path) -> None:
    with session(tmp_path, pool_limit=48 << 20):
        picture = oc.visualize(oc.sort(x.reshape(-1)))
    text = words(picture)
    assert any(word.startswith("stage 1 of") for word in text)
    assert any(word.endswith("(bounds)") for word in text)


def test_a_plan_of_many_passes_is_small(tmp_path: Path) -> None:
    arrays = []
    for number in range(300):
        np.save(tmp_path / f"x{number}.npy", np.ones((4, number + 2)))
        arrays.append(oc.open(tmp_path / f"x{number}.npy").sum(axis=0))
    with session(tmp_path):
        picture = oc.visualize(*arrays)
    assert len(boxes(picture, "ink compute")) <= 24
    assert len(picture.html()) < 1 << 20
    assert any("arrays more" in word for word in words(picture))


def test_files_of_each_ending(x: oc.Array, tmp_path: Path) -> None:
    with session(tmp_path):
        for ending in ("svg", "html", "dot"):
            oc.visualize(x.sum(), filename=tmp_path / f"plan.{ending}")
    ElementTree.fromstring((tmp_path / "plan.svg").read_text())
    assert "<script" not in (tmp_path / "plan.html").read_text()
    assert (tmp_path / "plan.dot").read_text().startswith("digraph")


def test_png_says_which_package_to_install(x: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ImportError, match="pip install cairosvg"):
        oc.visualize(x.sum(), filename=tmp_path / "plan.png")
    assert not (tmp_path / "plan.png").exists()


def test_png_is_written_by_the_package(x: oc.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def svg2png(bytestring: bytes, scale: float, background_color: str) -> bytes:
        assert ElementTree.fromstring(bytestring).tag == f"{SVG}svg"
        return b"\x89PNG" + background_color.encode() + bytes([round(scale)])

    monkeypatch.setitem(sys.modules, "cairosvg", SimpleNamespace(svg2png=svg2png))
    oc.visualize(x.sum(), filename=tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes() == b"\x89PNGwhite\x02"


def test_slices_of_one_file_have_names_of_their_own(x: oc.Array, tmp_path: Path) -> None:
    oc.store({tmp_path / "z.zarr": x}, chunks={tmp_path / "z.zarr": (500, 80)})
    z = oc.open(tmp_path / "z.zarr")
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "x.npy", np.ones((40, 500)))
    same = oc.open(tmp_path / "other" / "x.npy")
    with session(tmp_path, pool_limit=64 << 20):
        picture = oc.visualize(z[100:110].sum(), z[100:150, :90] + 1, x.sum(axis=0) + same.sum(axis=0))
    labels = words(picture)
    assert "z.zarr, 10×500" in labels
    assert "z.zarr, 50×90" in labels
    assert any(label.startswith("…") and label.endswith(f"{tmp_path.name[-8:]}/x.npy") for label in labels)
    assert "other/x.npy" in labels


def test_tilings_of_one_array_are_told_apart() -> None:
    def strip(number: int, tile: int, length: int = 8) -> ArrayStrip:
        values = (("/a/x.npy",), "stored", (length,), "f8", (tile,), 1, 8, 8, 0, 0, 0, 0, 8, (100,), (0,), number)
        return ArrayStrip(*values)

    assert list(strip_names([strip(0, 2), strip(1, 4)], {}).values()) == ["x.npy, 2 tiles", "x.npy, 4 tiles"]
    assert list(strip_names([strip(0, 2), strip(1, 2)], {}).values()) == ["x.npy (0)", "x.npy (1)"]
    assert list(strip_names([strip(0, 2), strip(1, 2, 9)], {}).values()) == ["x.npy, 8", "x.npy, 9"]
    assert strip_names([strip(0, 2)], {"/a/x.npy": "x"}) == {0: "x"}


def test_lines_stand_beside_each_other_and_beside_labels(x: oc.Array, tmp_path: Path) -> None:
    with session(tmp_path, pool_limit=64 << 20):
        picture = oc.visualize(x.T @ (x @ oc.ones((500,))), x.sum(axis=0), x.max(axis=1) / x.mean())
    image = ElementTree.fromstring(picture.svg())
    lines = [part.get("d", "") for part in image.iter() if (part.get("class") or "").startswith("edge ")]
    places = [float(line[1:].split(" ")[0]) for line in lines]
    assert len(set(places)) == len(places)
    labels = [part for part in image.iter(f"{SVG}text") if part.get("class") == "value"]
    figures = [part for part in image.iter(f"{SVG}text") if part.get("class") is None]
    assert max(float(part.get("x", "0")) for part in labels) < min(places)
    assert min(float(part.get("x", "0")) for part in figures) > max(places)


@pytest.fixture
def profiles(x: oc.Array, tmp_path: Path) -> list[Any]:
    """Of one product, in little memory and in much."""
    made = []
    for pool in (12 << 20, 96 << 20):
        with session(tmp_path, pool_limit=pool), oc.profile() as seen:
            (x @ x.T).sum().compute()
        made.append(seen)
    return made


def test_two_profiles_are_set_side_by_side(profiles: list[Any]) -> None:
    both = oc.profile.compare(*profiles)
    small, large = profiles
    assert small.bytes_read > large.bytes_read
    assert f"{large.bytes_read / small.bytes_read:.2f}" in str(both)
    assert format_size(small.bytes_read) in both.page()
    assert all(len(line) <= 110 for line in str(both).splitlines())
    with pytest.raises(oc.errors.ArgumentError, match="takes two profiles, not int"):
        oc.profile.compare(small, 3)  # type: ignore[arg-type]


def test_profiles_of_one_run_are_compared_on_one_scale(profiles: list[Any], x: oc.Array, tmp_path: Path) -> None:
    both = oc.profile.compare(*profiles)
    assert "all runs" not in str(both), "the run is all there is"
    (line,) = (line for line in str(both).splitlines() if "memory limit" in line)
    runs = [group.run for seen in profiles for group in seen.groups if group.run is not None]
    assert all(format_size(run.ceiling) in line for run in runs)
    charts = re.findall(r'aria-label="Memory over time.*?</svg>', both.page(), re.DOTALL)
    before, after = (re.findall(r'class="(?:number|value)">([^<]+)<', chart) for chart in charts)
    assert before == after
    twice = oc.profile.compare(profiles[0], profiles[0])
    with session(tmp_path, pool_limit=96 << 20), oc.profile() as several:
        x.sum().compute()
        x.max().compute()
    assert "all runs" in str(oc.profile.compare(several, several))
    assert "all runs" not in str(twice)
