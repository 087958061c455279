"""Files of kinds that `open` does not read: their kind, by first bytes or name, and the way to read them."""

from __future__ import annotations

from pathlib import Path

from outcore._base.system_errors import WAY_OUT
from outcore._opening.places import file_place, is_hdf5
from outcore.errors import FormatError, UnsupportedFormatError

_BYTES_MAX = 4096
_NOT_NPY = "not a .npy file: "  # the core's reason where no format knows a file, which `.npy` is asked last
# First bytes of a kind of file, their place, the kind, and the way to read it.
_MAGIC: tuple[tuple[bytes, int, str, str], ...] = (
    (
        b"PAR1",
        0,
        "Parquet",
        'oc.read_parquet({path!r})["NAME"]',
    ),
    (b"ARROW1", 0, "Arrow (Feather)", 'oc.read_arrow({path!r})["NAME"]'),
    (b"MATLAB 5.0", 0, "a MATLAB file", 'oc.asarray(scipy.io.loadmat({path!r})["NAME"])'),
    (b"GRIB", 0, "GRIB", 'oc.asarray(xarray.open_dataset({path!r}, engine="cfgrib")["NAME"].data)'),
    (b"SIMPLE  =", 0, "FITS", "oc.asarray(astropy.io.fits.getdata({path!r}, memmap=True))"),
    (b"\x89PNG", 0, "a PNG image", "oc.asarray(PIL.Image.open({path!r}))"),
    (b"\xff\xd8\xff", 0, "a JPEG image", "oc.asarray(PIL.Image.open({path!r}))"),
    (b"OCSPARSE", 0, "a sparse matrix", "oc.sparse.open({path!r})"),
    (b"%%MatrixMarket", 0, "Matrix Market", 'oc.sparse.from_mtx({path!r}, "A.ocs")'),
    (b"\x80\x04", 0, "a pickle", "pickle.load, then oc.asarray"),
)
_TABLE = 'oc.read_csv({path!r})["NAME"]'
_EDGES = 'a list of edges is read by oc.sparse.from_edges({path!r}, "A.ocs")'
_SUFFIXES: dict[str, tuple[str, str]] = {
    ".csv": ("a table of text", f"{_TABLE}; {_EDGES}"),
    ".tsv": ("a table of text", f"{_TABLE}; {_EDGES}"),
    ".txt": ("text", f"{_TABLE}; {_EDGES}"),
    ".xlsx": ("a workbook", "oc.asarray(pandas.read_excel({path!r}).to_numpy())"),
    ".json": ("JSON", "oc.asarray(json.load(...)), or numpy.save it"),
    ".mat": ("a MATLAB file", 'oc.asarray(scipy.io.loadmat({path!r})["NAME"])'),
    ".parquet": ("Parquet", 'oc.read_parquet({path!r})["NAME"]'),
    ".zip": ("an archive", "what it has, unpacked: unzip {path}"),
    ".ocg": ("a graph", "oc.graph.open({path!r})"),
}
_PACKED = (".gz", ".zst", ".bz2", ".xz")


def with_kind(path: str, error: FormatError) -> FormatError:
    """The refusal of a file, which says what kind it is and how that is read, where the kind is known."""
    if not is_unknown(error):
        return _with_h5py(path, error)
    known = _kind(Path(path))
    details = getattr(error, "details", {})
    if known is None and path.endswith(".npy"):
        return error
    if known is None:
        return FormatError(
            f"{path}: none of the formats that outcore.open reads, by its first bytes; numbers without a header are "
            f"opened by outcore.open(path, dtype=…, shape=…, offset=…)",
            details,
        )
    kind, way = known
    reason = f"{kind}, which outcore.open does not read; use {way.format(path=path)}"
    return FormatError(f"{path}: {reason}", {**details, "kind": kind})


def is_unknown(error: FormatError) -> bool:
    """Whether a file was refused as none of the formats that are told by their content."""
    return str(getattr(error, "details", {}).get("cause", "")).startswith(_NOT_NPY)


def _with_h5py(path: str, error: FormatError) -> FormatError:
    """The refusal of a data set of an HDF5 file, with the way to read it by its own library."""
    place = file_place(path)
    if place is None or not place.member or not isinstance(error, UnsupportedFormatError) or not is_hdf5(place.path):
        return error
    way = f"h5py.File({place.path!r})[{place.member!r}]"
    return UnsupportedFormatError(f"{error}{WAY_OUT}{way}", getattr(error, "details", {}))


def _kind(path: Path) -> tuple[str, str] | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(_BYTES_MAX)
    magic = next((row for row in _MAGIC if head[row[1] :].startswith(row[0])), None)
    if magic is not None:
        return magic[2], magic[3]
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _PACKED]
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


__all__ = ["is_unknown", "with_kind"]
