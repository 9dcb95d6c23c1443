//! The container of iden3's binary files, version 1.
//!
//! Four letters, the version and the number of sections (4 bytes each); a section is its type (4
//! bytes), its length (8 bytes) and its contents. Integers are little-endian. A file is read only
//! if every byte belongs to exactly one section and no section is there twice.

use std::collections::BTreeMap;

use super::error::Error;

const VERSION: u32 = 1;

/// The sections of a file.
pub struct Sections<'a>(BTreeMap<u32, &'a [u8]>);

impl<'a> Sections<'a> {
    /// Splits a file into its sections.
    pub fn read(kind: &'static str, bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.get(..4) != Some(kind.as_bytes()) {
            return Err(Error::AnotherKind { expected: kind });
        }
        let mut reader = Reader(&bytes[4..]);
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let mut sections = BTreeMap::new();
        for _ in 0..reader.u32()? {
            let number = reader.u32()?;
            let length = u64::from_le_bytes(reader.array()?);
            let contents = reader.take(usize::try_from(length).map_err(|_| Error::Truncated)?)?;
            if sections.insert(number, contents).is_some() {
                return Err(Error::SectionTwice(number));
            }
        }
        if !reader.0.is_empty() {
            return Err(Error::TrailingBytes);
        }
        Ok(Self(sections))
    }

    /// The contents of a section that must be there.
    pub fn get(&self, number: u32) -> Result<&'a [u8], Error> {
        self.0.get(&number).copied().ok_or(Error::SectionMissing(number))
    }

    /// The contents of a section of a known length.
    pub fn sized(&self, number: u32, length: usize) -> Result<&'a [u8], Error> {
        let contents = self.get(number)?;
        if contents.len() == length {
            return Ok(contents);
        }
        Err(Error::SectionLength(number))
    }

    /// Whether a section is there.
    pub fn has(&self, number: u32) -> bool {
        self.0.contains_key(&number)
    }

    /// Refuses a section that is not among these.
    pub fn only(&self, known: &[u32]) -> Result<(), Error> {
        match self.0.keys().find(|number| !known.contains(number)) {
            Some(number) => Err(Error::SectionUnknown(*number)),
            None => Ok(()),
        }
    }
}

/// Puts sections into a file, in their order.
pub fn write(kind: &'static str, sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = kind.as_bytes().to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((sections.len() as u32).to_le_bytes());
    for (number, contents) in sections {
        bytes.extend(number.to_le_bytes());
        bytes.extend((contents.len() as u64).to_le_bytes());
        bytes.extend(contents);
    }
    bytes
}

/// Takes bytes from the front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    /// The next number of 4 bytes.
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }
}
