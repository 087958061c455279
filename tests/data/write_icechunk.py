"""Writes the repositories of Icechunk beside it: `python write_icechunk.py icechunk-1` with Icechunk 1, and so on.

Both have the same values, which `tests/test_icechunk.py` has as well. Ids of snapshots and chunks are drawn at random.
"""

from __future__ import annotations

import shutil
import sys

import icechunk
import numpy as np
import zarr


def config() -> icechunk.RepositoryConfig:
    """Virtual chunks in a bucket; manifests in parts of four chunks for arrays of two axes."""
    made = icechunk.RepositoryConfig.default()
    store = icechunk.s3_store(region="us-east-1", anonymous=True)
    made.set_virtual_chunk_container(icechunk.VirtualChunkContainer("s3://bucket/", store))
    parts = {icechunk.ManifestSplitCondition.name_matches("parts"): {icechunk.ManifestSplitDimCondition.Any(): 2}}
    options = {"splitting": icechunk.ManifestSplittingConfig.from_dict(parts)}
    if hasattr(icechunk, "ManifestVirtualChunkLocationCompressionConfig"):
        options["virtual_chunk_location_compression"] = icechunk.ManifestVirtualChunkLocationCompressionConfig(
            min_num_chunks=8
        )
    made.manifest = icechunk.ManifestConfig(**options)
    return made


def write(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(folder), config=config())
    session = repository.writable_session("main")
    root = zarr.group(store=session.store, attributes={"title": "three days"})

    def array(name: str, shape: tuple[int, ...], chunks: tuple[int, ...], kind: str, **more: object) -> zarr.Array:
        return root.create_array(name, shape=shape, chunks=chunks, dtype=kind, **more)

    # Chunks of random numbers are in files, those of zeros and sevens in the manifest, others nowhere.
    t2m = array(
        "t2m", (3, 20, 30), (1, 20, 16), "f4", dimension_names=("time", "y", "x"), fill_value=np.nan,
        attributes={"units": "K"},
    )  # fmt: skip
    values = np.random.default_rng(5).random((20, 30), "f4")
    t2m[0], t2m[1, :, :16] = values, 7
    time = array("time", (3,), (2,), "i8", dimension_names=("time",), attributes={"units": "days since 2001-01-01"})
    time[:] = [0, 1, 2]
    array("scalar", (), (), "f8")[...] = 2.5
    array("g/parts", (6, 8), (1, 2), "i4", compressors=None)[:] = np.arange(48).reshape(6, 8)
    shrunken = array("g/shrunken", (10,), (2,), "i2", compressors=None)
    shrunken[:] = np.arange(10)
    array("shards", (8, 8), (2, 2), "i4", shards=(4, 4))[:] = np.arange(64).reshape(8, 8)
    array("text", (2,), (2,), "str")[:] = ["a", "b"]
    array("far", (16,), (1,), "f8", compressors=None)
    # Tests put the path of a file of theirs in place of these names, which are as long.
    far = [icechunk.VirtualChunkSpec([at], f"s3://bucket/{'x' * 160}.bin", 8 * at, 8) for at in range(16)]
    session.store.set_virtual_refs("far", far)
    first = session.commit("first")
    repository.create_tag("v1", snapshot_id=first)
    repository.create_tag("both", snapshot_id=first)
    repository.create_branch("half & half", snapshot_id=first)
    session = repository.writable_session("main")
    root = zarr.open_group(session.store)
    root["t2m"][2] = 280
    root["g/shrunken"].resize((3,))
    second = session.commit("second")
    repository.create_branch("both", snapshot_id=second)
    repository.create_tag("gone", snapshot_id=first)
    repository.delete_tag("gone")
    for unread in ("overwritten", "transactions"):
        shutil.rmtree(f"{folder}/{unread}", ignore_errors=True)


if __name__ == "__main__":
    write(sys.argv[1])
