//! Values to bytes. What [`crate::decode`] would refuse is not written either.

use crate::error::{Error, Reason};
use crate::layout::{Layout, Type, COUNT_BYTES, LENGTH_BYTES};
use crate::value::Value;

/// The bytes of a record whose values stand in the order of its fields.
pub fn encode(layout: &'static Layout, values: &[Value]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    write_record(&mut out, layout, values).map_err(|error| error.of(layout.name))?;
    Ok(out)
}

fn write_record(out: &mut Vec<u8>, layout: &Layout, values: &[Value]) -> Result<(), Error> {
    let (expected, found) = (layout.fields.len(), values.len());
    if expected != found {
        return Err(Reason::Fields { expected, found }.into());
    }
    for ((name, kind), value) in layout.fields.iter().zip(values) {
        write_value(out, kind, value).map_err(|error| error.inside(name))?;
    }
    Ok(())
}

/// Writes one value.
pub(crate) fn write_value(out: &mut Vec<u8>, kind: &Type, value: &Value) -> Result<(), Error> {
    match (kind, value) {
        (Type::Flag, Value::Flag(flag)) => out.push(u8::from(*flag)),
        (Type::Bytes { max }, Value::Bytes(bytes)) => write_bytes(out, bytes, *max)?,
        (Type::Text { max }, Value::Text(text)) => write_bytes(out, text.as_bytes(), *max)?,
        (Type::List(item, max), Value::List(values)) => write_list(out, item, *max, values)?,
        (Type::Option(_), Value::Option(None)) => out.push(0),
        (Type::Option(inner), Value::Option(Some(value))) => {
            out.push(1);
            write_value(out, inner, value)?;
        }
        (Type::Record(layout), Value::Record(values)) => write_record(out, layout, values)?,
        (kind, Value::Number(number)) => write_number(out, kind, *number)?,
        (kind, Value::Bytes(bytes)) => write_fixed(out, kind, bytes)?,
        (kind, _) => return Err(Reason::Sort { expected: kind.sort() }.into()),
    }
    Ok(())
}

fn write_number(out: &mut Vec<u8>, kind: &Type, number: u64) -> Result<(), Reason> {
    let (size, max) = kind.number().ok_or(Reason::Sort { expected: kind.sort() })?;
    if number > max {
        return Err(Reason::OutOfRange { max });
    }
    out.extend_from_slice(&number.to_le_bytes()[..size]);
    Ok(())
}

fn write_fixed(out: &mut Vec<u8>, kind: &Type, bytes: &[u8]) -> Result<(), Reason> {
    let expected = kind.fixed_bytes().ok_or(Reason::Sort { expected: kind.sort() })?;
    if bytes.len() != expected {
        return Err(Reason::Length { expected, found: bytes.len() });
    }
    kind.check_bytes(bytes)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8], max: u32) -> Result<(), Reason> {
    check_length(bytes.len(), max as usize)?;
    out.extend_from_slice(&bytes.len().to_le_bytes()[..LENGTH_BYTES]);
    out.extend_from_slice(bytes);
    Ok(())
}

fn write_list(out: &mut Vec<u8>, item: &Type, max: u16, values: &[Value]) -> Result<(), Error> {
    check_length(values.len(), max.into())?;
    out.extend_from_slice(&values.len().to_le_bytes()[..COUNT_BYTES]);
    for (index, value) in values.iter().enumerate() {
        write_value(out, item, value).map_err(|error| error.at(index))?;
    }
    Ok(())
}

/// Refuses a length or count above the layout's.
pub(crate) fn check_length(length: usize, max: usize) -> Result<(), Reason> {
    if length > max {
        Err(Reason::TooLong { length, max })
    } else {
        Ok(())
    }
}
