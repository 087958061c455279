"""Checks of arguments, element types, sizes, files, the machine: the part of the package that knows no array.

It uses `errors` and the Rust module alone; every other room uses it. Start with `types.py`, the types that stand in
annotations everywhere, and `element_types.py`; `files.py` reads and replaces files, `machine.py` asks for memory and
scratch, `system_errors.py` turns errors of the system into outcore's.
"""
