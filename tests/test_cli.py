"""The command line: what each command prints, as text and as JSON, and how errors look."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from outcore._command.cli import main


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12.0).reshape(3, 4))
    return path


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_info_says_shape_and_type(stored):
    result = invoke("info", stored, "--json")
    assert result.exit_code == 0
    content = json.loads(result.output)
    assert (content["shape"], content["dtype"]) == ([3, 4], "float64")
    assert "3 × 4" in invoke("info", stored).output


def test_convert_goes_to_zarr_and_back(stored, tmp_path):
    there, back = tmp_path / "b.zarr", tmp_path / "c.npy"
    assert invoke("convert", stored, there, "--chunks", "2,4").exit_code == 0
    result = invoke("convert", there, back, "--dtype", "float32", "--json")
    assert result.exit_code == 0
    assert "bytes_read" in json.loads(result.output)
    np.testing.assert_array_equal(np.load(back), np.arange(12, dtype=np.float32).reshape(3, 4))


def test_convert_does_not_overwrite_unasked(stored, tmp_path):
    target = tmp_path / "d.npy"
    assert invoke("convert", stored, target).exit_code == 0
    result = invoke("convert", stored, target)
    assert result.exit_code == 1
    assert str(target) in result.output
    assert "[exists]" in result.output
    assert invoke("convert", stored, target, "--overwrite").exit_code == 0


def test_explain_takes_an_expression_over_named_arrays(stored):
    result = invoke("explain", "X @ X.T", "--array", f"X={stored}", "--json")
    assert result.exit_code == 0
    content = json.loads(result.output)
    assert content["passes"]
    assert "bytes read (exact)" in invoke("explain", "sum(exp(X))", "-a", f"X={stored}").output


@pytest.mark.parametrize("expression", ["X @", "Y + 1", "1 + 1", "X.nothing"])
def test_explain_refuses_what_is_not_an_array_expression(stored, expression):
    result = invoke("explain", expression, "--array", f"X={stored}")
    assert result.exit_code == 2
    assert "Error" in result.output


def test_errors_are_one_line_with_their_code(tmp_path):
    missing = tmp_path / "missing.npy"
    result = invoke("info", missing)
    assert result.exit_code == 1
    assert len(result.output.strip().splitlines()) == 1
    assert str(missing) in result.output
    content = json.loads(invoke("info", missing, "--json").output)
    assert content["error"]["code"]


def test_clean_reports_per_folder(tmp_path):
    result = invoke("clean", tmp_path, "--json")
    assert result.exit_code == 0
    assert list(json.loads(result.output)) == [str(tmp_path)]


def test_the_demo_keeps_its_promises_and_leaves_nothing(tmp_path):
    """The whole demonstration at a small size: forecast, limit and values all hold, the folder is empty after."""
    folder = tmp_path / "data"
    # In a process of its own: the limit counts what the process already holds, here all tests before this one.
    options = ["--size", "40MB", "--directory", str(folder), "--memory-limit", "256MiB", "--json"]
    command = [sys.executable, "-c", "from outcore._command.cli import main; main()", "demo", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads(result.stdout)
    assert content["faults"] == []
    assert content["nmf"]["difference"] < 1e-10
    assert not folder.exists()


def test_a_bare_import_stays_light():
    code = "import sys, outcore; print(sorted({'rich', 'click', 'yaml', 'zarr', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
