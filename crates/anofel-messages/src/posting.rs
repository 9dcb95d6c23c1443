//! Postings: a version, a kind, an author, a body and the author's signature over all of it.

use crate::decode::Reader;
use crate::encode::{encode, write_value};
use crate::error::{Error, Reason};
use crate::layout::Type;
use crate::table::{kind, Kind};
use crate::value::Value;

/// The version of every posting.
pub const VERSION: u8 = 1;

/// What error messages call a posting whose kind is not known.
const NAME: &str = "Posting";

/// A decoded posting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    /// What it is.
    pub kind: &'static Kind,
    /// Who signed it: a list of certificates or a message key.
    pub author: Value,
    /// The values of the body, in the order of its fields.
    pub body: Vec<Value>,
    /// The signature.
    pub signature: Vec<u8>,
    /// How many bytes stand before the signature.
    pub signed_length: usize,
}

/// All bytes of a posting that stand before its signature.
pub fn encode_posting(kind: &Kind, author: &Value, body: &[Value]) -> Result<Vec<u8>, Error> {
    let mut out = vec![VERSION, kind.number];
    write_value(&mut out, &kind.author.layout_type(), author)
        .map_err(|error| error.inside("author").of(kind.body.name))?;
    out.extend(encode(kind.body, body)?);
    Ok(out)
}

/// Reads a whole posting. All bytes must belong to it.
pub fn decode_posting(bytes: &[u8]) -> Result<Posting, Error> {
    let mut reader = Reader::new(bytes);
    let kind = read_kind(&mut reader).map_err(|error| error.of(NAME))?;
    read_rest(&mut reader, kind, bytes.len()).map_err(|error| error.of(kind.body.name))
}

fn read_kind(reader: &mut Reader<'_>) -> Result<&'static Kind, Error> {
    let found = read_byte(reader).map_err(|error| error.inside("version"))?;
    if found != VERSION {
        return Err(Error::new(Reason::Version { found, known: VERSION }).inside("version"));
    }
    let found = read_byte(reader).map_err(|error| error.inside("kind"))?;
    kind(found).ok_or_else(|| Error::new(Reason::Kind { found }).inside("kind"))
}

fn read_byte(reader: &mut Reader<'_>) -> Result<u8, Error> {
    reader.number(1).map(|number| number as u8).map_err(Error::new)
}

fn read_rest(
    reader: &mut Reader<'_>,
    kind: &'static Kind,
    length: usize,
) -> Result<Posting, Error> {
    let author =
        reader.value(&kind.author.layout_type()).map_err(|error| error.inside("author"))?;
    let body = reader.record(kind.body)?;
    let signed_length = length - reader.left();
    let signature =
        reader.fixed(&Type::Signature).map_err(|error| error.inside("signature"))?.to_vec();
    reader.finish()?;
    Ok(Posting { kind, author, body, signature, signed_length })
}
