//! The dataspace message (specification IV.A.2.b): a shape.

use super::AXES_MAX;
use crate::base::{ByteFields, Hdf5Error};

/// A shape, with the largest that it may grow to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dataspace {
    /// No element at all, not even one; the shape is empty then.
    pub is_null: bool,
    pub shape: Vec<u64>,
    /// Nothing for an axis without an end.
    pub maximum: Vec<Option<u64>>,
}

impl Dataspace {
    pub fn parse(fields: &mut ByteFields<'_>) -> Result<Dataspace, Hdf5Error> {
        let version = fields.version(&[1, 2], "dataspaces")?;
        let axes = usize::from(fields.u8()?);
        if axes > AXES_MAX {
            return Err(fields.damaged(format!("{axes} axes, {AXES_MAX} at most")));
        }
        let flags = fields.u8()?;
        let mut is_null = false;
        if version == 1 {
            fields.bytes(5)?;
        } else {
            is_null = match (fields.u8()?, axes) {
                (0, 0) | (1, _) => false,
                (2, 0) => true,
                (kind, _) => return Err(fields.damaged(format!("a dataspace of kind {kind} with {axes} axes"))),
            };
        }
        let shape = (0..axes).map(|_| fields.length()).collect::<Result<Vec<u64>, _>>()?;
        let maximum = if flags & 1 == 0 {
            shape.iter().copied().map(Some).collect()
        } else {
            (0..axes)
                .map(|_| fields.length_or_none())
                .collect::<Result<Vec<_>, _>>()?
        };
        if shape
            .iter()
            .zip(&maximum)
            .any(|(length, most)| most.is_some_and(|most| most < *length))
        {
            return Err(fields.damaged(format!("shape {shape:?} is beyond its maximum {maximum:?}")));
        }
        Ok(Dataspace {
            is_null,
            shape,
            maximum,
        })
    }

    /// Elements, where 64 bits hold the number.
    pub fn elements(&self) -> Option<u64> {
        if self.is_null {
            return Some(0);
        }
        // A product with an empty axis is 0, however long the others are.
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape
            .iter()
            .try_fold(1u64, |product, length| product.checked_mul(*length))
    }
}
