"""Stores of objects behind a network: S3, Google Cloud Storage and web servers, by the package obstore.

It uses `_base` and the Rust module. Start with `mounting.py`, which makes a bucket or a host known to the engine;
`transport.py` has the requests, which the engine's threads make.
"""
