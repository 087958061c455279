"""The command line: `cli.py` is where it begins."""
