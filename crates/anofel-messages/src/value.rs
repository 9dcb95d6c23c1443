//! The values of fields.

/// The value of a field; its type says which sort it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number of any size.
    Number(u64),
    /// A flag.
    Flag(bool),
    /// Digests, field elements, keys, points, signatures, proofs and bytes.
    Bytes(Vec<u8>),
    /// A text.
    Text(String),
    /// The items of a list.
    List(Vec<Value>),
    /// A value or none.
    Option(Option<Box<Value>>),
    /// The values of a record, in the order of its fields.
    Record(Vec<Value>),
}
