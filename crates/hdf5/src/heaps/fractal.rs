//! The fractal heap (specification III.G): direct blocks of objects below indirect blocks, whose rows double in size.
//!
//! Row 0 and row 1 have blocks of the starting size, row r > 0 blocks of 2^(r-1) starting sizes; `width` blocks stand
//! in a row. Rows with blocks up to the largest direct block point to direct blocks, the others to indirect blocks. An
//! object is named by its offset in the space of all blocks (managed), lies in its own name (tiny), or outside of the
//! blocks (huge).

use std::collections::{HashMap, HashSet};

use crate::base::{lookup3, ByteBlock, ByteFields, FieldSizes, FileView, Hdf5Error, Visits};
use crate::trees::RecordTree;

/// Rows of an indirect block: offsets have 64 bits.
const ROWS_MAX: u32 = 64;

/// A heap, with the blocks of it that were read.
pub(crate) struct FractalHeap {
    at: u64,
    name_bytes: usize,
    has_checksums: bool,
    object_bytes_max: u64,
    huge_tree: Option<u64>,
    width: u64,
    start_bytes: u64,
    direct_bytes_max: u64,
    offset_bits: u16,
    root: Option<u64>,
    /// Rows of the indirect block at the root; 0 where the root is a direct block.
    root_rows: u16,
    indirect: HashMap<u64, Vec<Option<u64>>>,
    checked: HashSet<u64>,
    visits: Visits,
    /// Places of huge objects by their numbers, once asked for.
    huge: Option<HashMap<u64, (u64, u64)>>,
}

/// A block of a heap: its place in the file, and its offset and size in the heap.
#[derive(Clone, Copy)]
struct HeapBlock {
    at: u64,
    offset: u64,
    bytes: u64,
}

impl FractalHeap {
    /// The heap with its header at `at`.
    pub fn open(view: &FileView<'_>, at: u64) -> Result<FractalHeap, Hdf5Error> {
        let sizes = view.sizes;
        let bytes = 26 + 12 * u64::from(sizes.length_bytes) + 3 * u64::from(sizes.address_bytes);
        let block = view.block(at, bytes)?;
        let mut fields = block.fields();
        fields.signature(b"FRHP")?;
        fields.version(&[0], "fractal heaps")?;
        let name_bytes = usize::from(fields.u16()?);
        if fields.u16()? != 0 {
            return Err(Hdf5Error::unsupported("filters of a fractal heap"));
        }
        let mut fields = block.checked_fields()?;
        fields.bytes(9)?;
        let has_checksums = fields.u8()? & 2 != 0;
        let object_bytes_max = u64::from(fields.u32()?);
        fields.length()?; // the number of the next huge object
        let huge_tree = fields.address()?;
        fields.length()?;
        fields.address()?; // free space
        for _ in 0..8 {
            fields.length()?; // counts of bytes and objects
        }
        let heap = FractalHeap {
            at,
            name_bytes,
            has_checksums,
            object_bytes_max,
            huge_tree,
            width: u64::from(fields.u16()?),
            start_bytes: fields.length()?,
            direct_bytes_max: fields.length()?,
            offset_bits: fields.u16()?,
            root: {
                fields.u16()?; // rows at the start
                fields.address()?
            },
            root_rows: fields.u16()?,
            indirect: HashMap::new(),
            checked: HashSet::new(),
            visits: Visits::default(),
            huge: None,
        };
        heap.check()?;
        Ok(heap)
    }

    fn check(&self) -> Result<(), Hdf5Error> {
        let are_powers = [self.width, self.start_bytes, self.direct_bytes_max]
            .iter()
            .all(|size| size.is_power_of_two());
        let fits = are_powers
            && self.start_bytes <= self.direct_bytes_max
            && self.start_bytes.checked_mul(self.width).is_some()
            && (1..=64).contains(&self.offset_bits)
            && u32::from(self.root_rows) <= ROWS_MAX
            && self.name_bytes > 0;
        if !fits {
            return Err(Hdf5Error::damaged(self.at, "a fractal heap of impossible sizes"));
        }
        Ok(())
    }

    /// Bytes of an offset in the heap.
    fn offset_bytes(&self) -> usize {
        usize::from(self.offset_bits).div_ceil(8)
    }

    /// Bytes of the length of a managed object in its name.
    fn length_bytes(&self) -> usize {
        let of_block = (self.direct_bytes_max.ilog2() as usize).div_ceil(8);
        let of_object = (self.object_bytes_max.max(1).ilog2() / 8 + 1) as usize;
        of_block.min(of_object)
    }

    /// The bytes of the object with a name.
    pub fn object(&mut self, view: &FileView<'_>, name: &mut ByteFields<'_>) -> Result<ByteBlock, Hdf5Error> {
        let mut name = name.part(self.name_bytes)?;
        let first = name.u8()?;
        if first >> 6 != 0 {
            return Err(Hdf5Error::unsupported(format!(
                "version {} of names in a fractal heap",
                first >> 6
            )));
        }
        match first >> 4 & 3 {
            0 => {
                let offset = name.number(self.offset_bytes())?;
                let bytes = name.number(self.length_bytes())?;
                self.managed(view, offset, bytes)
            }
            1 => self.huge(view, &mut name),
            2 => {
                let length = u64::from(first & 15);
                // Names of more than 17 bytes have longer lengths.
                let bytes = if self.name_bytes > 17 {
                    length << 8 | u64::from(name.u8()?)
                } else {
                    length
                } + 1;
                Ok(name.part(bytes as usize)?.block())
            }
            kind => Err(name.damaged(format!("an object of kind {kind} in a fractal heap"))),
        }
    }

    fn managed(&mut self, view: &FileView<'_>, offset: u64, bytes: u64) -> Result<ByteBlock, Hdf5Error> {
        let block = self.direct_block(view, offset)?;
        let within = offset - block.offset;
        if within.checked_add(bytes).is_none_or(|end| end > block.bytes) {
            return Err(Hdf5Error::damaged(
                block.at,
                format!("an object of {bytes} bytes at {within} leaves its block"),
            ));
        }
        view.check(block.at, block.bytes)?;
        if self.has_checksums && !self.checked.contains(&block.at) {
            self.check_direct(view, block)?;
        }
        view.block(block.at + within, bytes)
    }

    /// The direct block that holds an offset of the heap.
    fn direct_block(&mut self, view: &FileView<'_>, offset: u64) -> Result<HeapBlock, Hdf5Error> {
        let heap = self.at;
        let outside = || Hdf5Error::damaged(heap, format!("offset {offset} is outside of a fractal heap"));
        let mut at = self.root.ok_or_else(outside)?;
        if self.root_rows == 0 {
            let bytes = self.start_bytes;
            return if offset < bytes {
                Ok(HeapBlock { at, offset: 0, bytes })
            } else {
                Err(outside())
            };
        }
        let (mut rows, mut start) = (u32::from(self.root_rows), 0);
        loop {
            let (row, column, block) = self
                .place(offset - start)
                .filter(|(row, ..)| *row < rows)
                .ok_or_else(outside)?;
            let entry = u64::from(row) * self.width + column;
            let children = self.children(view, at, start, rows)?;
            let child = children.get(entry as usize).copied().flatten().ok_or_else(outside)?;
            let block = HeapBlock {
                at: child,
                offset: start + block.offset,
                bytes: block.bytes,
            };
            if block.bytes <= self.direct_bytes_max {
                return Ok(block);
            }
            // Blocks of child are smaller than the child, so this ends.
            let below = (block.bytes / self.width / self.start_bytes)
                .checked_ilog2()
                .ok_or_else(outside)?
                + 1;
            (at, start, rows) = (block.at, block.offset, below);
        }
    }

    /// The row and column of the block that holds `offset` of an indirect block, and its offset and size there.
    fn place(&self, offset: u64) -> Option<(u32, u64, HeapBlock)> {
        let row_bytes = self.start_bytes * self.width;
        let row = (offset / row_bytes).checked_ilog2().map_or(0, |power| power + 1);
        if row >= ROWS_MAX {
            return None;
        }
        let doubled = row.saturating_sub(1);
        let bytes = self.start_bytes.checked_mul(1 << doubled)?;
        let first = if row == 0 {
            0
        } else {
            row_bytes.checked_mul(1 << doubled)?
        };
        let column = (offset - first) / bytes;
        let block = HeapBlock {
            at: 0,
            offset: first + column * bytes,
            bytes,
        };
        Some((row, column, block))
    }

    /// The addresses in the indirect block at `at`, which has so many rows and begins at an offset of the heap.
    fn children(&mut self, view: &FileView<'_>, at: u64, offset: u64, rows: u32) -> Result<&[Option<u64>], Hdf5Error> {
        if !self.indirect.contains_key(&at) {
            let head = 9 + u64::from(view.sizes.address_bytes) + self.offset_bytes() as u64;
            let entries = u64::from(rows) * self.width;
            let bytes = entries
                .checked_mul(view.sizes.address_bytes.into())
                .and_then(|all| all.checked_add(head));
            let bytes = bytes.ok_or_else(|| Hdf5Error::damaged(at, "an indirect block that is too large"))?;
            self.visits.enter(view, at, bytes)?;
            let block = view.block(at, bytes)?;
            let mut fields = block.checked_fields()?;
            fields.signature(b"FHIB")?;
            self.check_head(&mut fields, offset)?;
            view.keep(16 * entries as usize)?;
            let children = (0..entries).map(|_| fields.address()).collect::<Result<_, _>>()?;
            self.indirect.insert(at, children);
        }
        Ok(&self.indirect[&at])
    }

    /// Version, heap and offset at the head of a block.
    fn check_head(&self, fields: &mut ByteFields<'_>, offset: u64) -> Result<(), Hdf5Error> {
        fields.version(&[0], "blocks of a fractal heap")?;
        let heap = fields.defined_address("a heap")?;
        if heap != self.at || fields.number(self.offset_bytes())? != offset {
            return Err(fields.damaged("a block of another heap or place"));
        }
        Ok(())
    }

    /// Holds a direct block against its checksum, which counts as four zeros in it.
    fn check_direct(&mut self, view: &FileView<'_>, place: HeapBlock) -> Result<(), Hdf5Error> {
        self.visits.enter(view, place.at, place.bytes)?;
        let mut block = view.block(place.at, place.bytes)?;
        let mut fields = block.fields();
        fields.signature(b"FHDB")?;
        self.check_head(&mut fields, place.offset)?;
        let from = block.bytes.len() - fields.left();
        let stored = fields.u32()?;
        block.bytes[from..from + 4].fill(0);
        if lookup3(&block.bytes) != stored {
            return Err(Hdf5Error::damaged(place.at, "a checksum does not match"));
        }
        self.checked.insert(place.at);
        Ok(())
    }

    fn huge(&mut self, view: &FileView<'_>, name: &mut ByteFields<'_>) -> Result<ByteBlock, Hdf5Error> {
        let FieldSizes {
            address_bytes,
            length_bytes,
            ..
        } = view.sizes;
        if self.name_bytes > usize::from(address_bytes + length_bytes) {
            let at = name.defined_address("a huge object")?;
            let bytes = name.length()?;
            return view.block(at, bytes);
        }
        let number = name.number((self.name_bytes - 1).min(length_bytes.into()))?;
        if self.huge.is_none() {
            self.huge = Some(self.huge_objects(view)?);
        }
        let place = self.huge.as_ref().and_then(|objects| objects.get(&number));
        let (at, bytes) = *place.ok_or_else(|| name.damaged(format!("no huge object {number}")))?;
        view.block(at, bytes)
    }

    fn huge_objects(&self, view: &FileView<'_>) -> Result<HashMap<u64, (u64, u64)>, Hdf5Error> {
        let at = self
            .huge_tree
            .ok_or_else(|| Hdf5Error::damaged(self.at, "no huge objects"))?;
        let tree = RecordTree::open(view, at, &[1])?;
        let mut objects = HashMap::new();
        tree.walk(view, &mut |record| {
            view.keep(48)?;
            let place = (record.defined_address("a huge object")?, record.length()?);
            objects.insert(record.length()?, place);
            Ok(())
        })?;
        Ok(objects)
    }
}
