"""Benchmarks, one module per line of the promise. From the project's root: `python -m benchmarks.speed --help`."""
