//! Groups: old ones, of a symbol table (specification III.B to D), and new ones, of links in the header or in a heap
//! (IV.A.2.c and g).

use std::ops::ControlFlow;

use super::attribute::Attribute;
use super::header::{each_message, HeaderMessage, ObjectHeader};
use super::metadata::Metadata;
use crate::base::{ByteFields, FileView, Hdf5Error, Visits};
use crate::heaps::{FractalHeap, LocalHeap};
use crate::messages::{kinds, LinkMessage, LinkTarget};
use crate::trees::{KeyedTree, RecordTree, TreeUse};

/// Type of the records of links by the hashes of their names.
const LINKS_BY_NAME: u8 = 5;
/// Types of the entries of a symbol table, by the kind of their notes.
const IS_GROUP: u32 = 1;
const IS_SOFT_LINK: u32 = 2;

/// A group: its members by name, and its attributes.
#[derive(Clone, Debug)]
pub struct GroupListing {
    /// By name.
    pub members: Vec<GroupMember>,
    /// As those of [`crate::DatasetFacts`] are ordered.
    pub attributes: Vec<Attribute>,
}

/// A name in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The name, which has no slash.
    pub name: String,
    /// The kind of thing that has the name.
    pub kind: MemberKind,
    /// The place of the object's header, counted from the first byte of the file; nothing for links to paths.
    pub address: Option<u64>,
    /// The number in the order of creation, where the group keeps one.
    pub created: Option<u64>,
}

/// The kind of thing that a name of a group stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A group within the group.
    Group,
    /// An array.
    Dataset,
    /// A datatype with a name of its own.
    NamedType,
    /// A path in the file, which may lead to nothing.
    SoftLink(String),
    /// A path in another file, which is never opened.
    ExternalLink {
        /// The name of the other file.
        file: String,
        /// The path in it.
        path: String,
    },
}

/// The kind of the object whose header is at `at`; nothing where its messages are of no known kind.
pub(super) fn kind_at(view: &FileView<'_>, at: u64) -> Result<Option<MemberKind>, Hdf5Error> {
    let mut kind = None;
    each_message(view, at, &mut |head, _| {
        kind = match head.kind {
            kinds::LAYOUT | kinds::DATASPACE => Some(MemberKind::Dataset),
            kinds::SYMBOL_TABLE | kinds::LINK_INFO | kinds::LINK | kinds::GROUP_INFO => Some(MemberKind::Group),
            // Of a dataset as well, which has other messages beside.
            kinds::DATATYPE => Some(MemberKind::NamedType),
            _ => kind.take(),
        };
        let is_certain = matches!(kind, Some(MemberKind::Dataset | MemberKind::Group));
        Ok(if is_certain {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    Ok(kind)
}

/// The members of a group, by name.
pub(super) fn read_members(metadata: &Metadata<'_>, header: &ObjectHeader) -> Result<Vec<GroupMember>, Hdf5Error> {
    let mut members = GroupMembers {
        metadata,
        members: Vec::new(),
    };
    if let Some(table) = header.message(kinds::SYMBOL_TABLE) {
        members.add_table(&mut table.body.fields())?;
    }
    for message in header.messages.iter().filter(|message| message.kind == kinds::LINK) {
        members.add_link(LinkMessage::parse(&mut metadata.body(message)?.fields())?)?;
    }
    if let Some(info) = header.message(kinds::LINK_INFO) {
        members.add_dense(info)?;
    }
    let mut members = members.members;
    members.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(pair) = members.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(Hdf5Error::damaged(
            header.at,
            format!("a group with two members {:?}", pair[0].name),
        ));
    }
    Ok(members)
}

struct GroupMembers<'m, 'a> {
    metadata: &'m Metadata<'a>,
    members: Vec<GroupMember>,
}

impl GroupMembers<'_, '_> {
    fn add(&mut self, member: GroupMember) -> Result<(), Hdf5Error> {
        let target = match &member.kind {
            MemberKind::SoftLink(path) => path.len(),
            MemberKind::ExternalLink { file, path } => file.len() + path.len(),
            _ => 0,
        };
        // Twice, since lists double.
        self.metadata
            .view
            .keep(2 * std::mem::size_of::<GroupMember>() + member.name.len() + target)?;
        self.members.push(member);
        Ok(())
    }

    fn add_object(&mut self, name: String, at: u64, created: Option<u64>) -> Result<(), Hdf5Error> {
        let kind = kind_at(&self.metadata.view, at)?;
        let kind = kind.ok_or_else(|| Hdf5Error::damaged(at, format!("{name:?} is no group, dataset or datatype")))?;
        self.add(GroupMember {
            name,
            kind,
            address: Some(at),
            created,
        })
    }

    fn add_link(&mut self, link: LinkMessage) -> Result<(), Hdf5Error> {
        let LinkMessage { name, created, target } = link;
        let kind = match target {
            LinkTarget::Object(at) => return self.add_object(name, at, created),
            LinkTarget::Soft(path) => MemberKind::SoftLink(path),
            LinkTarget::External { file, path } => MemberKind::ExternalLink { file, path },
        };
        self.add(GroupMember {
            name,
            kind,
            address: None,
            created,
        })
    }

    /// Links in a fractal heap, which a B-tree of version 2 names by the hashes of their names.
    fn add_dense(&mut self, info: &HeaderMessage) -> Result<(), Hdf5Error> {
        let body = self.metadata.body(info)?;
        let mut fields = body.fields();
        fields.version(&[0], "link information")?;
        if fields.u8()? & 1 != 0 {
            fields.u64()?; // the next number in the order of creation
        }
        let heap = fields.address()?;
        let tree = fields.address()?;
        let (Some(heap), Some(tree)) = (heap, tree) else {
            return Ok(());
        };
        let view = &self.metadata.view;
        let mut heap = FractalHeap::open(view, heap)?;
        RecordTree::open(view, tree, &[LINKS_BY_NAME])?.walk(view, &mut |record| {
            record.u32()?; // the hash
            let link = heap.object(view, &mut record.part(7)?)?;
            self.add_link(LinkMessage::parse(&mut link.fields())?)
        })
    }

    /// A symbol table: a B-tree of version 1 over nodes of names.
    fn add_table(&mut self, table: &mut ByteFields<'_>) -> Result<(), Hdf5Error> {
        let view = &self.metadata.view;
        let tree = table.defined_address("the tree of a group")?;
        let heap = LocalHeap::open(view, table.defined_address("the heap of a group")?)?;
        let mut visits = Visits::default();
        let keyed = KeyedTree {
            of: TreeUse::Group,
            key_bytes: view.sizes.length_bytes.into(),
        };
        keyed.walk(view, tree, &mut |_, node| {
            self.add_symbols(view, &heap, node, &mut visits)
        })
    }

    /// A node `SNOD`: entries of a name, an object, and a note on the object.
    fn add_symbols(
        &mut self,
        view: &FileView<'_>,
        heap: &LocalHeap,
        at: u64,
        visits: &mut Visits,
    ) -> Result<(), Hdf5Error> {
        let head = view.block(at, 8)?;
        let mut fields = head.fields();
        fields.signature(b"SNOD")?;
        fields.version(&[1], "symbol table nodes")?;
        fields.u8()?;
        let count = u64::from(fields.u16()?);
        let bytes = count * (24 + 2 * u64::from(view.sizes.address_bytes));
        visits.enter(view, at, 8 + bytes)?;
        let block = view.block(at + 8, bytes)?;
        let mut fields = block.fields();
        for _ in 0..count {
            let name = heap.text(fields.number(view.sizes.address_bytes.into())?)?;
            let object = fields.address()?;
            let note = fields.u32()?;
            fields.u32()?;
            let mut scratch = fields.part(16)?;
            if note == IS_SOFT_LINK {
                let path = heap.text(scratch.u32()?.into())?;
                self.add(GroupMember {
                    name,
                    kind: MemberKind::SoftLink(path),
                    address: None,
                    created: None,
                })?;
                continue;
            }
            let address = object.ok_or_else(|| fields.damaged(format!("{name:?} has no address")))?;
            if note == IS_GROUP {
                let kind = MemberKind::Group;
                self.add(GroupMember {
                    name,
                    kind,
                    address: Some(address),
                    created: None,
                })?;
            } else {
                self.add_object(name, address, None)?;
            }
        }
        Ok(())
    }
}
