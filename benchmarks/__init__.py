"""Benchmarks, one module per line of the promise. Run them from the project's root: `python -m benchmarks.speed --help`."""
