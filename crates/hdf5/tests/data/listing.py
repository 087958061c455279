"""The listing of an HDF5 file as h5py sees it, the same as `tests/support.rs` writes: `python listing.py FILE`."""

import struct
import sys
from pathlib import Path

import h5py
import numpy as np

T = h5py.h5t


def number(kind, bits, offset, bytes_, order) -> str:
    text = f"{kind}{bits}"
    if offset or bits != 8 * bytes_:
        text += f" at bit {offset} of {bytes_} bytes"
    return text + (" big-endian" if order == T.ORDER_BE and bytes_ > 1 else "")


def short(name) -> str:
    return name if len(name) < 80 else f"{name[:40]} and {len(name.encode()) - 40} bytes"


def type_text(t) -> str:
    size, kind = t.get_size(), t.get_class()
    if kind == T.BITFIELD:  # h5py has neither precision nor order of it
        is_big = any(t.equal(big) for big in (T.STD_B16BE, T.STD_B32BE, T.STD_B64BE))
        return number("bits", 8 * size, 0, size, T.ORDER_BE if is_big else T.ORDER_LE)
    if kind in (T.INTEGER, T.FLOAT):
        name = {T.INTEGER: "int", T.FLOAT: "float"}[kind]
        if kind == T.INTEGER and t.get_sign() == T.SGN_NONE:
            name = "uint"
        return number(name, t.get_precision(), t.get_offset(), size, t.get_order())
    if kind == T.TIME:
        return f"time of {size} bytes"
    if kind == T.STRING:
        return "text" if t.is_variable_str() else f"text of {size} bytes"
    if kind == T.OPAQUE:
        tag = t.get_tag().decode()
        return f'opaque "{tag}" of {size} bytes'
    if kind == T.COMPOUND:
        fields = (
            f"{t.get_member_name(i).decode()} at {t.get_member_offset(i)}: {type_text(t.get_member_type(i))}"
            for i in range(t.get_nmembers())
        )
        return f"compound of {size} bytes {{{', '.join(fields)}}}"
    if kind == T.REFERENCE:
        return "reference" if t.equal(T.STD_REF_OBJ) else "region reference"
    if kind == T.ENUM:
        names = ", ".join(t.get_member_name(i).decode() for i in range(t.get_nmembers()))
        return f"enumeration of {type_text(t.get_super())} {{{names}}}"
    if kind == T.VLEN:
        return f"list of {type_text(t.get_super())}"
    if kind == T.ARRAY:
        return f"array {list(t.get_array_dims())} of {type_text(t.get_super())}"
    if kind == T.COMPLEX:
        return f"complex of {type_text(t.get_super())}"
    raise ValueError(kind)


def is_variable(t) -> bool:
    return t.get_class() == T.STRING and t.is_variable_str()


def text_details(t) -> str:
    if t.get_class() != T.STRING:
        return ""
    charset = " utf8" if t.get_cset() == T.CSET_UTF8 else " ascii"
    padding = {T.STR_NULLTERM: " terminated", T.STR_NULLPAD: " zeros", T.STR_SPACEPAD: " spaces"}[t.get_strpad()]
    return charset + ("" if t.is_variable_str() else padding)


class Listing:
    def __init__(self, file) -> None:
        self.file, self.lines, self.base = file, [], file.id.get_create_plist().get_userblock()
        self.bytes = Path(file.filename).read_bytes()

    def address(self, object_id) -> int:
        return h5py.h5o.get_info(object_id).addr + self.base

    def reference(self, reference) -> str:
        return str(self.address(self.file[reference].id)) if reference else "-"

    def values(self, attribute, value) -> str:
        t = attribute.get_type()
        kind = t.get_class()
        if isinstance(value, h5py.Empty):
            return "empty"
        flat = np.asarray(value).ravel() if not isinstance(value, (str, bytes)) else [value]
        if kind == T.STRING:
            texts = (part.decode() if isinstance(part, bytes) else part for part in flat)
            return " ".join(f'"{text}"' for text in texts)
        if kind in (T.FLOAT, T.COMPLEX) or np.asarray(value).dtype.kind == "c":

            def bits(part) -> str:
                return "nan" if np.isnan(part) else struct.pack(">d", float(part)).hex()

            return " ".join(
                f"{bits(part.real)}+{bits(part.imag)}" if part.dtype.kind == "c" else bits(part) for part in flat
            )
        if kind == T.ENUM and flat.dtype == bool:
            return " ".join("true" if part else "false" for part in flat)
        if kind in (T.INTEGER, T.ENUM):
            return " ".join(str(int(part)) for part in flat)
        if kind == T.REFERENCE:
            return " ".join(self.reference(part) for part in flat)
        if kind == T.VLEN and t.get_super().get_class() == T.REFERENCE:
            return " ".join(f"[{' '.join(self.reference(part) for part in parts)}]" for parts in flat)
        return f"other {type_text(t)}"

    def attributes(self, of) -> None:
        for name in sorted(of.attrs, key=str.encode):
            attribute = of.attrs.get_id(name)
            t = attribute.get_type()
            value = of.attrs[name]
            shape = [] if isinstance(value, h5py.Empty) else list(attribute.shape)
            if name == "REFERENCE_LIST":  # references have other sizes in memory
                self.lines.append(f"  attribute {name}")
                continue
            text = f"  attribute {name}: {type_text(t)}{text_details(t)} {shape} = {self.values(attribute, value)}"
            self.lines.append(text.rstrip())

    def group(self, path, group) -> None:
        self.lines.append(f"group {path}")
        inner = []
        for name in sorted(group, key=str.encode):
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                self.lines.append(f"  member {name}: soft link {link.path}")
            elif isinstance(link, h5py.ExternalLink):
                self.lines.append(f"  member {name}: external link {link.filename} {link.path}")
            else:
                thing = group[name]
                kind = {h5py.Group: "group", h5py.Dataset: "dataset", h5py.Datatype: "type"}[type(thing)]
                info = group.id.links.get_info(name.encode())
                order = f" created {info.corder}" if info.corder_valid else ""
                self.lines.append(f"  member {short(name)}: {kind} {self.address(thing.id)}{order}")
                inner.append((name, thing))
        self.attributes(group)
        for name, thing in inner:
            self.object(f"{path.rstrip('/')}/{name}", thing)

    def object(self, path, thing) -> None:
        if isinstance(thing, h5py.Group):
            self.group(path, thing)
        elif isinstance(thing, h5py.Datatype):
            self.lines.append(f"type {path}: {type_text(thing.id)}{text_details(thing.id)}")
            self.attributes(thing)
        else:
            self.dataset(path, thing)

    def dataset(self, path, dataset) -> None:
        add, d, made = self.lines.append, dataset.id, dataset.id.get_create_plist()
        add(f"dataset {short(path)}")
        t = d.get_type()
        add(f"  type {type_text(t)}{text_details(t)}")
        is_null = d.get_space().get_simple_extent_type() == h5py.h5s.NULL
        shape = [] if is_null else list(dataset.shape)
        add(f"  shape {'null' if is_null else shape}")
        add("  maximum " + " ".join("-" if side is None else str(side) for side in (dataset.maxshape or ())))
        fill = made.fill_value_defined()
        if fill == h5py.h5d.FILL_VALUE_USER_DEFINED and t.get_class() != T.VLEN and not is_variable(t):
            value = np.zeros((), dtype=dataset.dtype)
            made.get_fill_value(value)
            add(f"  fill {value.tobytes().hex()}")
        for place in range(made.get_nfilters()):
            number, flags, values, _ = made.get_filter(place)
            add(f"  filter {number} {list(values)}{' optional' if flags & 1 else ''}")
        self.layout(dataset, made, shape)
        names = []
        for axis in range(len(shape)):
            scales = dataset.dims[axis]
            label = scales.label or None
            names.append(scales[0].name.rsplit("/", 1)[-1] if len(scales) else label)
        if h5py.h5ds.is_scale(d):
            if len(shape) == 1:
                names = [path.rsplit("/", 1)[-1]]
            add("  scale")
            if "_Netcdf4Coordinates" in dataset.attrs:
                names = [self.dimension(dataset, number) for number in dataset.attrs["_Netcdf4Coordinates"]]
        add("  dimensions " + " ".join(name or "-" for name in names))
        self.attributes(dataset)

    def dimension(self, dataset, number) -> str:
        group = dataset.parent
        while True:
            for name, thing in group.items():
                is_scale = isinstance(thing, h5py.Dataset) and h5py.h5ds.is_scale(thing.id)
                if is_scale and thing.attrs.get("_Netcdf4Dimid") == number:
                    return name
            group = group.parent

    def layout(self, dataset, made, shape) -> None:
        add, d = self.lines.append, dataset.id
        if made.get_layout() == h5py.h5d.COMPACT:
            add(f"  compact {dataset[...].tobytes().hex()}")
        elif made.get_layout() == h5py.h5d.CONTIGUOUS:
            offset = d.get_offset()
            t = d.get_type()
            # Types of variable length have other sizes in memory.
            one = 8 + self.file.id.get_create_plist().get_sizes()[0] if is_variable(t) else t.get_size()
            size = 0 if dataset.shape is None else one * int(np.prod(shape))
            add(f"  contiguous {'-' if offset is None else offset} {size}")
        else:
            add(f"  chunked {list(dataset.chunks)}")
            places = []
            d.chunk_iter(lambda c: places.append((c.chunk_offset, c.byte_offset, c.size, c.filter_mask)))
            places = [(self.coordinates(dataset, offset), *place) for offset, *place in places]
            for place, at, size, mask in sorted(places):
                raw = d.read_direct_chunk(tuple(np.multiply(place, dataset.chunks).tolist()))
                assert raw == (mask, self.bytes[at : at + size]), (dataset.name, place)
                add(f"  chunk {place} {at} {size} {mask}")

    def coordinates(self, dataset, offset) -> list[int]:
        """Coordinates in the grid of chunks, of which one axis of two, or the first of any, may be without an end."""
        place = [begin // side for begin, side in zip(offset, dataset.chunks, strict=True)]
        endless = [axis for axis, most in enumerate(dataset.maxshape) if most is None]
        if len(endless) == 1 and endless[0] > 0 and b"EAHD" in self.bytes:
            # Iteration counts along the axis without an end, though the array has it before the others (HDF5 2.0).
            rows = -(-dataset.maxshape[0] // dataset.chunks[0])
            return [place[1] % rows, place[1] // rows]
        return place


def listing(path) -> str:
    with h5py.File(path) as file:
        lines = Listing(file)
        lines.group("/", file["/"])
        return "\n".join(lines.lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(listing(Path(sys.argv[1])))
