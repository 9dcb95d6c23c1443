//! Bytes to values, strictly: each value has one form, and nothing may be left over.

use crate::encode::check_length;
use crate::error::{Error, Reason};
use crate::layout::{Layout, Type, COUNT_BYTES, LENGTH_BYTES};
use crate::value::Value;

/// The values of a record, in the order of its fields. All bytes must belong to it.
pub fn decode(layout: &'static Layout, bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let mut reader = Reader::new(bytes);
    let values = reader.record(layout).map_err(|error| error.of(layout.name))?;
    reader.finish().map_err(|error| error.of(layout.name))?;
    Ok(values)
}

/// The bytes that are not read yet.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// How many bytes are not read yet.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    /// Refuses bytes left over.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        match self.left() {
            0 => Ok(()),
            count => Err(Reason::LeftOver { count }.into()),
        }
    }

    pub(crate) fn record(&mut self, layout: &Layout) -> Result<Vec<Value>, Error> {
        layout
            .fields
            .iter()
            .map(|(name, kind)| self.value(kind).map_err(|error| error.inside(name)))
            .collect()
    }

    pub(crate) fn value(&mut self, kind: &Type) -> Result<Value, Error> {
        Ok(match kind {
            Type::Flag => Value::Flag(self.flag()?),
            Type::Bytes { max } => Value::Bytes(self.bytes(*max)?.to_vec()),
            Type::Text { max } => Value::Text(self.text(*max)?),
            Type::List(item, max) => Value::List(self.list(item, *max)?),
            Type::Option(inner) => {
                Value::Option(if self.flag()? { Some(Box::new(self.value(inner)?)) } else { None })
            }
            Type::Record(layout) => Value::Record(self.record(layout)?),
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => {
                Value::Number(self.number(kind.min_bytes())?)
            }
            fixed => Value::Bytes(self.fixed(fixed)?.to_vec()),
        })
    }

    /// Bytes of a fixed length in their one form.
    pub(crate) fn fixed(&mut self, kind: &Type) -> Result<&'a [u8], Error> {
        let bytes = self.take(kind.min_bytes())?;
        kind.check_bytes(bytes)?;
        Ok(bytes)
    }

    fn take(&mut self, needed: usize) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self
            .0
            .split_at_checked(needed)
            .ok_or(Reason::TooShort { needed, left: self.left() })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self, size: usize) -> Result<u64, Reason> {
        let mut word = [0; 8];
        word[..size].copy_from_slice(self.take(size)?);
        Ok(u64::from_le_bytes(word))
    }

    fn flag(&mut self) -> Result<bool, Reason> {
        match self.number(1)? as u8 {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(Reason::NotAFlag { byte }),
        }
    }

    fn bytes(&mut self, max: u32) -> Result<&'a [u8], Reason> {
        let length = self.number(LENGTH_BYTES)? as usize;
        check_length(length, max as usize)?;
        self.take(length)
    }

    fn text(&mut self, max: u32) -> Result<String, Reason> {
        let text = std::str::from_utf8(self.bytes(max)?).map_err(|_| Reason::NotText)?;
        Ok(text.to_owned())
    }

    fn list(&mut self, item: &Type, max: u16) -> Result<Vec<Value>, Error> {
        let count = self.number(COUNT_BYTES)? as usize;
        check_length(count, max.into())?;
        // Before anything is allocated: a count that promises more than there is.
        let (needed, left) = (count * item.min_bytes(), self.left());
        if needed > left {
            return Err(Reason::TooShort { needed, left }.into());
        }
        (0..count).map(|index| self.value(item).map_err(|error| error.at(index))).collect()
    }
}
