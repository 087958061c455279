"""Lazy arrays: the class `Array` and the way from arguments to nodes of the core.

It uses `_base`, `_session` and the Rust module; functions that arrays have as methods stand above it and come in by
`hooks.py`. Start with `array.py`, then `node.py` (operands, axes, types), `indexing.py` and `foreign.py` (arrays of
other libraries); `typed.py` is the base of dates and text.
"""
