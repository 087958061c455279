"""Makes the fixtures and the listings of them by h5py: `python make.py` (h5py 3.16, HDF5 2.0, netCDF4 1.7, NumPy 2)."""

import ctypes
import glob
from pathlib import Path

import h5py
import netCDF4
import numpy as np
from listing import listing

HERE = Path(__file__).parent
# Functions of the library that h5py does not wrap.
C = ctypes.CDLL(glob.glob(str(Path(h5py.__file__).parents[1] / "h5py.libs" / "libhdf5-*"))[0])
C.H5Pset_istore_k.argtypes = [ctypes.c_int64, ctypes.c_uint]
C.H5Pset_deflate.argtypes = [ctypes.c_int64, ctypes.c_uint]
C.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
C.H5Pset_shared_mesg_nindexes.argtypes = [ctypes.c_int64, ctypes.c_uint]
C.H5Pset_shared_mesg_index.argtypes = [ctypes.c_int64, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint]
X = np.arange(20 * 14, dtype="<i2").reshape(20, 14)


def attributes(of) -> None:
    of["title"] = "grüße"
    of["fixed"] = np.bytes_(b"abc")
    of["spaces"] = np.array([b"a", b"bc"])
    of["list"] = np.array(["a", "bb", ""], dtype=h5py.string_dtype())
    of["float"], of["double"], of["half"] = np.float32(2.5), np.float64(-1e300), np.float16(0.1)
    of["small"], of["inf"], of["big"] = np.float32(1e-42), np.float32(-np.inf), np.array([1.5, np.nan], ">f8")
    of["long"] = np.longdouble("1.1")
    of["integers"], of["bytes"], of["most"] = (
        np.arange(-3, 3, dtype=">i4"),
        np.array([[200, 7]], "u1"),
        np.uint64(2**64 - 1),
    )
    of["yes"], of["flags"] = True, np.array([True, False])
    of["complex"] = np.array([1 + 2j, -3.5j], "c8")
    of["empty"] = h5py.Empty("f4")
    of.create("enumeration", np.int8(1), dtype=h5py.enum_dtype({"A": 0, "B": 1}, basetype="i1"))
    of["compound"] = np.zeros(2, [("a", "i4"), ("b", "f8", (2,))])
    of["none"] = np.zeros(0, "i4")


def types(file) -> None:
    file["compound"] = np.zeros(5, [("a", "<i2"), ("b", ">f8"), ("c", "S3"), ("d", "u1", (2, 3)), ("e", [("f", "f4")])])
    file["enumeration"] = file.create_dataset(
        None, data=np.array([0, 1, 2], "i2"), dtype=h5py.enum_dtype({"A": 0, "long name": 1, "C": 2}, "i2")
    )
    file["boolean"], file["complex"], file["half"], file["big"] = (
        X > 5,
        X[:2].astype("c16"),
        X[0].astype("f2"),
        X.astype(">f8"),
    )
    file["opaque"] = np.array([b"ab", b"cd"], "V5")
    file.create_dataset("text", data=["a", "bc"], dtype=h5py.string_dtype())
    file.create_dataset("ascii", data=["a", "bc"], dtype=h5py.string_dtype("ascii"))
    file.create_dataset("fixed utf8", (2,), dtype=h5py.string_dtype("utf-8", 7))
    file.create_dataset("lists", (3,), dtype=h5py.vlen_dtype("i4"))
    file.create_dataset("references", (2,), dtype=h5py.ref_dtype)[0] = file["big"].ref
    file.create_dataset("regions", (2,), dtype=h5py.regionref_dtype)
    file.attrs["reference"] = np.array([file["big"].ref, h5py.Reference()], dtype=h5py.ref_dtype)
    file["scalar"], file["null"] = 3.5, h5py.Empty("i8")
    file["type"] = np.dtype([("x", "f4"), ("y", "f4")])
    file["type"].attrs["of"] = "points"
    file.create_dataset("points", (3,), dtype=file["type"])
    file["points"].attrs.create("first", np.zeros((), file["type"].dtype), dtype=file["type"])
    odd = h5py.h5t.STD_I32LE.copy()
    odd.set_precision(12)
    odd.set_offset(3)
    h5py.h5d.create(file.id, b"odd", odd, h5py.h5s.create_simple((4,)))
    h5py.h5d.create(file.id, b"bits", h5py.h5t.STD_B16BE.copy(), h5py.h5s.create_simple((4,)))
    h5py.h5d.create(file.id, b"time", h5py.h5t.UNIX_D32LE.copy(), h5py.h5s.create_simple((4,)))
    fill = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    fill.set_layout(h5py.h5d.COMPACT)
    fill.set_fill_value(np.array(7, "<i2"))
    h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16LE, h5py.h5s.create_simple((2, 3)), fill)
    file.create_dataset("unwritten", (1000, 1000), "f4", fillvalue=7)
    file.create_dataset("nothing", (0, 4), "f4")


def chunked(file, name, data, chunks, maximum=None, filtered=False, edges=False, early=False) -> None:
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(chunks)
    if filtered:
        made.set_shuffle()
        made.set_deflate(4)
    if edges:
        assert C.H5Pset_chunk_opts(made.id, 2) >= 0
    if early:
        made.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    maximum = tuple(h5py.h5s.UNLIMITED if side is None else side for side in maximum or data.shape)
    space = h5py.h5s.create_simple(data.shape, maximum)
    dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(data.dtype), space, made)
    h5py.Dataset(dataset)[...] = data


def indices(file, plain=True) -> None:
    for filtered in (False, True) if plain else (True,):
        add = " filtered" if filtered else ""
        chunked(file, "single" + add, X, (20, 14), filtered=filtered)
        chunked(file, "fixed" + add, X, (6, 5), filtered=filtered)
        chunked(file, "fixed larger" + add, X, (6, 5), (40, 30), filtered=filtered)
        chunked(file, "first" + add, X, (6, 5), (None, 14), filtered=filtered)
        chunked(file, "second" + add, X, (6, 5), (30, None), filtered=filtered)
        chunked(file, "both" + add, X, (6, 5), (None, None), filtered=filtered)
        chunked(file, "many" + add, X, (1, 1) if not filtered else (1, 3), (None, None), filtered=filtered)
        chunked(file, "larger than the shape" + add, X, (22, 16), (None, None), filtered=filtered)
    chunked(file, "cube", np.arange(3 * 4 * 5, dtype="<i8").reshape(3, 4, 5), (2, 3, 2), (None, 4, 5), filtered=True)
    file.create_dataset("unwritten chunks", (100, 100), "f4", chunks=(10, 10))
    file.create_dataset("no rows", (0, 100), "f4", chunks=(10, 10), maxshape=(None, 100))
    file.create_dataset("sums", data=X, chunks=(7, 7), fletcher32=True)
    file.create_dataset("lzf", data=X, chunks=(7, 7), compression="lzf")
    file.create_dataset("scaled", data=X.astype("i4"), chunks=(7, 7), scaleoffset=0)
    masked = file.create_dataset("masked", (16, 8), "f4", chunks=(8, 8), compression="gzip", shuffle=True)
    masked.id.write_direct_chunk((0, 0), np.ones((8, 8), "f4").tobytes(), filter_mask=3)
    masked[8:] = 3


def filtered_indices(file) -> None:
    indices(file, plain=False)


def new_indices(file) -> None:
    chunked(file, "edges", X, (6, 5), filtered=True, edges=True)
    chunked(file, "implicit", X, (6, 5), early=True)
    chunked(file, "implicit larger", X, (6, 5), (24, 30), early=True)


def paged_indices(file) -> None:
    # Elements of the index, of its blocks, of super blocks and of pages; and pages in the midst that are not there.
    places = {
        "rows": (0, 5, 40, 900, 140_003),
        "rows filtered": (0, 5, 40, 900),
        "paged": (0, 5, 1038),
        "paged filtered": (1023, 1024),
    }
    for name, numbers in places.items():
        filters = {"compression": "gzip"} if "filtered" in name else {}
        sides, most = (300_000, None) if "rows" in name else (1040, 1040)
        sparse = file.create_dataset(name, (sides,), "u1", chunks=(1,), maxshape=(most,), **filters)
        for number in numbers:
            sparse[number] = 1


def groups(file) -> None:
    inner = file.create_group("group/inner")
    for number in range(20):
        inner[f"member {number * 7 % 20}"] = np.int8(number)
    file["soft"], file["relative"] = h5py.SoftLink("/group/inner/member 3"), h5py.SoftLink("group/inner")
    file["group/back"], file["lost"] = h5py.SoftLink("inner/member 4"), h5py.SoftLink("/no/thing")
    file["circle"], file["external"] = h5py.SoftLink("/circle"), h5py.ExternalLink("other.h5", "/x")
    file["hard"] = inner["member 7"]
    file["grüße"] = np.int8(1)
    few = file.create_group("few", track_order=True)
    for name in "zayb":
        few[name] = np.int8(1)
        few.attrs[name] = ord(name)


def many_members(file, name, track) -> None:
    group = file.create_group(name, track_order=track)
    for number in range(20):
        group.attrs[f"attribute {number * 7 % 20}"] = number
    if not track:
        group.attrs["huge"] = np.arange(520, dtype="f8")
        group["long " * 820] = np.int8(1)
    for number in range(12):
        group[f"{number * 5 % 12}"] = np.int8(number)


def dense(file) -> None:
    many_members(file, "dense", False)


def ordered(file) -> None:
    many_members(file, "ordered", True)


def scales(file) -> None:
    data = file.create_dataset("group/field", data=X, chunks=(7, 7))
    for axis, name in enumerate(("latitude", "longitude")):
        file[name] = np.arange(X.shape[axis], dtype="f8")
        file[name].make_scale(name + " of the grid")
        data.dims[axis].attach_scale(file[name])
    file["labelled"] = X
    file["labelled"].dims[1].label = "x"


def netcdf(path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.title = "a file"
        file.createDimension("time", None)
        file.createDimension("lat", 6)
        file.createDimension("name_bytes", 4)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(5)
        file.createVariable("lat", "f4", ("lat",))[:] = np.arange(6)
        t = file.createVariable("t", "i2", ("time", "lat"), zlib=True, chunksizes=(2, 4), fill_value=-32767)
        t.scale_factor, t.long_name = 0.01, "temperature"
        t[:] = np.arange(30).reshape(5, 6)
        file.createDimension("level", 2)
        file.createVariable("level", "f4", ("level", "lat"))[:] = 0
        file.createVariable("above", "f4", ("level",))[:] = 0
        file.createVariable("without", "f4", ("lat", "name_bytes"))[:] = 0
        inner = file.createGroup("forecast")
        inner.createDimension("station", 3)
        inner.createVariable("station", "S1", ("station", "name_bytes"))[:] = np.full((3, 4), b"x")
        inner.createVariable("u", "f4", ("station", "lat"))[:] = 1


def refused(path) -> None:
    with h5py.File(path, "w", libver="v110") as file:
        file.create_dataset("external data", (4,), "f4", external=[("other.bin", 0, 16)])
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
        file.create_virtual_dataset("virtual", layout)
        made = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        assert C.H5Pset_deflate(made.id, 4) >= 0
        group = h5py.Group(h5py.h5g.create(file.id, b"filtered", gcpl=made))
        for number in range(9):
            group[f"link {number}"] = h5py.SoftLink("/")


def file_with(path, make, fcpl=None, low=None, high=None) -> None:
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    if low is not None:
        fapl.set_libver_bounds(low, high if high is not None else low)
    fcpl = fcpl or h5py.h5p.create(h5py.h5p.FILE_CREATE)
    fcpl.set_obj_track_times(False)
    with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl)) as file:
        for step in make:
            step(file)


def root_attributes(file) -> None:
    attributes(file.attrs)


def file_properties(user_block=0, sizes=None, nodes=None, shared=False):
    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    if user_block:
        fcpl.set_userblock(user_block)
    if sizes:
        fcpl.set_sizes(*sizes)
    if nodes:
        assert C.H5Pset_istore_k(fcpl.id, nodes) >= 0
    if shared:
        assert C.H5Pset_shared_mesg_nindexes(fcpl.id, 2) >= 0
        # Datatypes and dataspaces; attributes.
        assert C.H5Pset_shared_mesg_index(fcpl.id, 0, 1 << 3 | 1 << 1, 10) >= 0
        assert C.H5Pset_shared_mesg_index(fcpl.id, 1, 1 << 12, 10) >= 0
    return fcpl


def main() -> None:
    for path in [*HERE.glob("*.h5"), *HERE.glob("*.nc"), *HERE.glob("*.txt")]:
        path.unlink()
    v18, v110, v200 = h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_LATEST
    file_with(HERE / "old.h5", [root_attributes, types, groups, scales])
    file_with(HERE / "old_indices.h5", [indices], file_properties(nodes=4))
    file_with(HERE / "old_nodes.h5", [root_attributes, scales], file_properties(2048, (4, 4), 8))
    file_with(HERE / "v18.h5", [root_attributes, scales], file_properties(512), v18)
    file_with(HERE / "v110_indices.h5", [filtered_indices, new_indices], None, v110)
    file_with(HERE / "v200.h5", [root_attributes, types, groups, dense, ordered, scales], None, v200)
    file_with(HERE / "v200_indices.h5", [indices, new_indices, paged_indices], file_properties(1024), v200)
    file_with(HERE / "v110_small.h5", [root_attributes, dense], file_properties(0, (2, 4)), v110)
    file_with(HERE / "shared.h5", [root_attributes, dense], file_properties(shared=True), v110)
    netcdf(HERE / "netcdf.nc")
    refused(HERE / "refused.h5")
    for path in sorted([*HERE.glob("*.h5"), *HERE.glob("*.nc")]):
        if path.stem != "refused":
            path.with_suffix(".txt").write_text(listing(path))
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
