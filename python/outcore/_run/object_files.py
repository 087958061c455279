"""`store` to URLs: Zarr is written in scratch by the program of all targets, and then put into its store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from outcore._base.urls import is_url, refuse_url, url_of
from outcore._lazy.hooks import above
from outcore._objects.mounting import StorageOptions, mounted
from outcore._objects.uploading import check_target, upload
from outcore._run.codecs import Compression
from outcore._session.record import Outcome
from outcore._session.session import current
from outcore.errors import ArgumentError, UnsupportedFormatError

TargetSettings: TypeAlias = Mapping[Any, Any]  # by the paths that a caller gives


class TargetLayout(NamedTuple):
    """How targets are cut and compressed, as `store` is told."""

    chunks: TargetSettings | None
    compression: Compression


def has_urls(targets: object) -> bool:
    """Whether a mapping of targets names a URL; regions of one are refused."""
    if not isinstance(targets, Mapping):
        return False
    for path in targets:
        if isinstance(path, tuple) and path:
            refuse_url(path[0], "a region is written in files, not in objects")
    return any(is_url(path) for path in targets)


def store_objects(
    store: Callable[..., Outcome],
    targets: TargetSettings,
    overwrite: bool,
    layout: TargetLayout,
    progress: bool | None,
    options: StorageOptions | None,
    uploads: dict[str, str],
) -> Outcome:
    """`store`, which is given, of a mapping in which some paths are URLs; `uploads` learns how far each of them is.

    Raises UnsupportedFormatError for other formats than Zarr and for web servers, and what `store` raises.
    """
    import shutil  # some modules of its own, which files need not

    session = current()
    # Within the session's folder, which the next session clears away after a kill.
    scratch = session._core.unused_path() + ".upload"
    os.mkdir(scratch)
    try:
        staged = {path: _staged(path, targets[path], Path(scratch, str(at))) for at, path in enumerate(targets)}
        urls = {path: mounted(path, options) for path in targets if is_url(path)}
        if len(set(urls.values())) < len(urls):
            raise ArgumentError(f"store: {', '.join(urls)} name one folder twice")
        for url in urls.values():
            check_target(url, overwrite)
        folders = {url_of(path).text: staged[path] for path in urls}
        (chunks, compression), codecs = layout, layout.compression
        shapes = _moved(chunks, folders)
        if isinstance(compression, Mapping) and not isinstance(compression.get("name"), str):
            codecs = _moved(compression, folders)
        named = {staged[path]: array for path, array in targets.items()}
        outcome = store(named, overwrite=overwrite, chunks=shapes, compression=codecs, progress=progress)
        for path, url in urls.items():
            uploads[url_of(path).text] = "under way"
            upload(Path(staged[path]), url, overwrite)
            uploads[url_of(path).text] = "complete"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return outcome


def _moved(settings: TargetSettings | None, folders: Mapping[str, str]) -> TargetSettings:
    """TargetSettings by path, those of URLs and of members below them by the paths in scratch."""
    moved = {}
    for path, setting in (settings or {}).items():
        name = url_of(path).text if is_url(path) else path
        above = next((url for url in folders if is_url(path) and f"{name}/".startswith(f"{url}/")), None)
        moved[path if above is None else folders[above] + name[len(above) :]] = setting
    return moved


def _staged(path: Any, array: Any, folder: Path) -> Any:
    """The path that is written to: of files their own."""
    if not is_url(path):
        return path
    url = url_of(path)
    if not url.key.endswith(".zarr") or isinstance(array, above.SparseMatrix):
        raise UnsupportedFormatError(f"store: {url.text}: only Zarr is written to URLs, under names that end in .zarr")
    if url.scheme not in ("s3", "gs"):
        raise UnsupportedFormatError(f"store: {url.text}: web servers are read only; s3:// and gs:// are written to")
    folder.mkdir()
    return os.fspath(folder / url.key.rpartition("/")[2])


__all__ = ["TargetLayout", "has_urls", "store_objects"]
