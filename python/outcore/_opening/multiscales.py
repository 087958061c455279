"""Names of axes of images in OME-Zarr, which 0.4 has in the group alone: of its arrays they are the levels' names."""

from __future__ import annotations

from collections.abc import Mapping

from outcore._lazy.annotated import Annotation, Annotations
from outcore._lazy.array import Array


def level_names(attrs: Annotations) -> dict[str, list[str]]:
    """Names of axes by the name of a level, of a group with `multiscales` (0.4) or `ome` (0.5); empty of another.

    Axes of 0.3 are texts. Metadata of another form say nothing.
    """
    ome = attrs.get("ome")
    images = (ome if isinstance(ome, Mapping) else attrs).get("multiscales")
    result: dict[str, list[str]] = {}
    for image in images if isinstance(images, list) else []:
        if not isinstance(image, Mapping) or not isinstance(image.get("axes"), list):
            continue
        names: list[Annotation] = [axis.get("name") if isinstance(axis, Mapping) else axis for axis in image["axes"]]
        datasets = image.get("datasets")
        for dataset in datasets if isinstance(datasets, list) else []:
            path = dataset.get("path") if isinstance(dataset, Mapping) else None
            if isinstance(path, str) and len(set(names)) == len(names) and all(isinstance(name, str) for name in names):
                result[path.strip("/")] = names
    return result


def with_level_names(array: Array, names: list[str] | None) -> Array:
    """A level with the names of its image's axes, where the array itself has none."""
    if names is None or any(array.dims) or len(names) != array.ndim:
        return array
    return array.annotate(dims=names)


__all__ = ["level_names", "with_level_names"]
