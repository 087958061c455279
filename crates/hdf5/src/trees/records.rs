//! B-trees of version 2 (specification III.A.2): a header `BTHD`, inner nodes `BTIN` of records and children, leaves
//! `BTLF`. All nodes of a tree have one size, from which the sizes of the numbers in them follow.

use crate::base::{ByteFields, FileView, Hdf5Error, Visits};

/// Levels of a tree above its leaves.
const DEPTH_MAX: u16 = 32;
/// Signature, version, type and checksum of a node.
const NODE_OVERHEAD: u64 = 10;

/// A node's place, its records, and the levels below.
#[derive(Clone, Copy)]
struct NodePlace {
    at: u64,
    records: u64,
    depth: u16,
}

/// A tree of records.
pub(crate) struct RecordTree {
    at: u64,
    kind: u8,
    node_bytes: u64,
    pub record_bytes: usize,
    depth: u16,
    /// Nothing where the tree is empty.
    root: Option<u64>,
    root_records: u64,
    records: u64,
    /// Bytes of the number of records of a child.
    count_bytes: usize,
    /// By depth of a node: bytes of the number of all records in the node and below.
    total_bytes: Vec<usize>,
}

/// The function that a walk calls with each record.
type RecordAction<'c> = dyn FnMut(&mut ByteFields<'_>) -> Result<(), Hdf5Error> + 'c;

impl RecordTree {
    /// The tree with its header at `at`, whose records are of one of `kinds`.
    pub fn open(view: &FileView<'_>, at: u64, kinds: &[u8]) -> Result<RecordTree, Hdf5Error> {
        let bytes = 22 + u64::from(view.sizes.address_bytes) + u64::from(view.sizes.length_bytes);
        let block = view.block(at, bytes)?;
        let mut fields = block.checked_fields()?;
        fields.signature(b"BTHD")?;
        fields.version(&[0], "B-trees with records")?;
        let kind = fields.u8()?;
        if !kinds.contains(&kind) {
            return Err(Hdf5Error::damaged(
                at,
                format!("a tree of records of type {kind}, {kinds:?} expected"),
            ));
        }
        let node_bytes = u64::from(fields.u32()?);
        let record_bytes = usize::from(fields.u16()?);
        let depth = fields.u16()?;
        fields.u16()?; // when nodes are split and merged
        let mut tree = RecordTree {
            at,
            kind,
            node_bytes,
            record_bytes,
            depth,
            root: fields.address()?,
            root_records: u64::from(fields.u16()?),
            records: fields.length()?,
            count_bytes: 0,
            total_bytes: vec![0],
        };
        if record_bytes == 0 || depth > DEPTH_MAX {
            return Err(Hdf5Error::damaged(
                at,
                format!("a tree of depth {depth} with records of {record_bytes} bytes"),
            ));
        }
        tree.measure(view)?;
        Ok(tree)
    }

    /// Computes the bytes of the numbers in nodes from the records that a node has at most.
    fn measure(&mut self, view: &FileView<'_>) -> Result<(), Hdf5Error> {
        let small = || Hdf5Error::damaged(self.at, format!("nodes of {} bytes hold no records", self.node_bytes));
        let space = self.node_bytes.checked_sub(NODE_OVERHEAD).ok_or_else(small)?;
        let in_leaf = space / self.record_bytes as u64;
        if in_leaf == 0 {
            return Err(small());
        }
        let count_bytes = bytes_of_number(in_leaf);
        let (mut total, mut total_bytes) = (in_leaf, vec![0]);
        for _ in 0..self.depth {
            let pointer =
                u64::from(view.sizes.address_bytes) + count_bytes as u64 + total_bytes[total_bytes.len() - 1] as u64;
            let inner = space.checked_sub(pointer).ok_or_else(small)? / (self.record_bytes as u64 + pointer);
            if inner == 0 {
                return Err(small());
            }
            total = (inner + 1).saturating_mul(total).saturating_add(inner);
            total_bytes.push(bytes_of_number(total));
        }
        (self.count_bytes, self.total_bytes) = (count_bytes, total_bytes);
        Ok(())
    }

    /// Calls `each` with every record in the order of the tree.
    pub fn walk(&self, view: &FileView<'_>, each: &mut RecordAction<'_>) -> Result<(), Hdf5Error> {
        let mut count = 0;
        if let Some(at) = self.root.filter(|_| self.root_records > 0) {
            let (records, depth) = (self.root_records, self.depth);
            let node = NodePlace { at, records, depth };
            self.node(view, node, &mut Visits::default(), &mut |record| {
                count += 1;
                each(record)
            })?;
        }
        if count != self.records {
            return Err(Hdf5Error::damaged(
                self.at,
                format!("a tree of {count} records, not {}", self.records),
            ));
        }
        Ok(())
    }

    fn node(
        &self,
        view: &FileView<'_>,
        node: NodePlace,
        visits: &mut Visits,
        each: &mut RecordAction<'_>,
    ) -> Result<(), Hdf5Error> {
        let records = (node.records as usize).checked_mul(self.record_bytes);
        let is_inner = node.depth > 0;
        // Pointers of a node to the level below have the numbers of that level.
        let total_bytes = self.total_bytes[usize::from(node.depth.max(1) - 1)];
        let pointer = usize::from(view.sizes.address_bytes) + self.count_bytes + total_bytes;
        let pointers = if is_inner {
            (node.records as usize + 1) * pointer
        } else {
            0
        };
        let used = records.and_then(|bytes| bytes.checked_add(pointers + NODE_OVERHEAD as usize));
        let used = used.map(|bytes| bytes as u64).filter(|bytes| *bytes <= self.node_bytes);
        let used = used.ok_or_else(|| Hdf5Error::damaged(node.at, format!("a node of {} records", node.records)))?;
        // The checksum follows the used bytes.
        visits.enter(view, node.at, used)?;
        let block = view.block(node.at, used)?;
        let mut fields = block.checked_fields()?;
        fields.signature(if is_inner { b"BTIN" } else { b"BTLF" })?;
        fields.version(&[0], "nodes of records")?;
        if fields.u8()? != self.kind {
            return Err(Hdf5Error::damaged(node.at, "a node of another tree"));
        }
        if !is_inner {
            for _ in 0..node.records {
                each(&mut fields.part(self.record_bytes)?)?;
            }
            return Ok(());
        }
        let mut inner = fields.part(node.records as usize * self.record_bytes)?;
        for place in 0..=node.records {
            let at = fields.defined_address("a child")?;
            let records = fields.number(self.count_bytes)?;
            fields.bytes(total_bytes)?;
            let depth = node.depth - 1;
            self.node(view, NodePlace { at, records, depth }, visits, each)?;
            if place < node.records {
                each(&mut inner.part(self.record_bytes)?)?;
            }
        }
        Ok(())
    }
}

/// Bytes that hold numbers up to `largest`.
fn bytes_of_number(largest: u64) -> usize {
    (largest.max(1).ilog2() / 8 + 1) as usize
}
