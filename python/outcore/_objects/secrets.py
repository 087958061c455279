"""Secrets in options of stores, which no text shows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

_BYTES_MIN = 4  # shorter values are no secrets, and would be met in any text
_NAMES = re.compile("KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH|COOKIE|CERTIFICATE")
_LOGIN = re.compile(r"://([^/@\s]*)@")
_QUERY = re.compile(r"(\w+://[^\s?#\"'()]+)[?#][^\s\"'()]*")


def secrets_of(options: Mapping[str, object]) -> tuple[str, ...]:
    """The texts of options that are not to be shown, the longest first.

    Secrets are values by the names of credentials, default headers, and logins in URLs of proxies and endpoints.
    """
    secrets = {secret for secret in _secrets(options) if len(secret) >= _BYTES_MIN}
    return tuple(sorted(secrets, key=len, reverse=True))


def _secrets(options: Mapping[str, object], is_secret: bool = False) -> Iterator[str]:
    for name, value in options.items():
        is_named = is_secret or name == "default_headers" or _NAMES.search(str(name).upper()) is not None
        if isinstance(value, Mapping):
            yield from _secrets(value, is_named)
            continue
        text = value.decode("latin1") if isinstance(value, bytes) else value
        if not isinstance(text, str):
            continue
        if is_named:
            yield from {text, *text.split()}  # a header has the kind of its credentials before them
        for login in _LOGIN.findall(text):
            for part in (login, *login.split(":", 1)):
                yield from {part, unquote(part)}


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """A text in which secrets, those of the environment, logins and queries of URLs are left out."""
    for secret in (*secrets, *secrets_of(os.environ)):
        text = text.replace(secret, "…")
    return _QUERY.sub(r"\1?…", _LOGIN.sub("://…@", text))


__all__ = ["secrets_of", "without_secrets"]
