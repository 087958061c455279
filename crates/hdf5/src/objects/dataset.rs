//! Datasets: shape, type, place and filters, held against each other.

use super::attribute::{read_attributes, Attribute};
use super::header::ObjectHeader;
use super::metadata::Metadata;
use crate::base::{FieldSizes, FileView, Hdf5Error};
use crate::messages::{
    kinds, parse_fill, parse_filters, parse_old_fill, ChunkIndexKind, ChunkLayout, Dataspace, Datatype, Filter,
    LayoutMessage,
};

/// The class of dimension scales, an attribute.
pub(super) const SCALE_CLASS: &str = "DIMENSION_SCALE";

/// All that the metadata of a dataset say.
///
/// **Invariants.** The shape's elements times the bytes of an element fit in 64 bits, as do a chunk's; a contiguous
/// place lies in the file and a compact one has all elements; a fill value has the bytes of an element.
#[derive(Clone, Debug)]
pub struct DatasetFacts {
    /// A dataspace without even one element; the shape has no axes then.
    pub is_null: bool,
    /// Elements along each axis.
    pub shape: Vec<u64>,
    /// The largest shape; nothing for an axis without an end.
    pub maximum: Vec<Option<u64>>,
    /// The type of an element as stored.
    pub datatype: Datatype,
    /// The place of the data.
    pub layout: DataLayout,
    /// In the order in which they are applied to chunks that are written.
    pub filters: Vec<Filter>,
    /// The bytes of an element that was never written; nothing for zeros. Libraries such as netCDF set one even where
    /// no attribute `_FillValue` says so. Of a type of variable length the bytes are a place in the file's heap.
    pub fill: Option<Vec<u8>>,
    /// In the order of creation where the file keeps one, else in the order of the header, or by name where the file
    /// has many.
    pub attributes: Vec<Attribute>,
    /// The names of the axes, of dimension scales; nothing for an axis without one.
    pub dimensions: Vec<Option<String>>,
    /// The dataset is a dimension scale itself.
    pub is_scale: bool,
}

/// The place of the data of a dataset.
#[derive(Clone, Debug)]
pub enum DataLayout {
    /// The data are part of the metadata.
    Compact {
        /// The bytes of all elements in C order.
        bytes: Vec<u8>,
    },
    /// One range of the file from `offset` on; nothing while no element has been stored.
    Contiguous {
        /// The first byte, counted from that of the file.
        offset: Option<u64>,
        /// Bytes of all elements in C order.
        bytes: u64,
    },
    /// Rectangles, each stored and filtered alone.
    Chunked(StoredChunks),
}

/// Chunks of a dataset; [`crate::chunks`] says where they are.
#[derive(Clone, Debug)]
pub struct StoredChunks {
    /// Elements of a chunk along each axis. Chunks at the end of an axis are stored whole.
    pub shape: Vec<u64>,
    /// Bytes of a chunk before filters.
    pub bytes: u64,
    /// Chunks that leave the shape are stored without filters, whatever their masks say.
    pub edges_unfiltered: bool,
    pub(crate) at: Option<u64>,
    pub(crate) index: ChunkIndexKind,
    pub(crate) sizes: FieldSizes,
}

impl DatasetFacts {
    /// All but the names of dimensions.
    pub(super) fn read(metadata: &Metadata<'_>, header: &ObjectHeader) -> Result<DatasetFacts, Hdf5Error> {
        if header.message(kinds::EXTERNAL_FILES).is_some() {
            return Err(Hdf5Error::unsupported("a dataset whose data are in external files"));
        }
        let body = metadata.body(header.required(kinds::DATATYPE, "a datatype")?)?;
        let datatype = metadata.datatype(&body)?;
        let body = metadata.body(header.required(kinds::DATASPACE, "a dataspace")?)?;
        let dataspace = Dataspace::parse(&mut body.fields())?;
        let bytes = dataspace
            .elements()
            .and_then(|elements| elements.checked_mul(datatype.bytes.into()));
        let bytes = bytes.ok_or_else(|| {
            body.fields()
                .damaged(format!("shape {:?} of {datatype}", dataspace.shape))
        })?;
        let filters = match header.message(kinds::FILTERS) {
            Some(message) => parse_filters(&mut metadata.body(message)?.fields())?,
            None => Vec::new(),
        };
        let body = metadata.body(header.required(kinds::LAYOUT, "a layout")?)?;
        let layout = LayoutMessage::parse(&mut body.fields())?;
        let layout = held_layout(&metadata.view, header.at, layout, &dataspace, &datatype, bytes)?;
        let attributes = read_attributes(metadata, header)?;
        Ok(DatasetFacts {
            is_null: dataspace.is_null,
            fill: fill_value(metadata, header, &datatype)?,
            shape: dataspace.shape,
            maximum: dataspace.maximum,
            datatype,
            layout,
            filters,
            dimensions: Vec::new(),
            is_scale: text_of(&attributes, "CLASS") == Some(SCALE_CLASS),
            attributes,
        })
    }

    /// Chunks that leave the shape are stored without filters.
    pub fn edges_unfiltered(&self) -> bool {
        matches!(&self.layout, DataLayout::Chunked(chunks) if chunks.edges_unfiltered)
    }
}

/// The text of an attribute.
pub(super) fn text_of<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes
        .iter()
        .find(|attribute| attribute.name == name)?
        .values
        .text()
}

fn fill_value(
    metadata: &Metadata<'_>,
    header: &ObjectHeader,
    datatype: &Datatype,
) -> Result<Option<Vec<u8>>, Hdf5Error> {
    let value = match (header.message(kinds::FILL), header.message(kinds::OLD_FILL)) {
        (Some(message), _) => parse_fill(&mut metadata.body(message)?.fields())?,
        (None, Some(message)) => parse_old_fill(&mut metadata.body(message)?.fields())?,
        (None, None) => None,
    };
    if let Some(value) = value.as_ref().filter(|value| value.len() != datatype.bytes as usize) {
        let reason = format!(
            "a fill value of {} bytes for elements of {}",
            value.len(),
            datatype.bytes
        );
        return Err(Hdf5Error::damaged(header.at, reason));
    }
    Ok(value)
}

/// A layout held against the file, and against the shape and type that take `bytes`.
fn held_layout(
    view: &FileView<'_>,
    at: u64,
    layout: LayoutMessage,
    dataspace: &Dataspace,
    datatype: &Datatype,
    bytes: u64,
) -> Result<DataLayout, Hdf5Error> {
    let short = |stored: u64| Hdf5Error::damaged(at, format!("{bytes} bytes of elements in {stored}"));
    match layout {
        LayoutMessage::Compact(mut data) => {
            // Longer ones have space behind the elements.
            if (data.len() as u64) < bytes {
                return Err(short(data.len() as u64));
            }
            data.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
            Ok(DataLayout::Compact { bytes: data })
        }
        LayoutMessage::Contiguous {
            at: offset,
            bytes: stored,
        } => {
            if let Some(stored) = stored.filter(|stored| offset.is_some() && *stored < bytes) {
                return Err(short(stored));
            }
            if let Some(offset) = offset {
                view.check(offset, bytes)?;
            }
            Ok(DataLayout::Contiguous { offset, bytes })
        }
        LayoutMessage::Chunked(chunks) => held_chunks(view, at, chunks, dataspace, datatype).map(DataLayout::Chunked),
        LayoutMessage::Virtual => Err(Hdf5Error::unsupported("a virtual dataset")),
    }
}

fn held_chunks(
    view: &FileView<'_>,
    at: u64,
    chunks: ChunkLayout,
    dataspace: &Dataspace,
    datatype: &Datatype,
) -> Result<StoredChunks, Hdf5Error> {
    let ChunkLayout {
        shape,
        element_bytes,
        edges_unfiltered,
        at: index_at,
        index,
    } = chunks;
    let bytes = shape
        .iter()
        .try_fold(u64::from(datatype.bytes), |product, side| product.checked_mul(*side));
    let bytes = bytes.filter(|bytes| *bytes > 0 && shape.len() == dataspace.shape.len());
    // Elements of variable length have other sizes in memory, but the same in the file.
    let bytes = bytes.filter(|_| element_bytes == u64::from(datatype.bytes));
    let error = || {
        let of = format!(
            "of elements of {element_bytes} bytes, shape {:?} of {datatype}",
            dataspace.shape
        );
        Hdf5Error::damaged(at, format!("chunks {shape:?} {of}"))
    };
    let bytes = bytes.ok_or_else(error)?;
    Ok(StoredChunks {
        bytes,
        shape,
        edges_unfiltered,
        at: index_at,
        index,
        sizes: view.sizes,
    })
}
