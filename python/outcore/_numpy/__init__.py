"""NumPy's protocols: `protocol.py` is where its calls arrive."""
