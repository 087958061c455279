//! Messages of object headers, each as one type: what an object is made of.
//!
//! Uses `base`. Start with `datatype.rs` and `layout.rs`; the others are a few fields each.

mod dataspace;
mod datatype;
mod datatype_parts;
mod fill;
mod filters;
mod layout;
mod link;

pub(crate) use dataspace::Dataspace;
pub use datatype::{
    BitRange, ByteOrder, Charset, CompoundField, Datatype, EnumerationMember, FloatFormat, ReferenceKind, TextPadding,
    TypeClass,
};
pub(crate) use datatype_parts::parse_datatype;
pub(crate) use fill::{parse_fill, parse_old_fill};
pub(crate) use filters::parse_filters;
pub use filters::Filter;
pub(crate) use layout::{ChunkIndexKind, ChunkLayout, LayoutMessage};
pub(crate) use link::{LinkMessage, LinkTarget};

/// Axes of a dataspace, as the format has it.
pub(crate) const AXES_MAX: usize = 32;

/// The numbers of the messages.
pub(crate) mod kinds {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL: u16 = 0x04;
    pub(crate) const FILL: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL_FILES: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const GROUP_INFO: u16 = 0x0a;
    pub(crate) const FILTERS: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const SHARED_TABLE: u16 = 0x0f;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const DRIVER: u16 = 0x14;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
    /// The last number that the specification has.
    pub(crate) const LAST: u16 = 0x18;
}
