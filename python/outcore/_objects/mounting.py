"""Buckets and hosts that the engine knows: by the URL that paths there begin with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from outcore import _core
from outcore._base.urls import Url, url_of
from outcore._objects.secrets import secrets_of, without_secrets
from outcore.errors import ArgumentError

if TYPE_CHECKING:
    from outcore._objects.transport import Transport

StorageOptions: TypeAlias = "Mapping[str, Any]"  # names of obstore's configuration, and their values
_PLAIN = ("client_options", "retry_config")
# Names that s3fs has for what obstore calls otherwise.
_OTHER_NAMES = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "anon": "skip_signature",
}
_CLIENT = {"timeout": "120s", "connect_timeout": "10s"}
_RETRY = {"max_retries": 6, "retry_timeout": timedelta(seconds=90)}
_mounted: dict[str, StorageOptions] = {}
_transports: dict[str, Transport] = {}
_lock = Lock()


def mounted(name: str, options: StorageOptions | None = None) -> str:
    """A URL as the engine reads it, with its bucket or host made known.

    Options hold for the bucket or the host from now on, in arrays that were opened before too: credentials that are
    renewed reach them. Without options those before stay, or the environment's are used.

    Raises ArgumentError for a URL that is not read and for options that the store has not, ImportError without
    obstore. I/O: none.
    """
    url = url_of(name)
    if not isinstance(options, Mapping | None):
        raise ArgumentError(f"open: storage_options is a mapping of names to values, not {type(options).__name__}")
    with _lock:
        if url.root not in _mounted or options not in (None, _mounted[url.root]):
            _mount(url, dict(options or {}))
    return url.text


def transport_of(url: str) -> Transport:
    """The requests to the store of a URL that `mounted` gave."""
    return _transports[url_of(url).root]


def _mount(url: Url, options: dict[str, Any]) -> None:
    try:
        from obstore.exceptions import BaseError  # the extra `cloud`
    except ImportError:
        raise ImportError(f"{url.text}: needs obstore: pip install outcore[cloud]") from None
    from outcore._objects.transport import Transport  # imports obstore

    secrets = secrets_of({**options, **{_OTHER_NAMES.get(name, name): value for name, value in options.items()}})
    refusal = None
    try:
        store, endpoint = _store(url, options)
    except (BaseError, TypeError, ValueError) as error:
        refusal = without_secrets(str(error).split("\n")[0], secrets)
    if refusal is not None:
        raise ArgumentError(f"open: {url.root}: storage_options: {refusal}")
    retries = {**_RETRY, **options.get("retry_config", {})}["max_retries"]
    transport = Transport(store, secrets, retries)
    _core.mount(url.root, endpoint, url.scheme in ("s3", "gs"), transport)
    _transports[url.root] = transport
    _mounted[url.root] = options


def _store(url: Url, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The store of obstore's, and what tells apart stores of the same URL."""
    from obstore import store as stores  # the extra `cloud`

    client = {**_CLIENT, **options.get("client_options", {})}
    retry: Any = {**_RETRY, **options.get("retry_config", {})}
    config = {_OTHER_NAMES.get(name, name): value for name, value in options.items() if name not in _PLAIN}
    if url.scheme in ("http", "https"):
        if config:
            raise ValueError(f"{', '.join(config)}: a web server has client_options and retry_config alone")
        client.setdefault("allow_http", url.scheme == "http")
        return stores.HTTPStore(url.root, client_options=client, retry_config=retry), url.root  # type: ignore[arg-type]
    if url.scheme == "gs":
        made = stores.GCSStore(url.authority, config=config, client_options=client, retry_config=retry)  # type: ignore[arg-type]
        return made, str(config.get("base_url", ""))
    names = ("endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url")
    endpoint = next((str(config[name]) for name in names if name in config), None)
    endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", True)
    s3: Any = stores.S3Store
    return s3(url.authority, config=config, client_options=client, retry_config=retry), endpoint.rpartition("@")[2]


__all__ = ["StorageOptions", "mounted", "transport_of"]
