"""Lazy arrays: `array.py` holds `Array`, `node.py` the way from arguments to nodes of the core."""
