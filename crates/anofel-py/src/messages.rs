//! `anofel._core.messages`: the bytes of every message on the board.
//!
//! Numbers are `int`, flags `bool`, texts `str`, lists and records tuples, an option is a value or
//! `None`, everything else is `bytes`.

use anofel_messages::{find, Error, Layout, Reason, Type, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyList, PyString, PyTuple};

use crate::error::InvalidInput;

/// The layout with a name, which is the caller's and not a message's.
fn layout_of(name: &str) -> PyResult<&'static Layout> {
    find(name).ok_or_else(|| InvalidInput::new_err(format!("there is no layout {name:?}")))
}

/// The values of a record, as the encoder takes them.
fn record_from(layout: &Layout, object: &Bound<'_, PyAny>) -> Result<Vec<Value>, Error> {
    let values = items(object).ok_or(Reason::Sort { expected: "a record" })?;
    let (expected, found) = (layout.fields.len(), values.len());
    if expected != found {
        return Err(Reason::Fields { expected, found }.into());
    }
    let fields = layout.fields.iter().zip(&values);
    fields
        .map(|((name, kind), value)| value_from(kind, value).map_err(|error| error.inside(name)))
        .collect()
}

/// One value, as the encoder takes it. The encoder checks ranges, lengths and forms.
fn value_from(kind: &Type, object: &Bound<'_, PyAny>) -> Result<Value, Error> {
    match kind {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => number_from(kind, object),
        Type::Flag => {
            object.cast::<PyBool>().map(|flag| Value::Flag(flag.is_true())).map_err(|_| wrong(kind))
        }
        Type::Text { .. } => text_from(kind, object),
        Type::List(item, _) => list_from(kind, item, object),
        Type::Option(_) if object.is_none() => Ok(Value::Option(None)),
        Type::Option(inner) => Ok(Value::Option(Some(Box::new(value_from(inner, object)?)))),
        Type::Record(layout) => record_from(layout, object).map(Value::Record),
        _ => {
            let bytes = object.cast::<PyBytes>().map_err(|_| wrong(kind))?;
            Ok(Value::Bytes(bytes.as_bytes().to_vec()))
        }
    }
}

fn wrong(kind: &Type) -> Error {
    Reason::Sort { expected: kind.sort() }.into()
}

fn number_from(kind: &Type, object: &Bound<'_, PyAny>) -> Result<Value, Error> {
    // In Python a bool is an int too.
    let (Some((_, max)), true, false) =
        (kind.number(), object.is_instance_of::<PyInt>(), object.is_instance_of::<PyBool>())
    else {
        return Err(wrong(kind));
    };
    object.extract().map(Value::Number).map_err(|_| Reason::OutOfRange { max }.into())
}

fn text_from(kind: &Type, object: &Bound<'_, PyAny>) -> Result<Value, Error> {
    let text = object.cast::<PyString>().map_err(|_| wrong(kind))?;
    // A Python string may hold lone surrogates, which UTF-8 has no bytes for.
    text.extract().map(Value::Text).map_err(|_| Reason::NotText.into())
}

fn list_from(kind: &Type, item: &Type, object: &Bound<'_, PyAny>) -> Result<Value, Error> {
    let values = items(object).ok_or_else(|| wrong(kind))?;
    let values = values.iter().enumerate();
    values
        .map(|(index, value)| value_from(item, value).map_err(|error| error.at(index)))
        .collect::<Result<_, _>>()
        .map(Value::List)
}

/// The items of a tuple or a list.
fn items<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return Some(tuple.iter().collect());
    }
    object.cast::<PyList>().ok().map(|list| list.iter().collect())
}

/// One decoded value for Python.
fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Flag(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::List(values) | Value::Record(values) => tuple(py, values)?.into_any(),
        Value::Option(None) => py.None().into_bound(py),
        Value::Option(Some(value)) => to_python(py, value)?,
    })
}

fn tuple<'py>(py: Python<'py>, values: &[Value]) -> PyResult<Bound<'py, PyTuple>> {
    let values: Vec<_> =
        values.iter().map(|value| to_python(py, value)).collect::<PyResult<_>>()?;
    PyTuple::new(py, values)
}

/// The bytes of every message on the board.
#[pyo3::pymodule]
pub mod messages {
    use super::*;
    use crate::error::Error as Failure;
    use anofel_messages as core;

    /// A posting, taken apart.
    #[pyclass(frozen, get_all)]
    struct DecodedPosting {
        /// The number of its kind.
        kind: u8,
        /// A message key, or a chain of certificates.
        author: Py<PyAny>,
        /// The values of the body, in the order of its fields.
        body: Py<PyTuple>,
        signature: Py<PyBytes>,
    }

    /// Encode the values of a record, in the order of its fields.
    #[pyfunction]
    fn encode<'py>(
        py: Python<'py>,
        layout: &str,
        fields: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let layout = layout_of(layout)?;
        let encoded = record_from(layout, fields)
            .map_err(|error| error.of(layout.name))
            .and_then(|values| py.detach(|| core::encode(layout, &values)));
        Ok(PyBytes::new(py, &encoded.map_err(Failure::from)?))
    }

    /// Decode a record strictly; raise `MalformedMessage`.
    #[pyfunction]
    fn decode<'py>(py: Python<'py>, layout: &str, data: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        let layout = layout_of(layout)?;
        let values = py.detach(|| core::decode(layout, data)).map_err(Failure::from)?;
        tuple(py, &values)
    }

    /// Encode everything of a posting that stands before its signature.
    #[pyfunction]
    fn encode_posting<'py>(
        py: Python<'py>,
        kind: &Bound<'py, PyAny>,
        author: &Bound<'py, PyAny>,
        body: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let number: Option<u8> = kind.extract().ok();
        let kind = number
            .and_then(core::kind)
            .ok_or_else(|| InvalidInput::new_err(format!("there is no posting of kind {kind}")))?;
        let encoded = values_of_posting(kind, author, body)
            .map_err(|error| error.of(kind.body.name))
            .and_then(|(author, body)| py.detach(|| core::encode_posting(kind, &author, &body)));
        Ok(PyBytes::new(py, &encoded.map_err(Failure::from)?))
    }

    fn values_of_posting(
        kind: &core::Kind,
        author: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
    ) -> Result<(Value, Vec<Value>), Error> {
        let author = value_from(&kind.author.layout_type(), author)
            .map_err(|error| error.inside("author"))?;
        Ok((author, record_from(kind.body, body)?))
    }

    /// Decode a whole posting strictly; raise `MalformedMessage`.
    #[pyfunction]
    fn decode_posting(py: Python<'_>, data: &[u8]) -> PyResult<DecodedPosting> {
        let posting = py.detach(|| core::decode_posting(data)).map_err(Failure::from)?;
        Ok(DecodedPosting {
            kind: posting.kind.number,
            author: to_python(py, &posting.author)?.unbind(),
            body: tuple(py, &posting.body)?.unbind(),
            signature: PyBytes::new(py, &posting.signature).unbind(),
        })
    }

    /// Name and type of each field of a layout.
    #[pyfunction]
    fn layout(name: &str) -> PyResult<Vec<(&'static str, String)>> {
        let fields = layout_of(name)?.fields;
        Ok(fields.iter().map(|(name, kind)| (*name, kind.to_string())).collect())
    }

    /// The names of all layouts.
    #[pyfunction]
    fn layouts() -> Vec<&'static str> {
        core::LAYOUTS.iter().map(|layout| layout.name).collect()
    }

    /// Number, name and kind of author of each kind of posting.
    #[pyfunction]
    fn kinds() -> Vec<(u8, &'static str, &'static str)> {
        core::KINDS.iter().map(|kind| (kind.number, kind.body.name, kind.author.name())).collect()
    }
}
