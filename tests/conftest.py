"""Makes the helpers and the benchmarks importable, keeps configuration out, and turns a hang into a failure."""

from __future__ import annotations

import faulthandler
import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HANG_SECONDS = 240
LARGE_HANG_SECONDS = 3600

for folder in (ROOT, ROOT / "tests"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _setting(name: str, default: str) -> str:
    """A variable of the tests: workers of pytest-xdist have the value under another name, the package has none."""
    value = os.environ.pop(f"OUTCORE_{name}", os.environ.get(f"TESTS_OF_OUTCORE_{name}", default))
    os.environ[f"TESTS_OF_OUTCORE_{name}"] = value
    return value


LARGE = _setting("LARGE", "") != ""
KILLS = int(_setting("TEST_KILLS", "40" if LARGE else "8"))

for name in [name for name in os.environ if name.startswith("OUTCORE_")]:
    del os.environ[name]
# A thousand children import the package, which takes twice as long without its compiled modules; and each worker
# imports the tests, whose assertions pytest rewrites.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Threads of BLAS wait for work by spinning, on the cores of the other workers. Workers and children read this.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_collection_finish() -> None:
    """What is imported and collected stays to the end: later searches for garbage pass over it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """A test that hangs prints every thread's stack and ends the process, instead of the build's time."""
    faulthandler.dump_traceback_later(LARGE_HANG_SECONDS if LARGE else HANG_SECONDS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of the module's tests, which goes after the last of them: inputs of modules together fill a disk."""
    folder = tmp_path_factory.mktemp(request.module.__name__)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder
