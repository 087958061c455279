"""xarray's two doors to outcore: the chunk manager `outcore` and the backend `engine="outcore"`.

It uses the whole interface (`_api`), and no other room uses it: xarray imports it by the entry points of the package.
Start with `manager.py` (the chunk manager), then `unwrapped.py` (arrays that xarray has wrapped), `decoding.py` (CF
attributes as expressions), `generalized.py` (functions over whole axes), `storing.py` (arrays into xarray's targets)
and `backend.py` (files).
"""
