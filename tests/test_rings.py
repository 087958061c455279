"""Reads and writes where the kernel gives no rings (io_uring), as in many sandboxes, and in a forked process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.running import session

import outcore as oc
from outcore._command.cli import main

# The kernel refuses every ring to this process and its threads from here on: a filter of system calls answers EPERM.
REFUSE = """
import ctypes, errno, struct

SETUP = 425  # io_uring_setup
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, SETUP), (0x06, 0, 0, 0x00050000 | errno.EPERM), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
if libc.prctl(22, 2, program, 0, 0) != 0:
    print("no filters here")
    raise SystemExit(77)
libc.syscall(SETUP, 8, ctypes.create_string_buffer(256))
assert ctypes.get_errno() == errno.EPERM
"""

WORK = """
import sys
from pathlib import Path

import numpy as np
import outcore as oc

home, found = Path(sys.argv[1]), Path(sys.argv[2])
held = np.arange(300_000, dtype="int64").reshape(300, 1000)
with oc.Session(memory_limit="256MiB"):
    oc.store({home / "a.npy": oc.asarray(held) + 1})
    np.save(found, np.asarray(oc.open(home / "a.npy")))
    pages = oc.io.cached(home / "a.npy", memory="2MiB")
    start = len(pages) - held.nbytes
    numbers = np.random.default_rng(0).integers(0, held.size, 2000)
    assert (pages.read_at(start + 8 * numbers, 1, dtype="int64")[:, 0] == numbers + 1).all()
"""


def made(folder: Path) -> Path:
    arguments = ["volume", "create", folder / "home", folder / "x", folder / "y", "--block", "64KiB"]
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return folder / "home"


@pytest.mark.parametrize("rings", [True, False])
def test_volumes_and_cached_files_do_without_rings(tmp_path: Path, rings: bool) -> None:
    command = [sys.executable, "-c", WORK if rings else REFUSE + WORK, str(made(tmp_path)), str(tmp_path / "found.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), np.arange(1, 300_001).reshape(300, 1000))


def test_a_forked_process_has_a_ring_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    held = np.random.default_rng(0).integers(0, 256, 3 << 20, dtype=np.uint8)
    held.tofile(path)
    offsets = np.arange(0, len(held) - 8, 5000)

    def whole() -> bool:
        with session():
            found = oc.io.cached(path, memory="2MiB").read_at(offsets, 8)
        return bool((found == held[offsets[:, None] + np.arange(8)]).all())

    # This thread has a ring now, which the child finds in its memory.
    assert whole()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if whole() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert whole()
