"""The command line `outcore`, its demonstration and the real memory limit that the demonstration runs under.

It stands above all other rooms, and none uses it. Start with `cli.py`; `shared.py` has the options and the way errors
are shown, `info.py` and `described.py` the content of files, `convert.py` their conversion, `sparse.py`, `graph.py`
and `volume.py` their groups of commands.
"""
