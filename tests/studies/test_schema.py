import pytest

from anofel.errors import InvalidInput
from anofel.sections import Section
from anofel.studies.catalogue import STUDIES, study_named
from anofel.studies.schema import TableSchema, read_schema, schema_digest
from anofel.studies.table import RowDoesNotFit, encode_table, parse_csv
from tests.patients import DOCUMENT, make_table, make_task

SCHEMA = make_task().schema
HEADER = "name,age,pressure,stage,note,ill"


def parse(*rows, header=HEADER):
    return parse_csv("\n".join([header, *rows]).splitlines(keepends=True))


def test_features_are_exact_integers():
    data = encode_table(parse("Ann,75,160,II,x,yes", "Bob,50,,I,,no", "Cy,0,999,III,,no"), SCHEMA)
    one = 1 << 16
    assert SCHEMA.feature_names == ("age", "pressure", "pressure missing", "stage = II", "stage = III")
    assert data.features.tolist() == [
        [one, one, 0, one, 0],
        [0, 0, one, 0, 0],
        [-2 * one, int(3.25 * one), 0, 0, one],
    ]
    assert data.labels.tolist() == [1, 0, 0]
    assert data.inputs()[0].tolist() == [1.0, 1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("row", "line", "column", "reason"),
    [
        ("Ann,121,100,I,,no", 3, "age", "121 years lies outside 0 … 120"),
        ("Ann,,100,I,,no", 3, "age", "missing"),
        ("Ann,old,100,I,,no", 3, "age", "'old' is not a number"),
        ("Ann,inf,100,I,,no", 3, "age", "not a number"),
        ("Ann,50,100,IV,,no", 3, "stage", "'IV' is not among"),
        ("Ann,50,100,I,,maybe", 3, "ill", "'maybe' is not a value"),
        ("Ann,50,100,I", 3, "note", "4 cells"),
    ],
)
def test_row_that_does_not_fit_gets_line_column_and_reason(row, line, column, reason):
    with pytest.raises(RowDoesNotFit, match=reason) as caught:
        encode_table(parse("Eve,50,100,I,,no", row), SCHEMA)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"Line {line}, column '{column}'" in str(caught.value)


def test_lines_are_counted_in_the_file_not_in_rows():
    with pytest.raises(RowDoesNotFit) as caught:
        encode_table(parse('"Ann\nMarie",50,100,I,,no', "Bob,500,100,I,,no"), SCHEMA)
    assert caught.value.line == 4


def test_unknown_column_is_refused():
    with pytest.raises(InvalidInput, match="does not know column 'ssn'"):
        encode_table(parse("Ann,50,100,I,,no,123", header=HEADER + ",ssn"), SCHEMA)


def test_missing_column_is_refused():
    with pytest.raises(InvalidInput, match="needs column 'age'"):
        encode_table(parse("Ann,100,I,,no", header="name,pressure,stage,note,ill"), SCHEMA)


def test_repeated_or_absent_header_is_refused():
    for header in ("age,age", ""):
        with pytest.raises(InvalidInput, match="name every column once"):
            parse_csv([header])


def test_identifying_columns_leave_no_trace():
    first, second = make_table(20), make_table(20)
    renamed = type(second)(
        {**second.columns, "name": ["Someone else"] * 20, "note": ["secret"] * 20}, second.lines
    )
    without = {name: cells for name, cells in first.columns.items() if name != "name"}
    encoded = [encode_table(table, SCHEMA) for table in (first, renamed, type(first)(without, first.lines))]
    assert all((data.features == encoded[0].features).all() for data in encoded)


def change(**keys):
    return read_schema(Section({**DOCUMENT["schema"], **keys}, "schema"))


def column(**keys):
    base = {"name": "x", "kind": "number", "unit": "m", "low": 0, "high": 1}
    return change(column=[{**base, **keys}])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: change(identifying=["age"]), "'age' both identifying and a feature"),
        (lambda: change(identifying=["ill"]), "'ill' both identifying and the label"),
        (lambda: change(unused=["age"]), "both a feature and unused"),
        (lambda: change(label_values=["yes"]), "at least two"),
        (lambda: change(label_values=["yes", "yes"]), "twice"),
        (lambda: change(colour="red"), "unknown key"),
        (lambda: column(low=1), "below 'high'"),
        (lambda: column(high=1000), "beyond 127"),
        (lambda: column(scale=0), "must lie between"),
        (lambda: column(missing=5), "must lie between"),
        (lambda: column(outside="ignore"), "one of"),
        (lambda: column(kind="category", values=["a", "b"]), "unknown key"),
        (lambda: change(column=[{"name": "x", "kind": "category", "values": ["a"]}]), "at least two"),
        (
            lambda: change(column=[{"name": "x", "kind": "category", "values": ["a", "b"], "missing": "c"}]),
            "one of the values",
        ),
        (
            lambda: read_schema(Section({"kind": "image", "shape": [2, 2], "label_values": ["a", "b"]}, "s")),
            "height",
        ),
    ],
)
def test_schema_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_schema_survives_its_document_and_has_one_digest():
    again = read_schema(Section(SCHEMA.document(), "schema"))
    assert again == SCHEMA
    assert schema_digest(again) == schema_digest(SCHEMA)
    assert schema_digest(change(unused=[])) != schema_digest(SCHEMA)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_study_has_a_schema(study):
    schema = study.schema()
    assert schema.classes >= 2
    if isinstance(schema, TableSchema):
        assert schema.identifying
        assert not set(schema.identifying) & set(schema.feature_names)


def test_support2_has_34_features():
    assert study_named("support2").schema().row_shape == (34,)
