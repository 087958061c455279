"""NumPy's protocols: `np.exp(x)`, `np.sum(x)`, `np.linalg.svd(x)` build nodes.

It uses the whole interface (`_api`), and no other room uses it. Start with `protocol.py`, where calls arrive;
`functions.py`, `linalg.py`, `dates.py` and `typed.py` are tables of functions, `absent.py` the refusals.
"""
