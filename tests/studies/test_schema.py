import re

import pytest

from anofel.disk.sections import read_table
from anofel.errors import InvalidInput
from anofel.studies.catalogue import STUDIES, study_named
from anofel.studies.encoding import ColumnsDoNotFit, TableRows, encode_table, encode_unlabelled
from anofel.studies.table import RowDoesNotFit, parse_csv
from anofel.tasks.schema import Schema, TableSchema, schema_digest
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
    assert [misfit[:2] for misfit in caught.value.misfits] == [(line, column)]
    assert f"Line {line}, column '{column}'" in str(caught.value)


def test_lines_are_counted_in_the_file_not_in_rows():
    with pytest.raises(RowDoesNotFit) as caught:
        encode_table(parse('"Ann\nMarie",50,100,I,,no', "Bob,500,100,I,,no"), SCHEMA)
    assert caught.value.misfits[0].line == 4


def test_unknown_column_is_refused():
    with pytest.raises(InvalidInput, match="does not know column 'ssn'"):
        encode_table(parse("Ann,50,100,I,,no,123", header=HEADER + ",ssn"), SCHEMA)


def test_missing_column_is_refused():
    with pytest.raises(InvalidInput, match="needs column 'age'"):
        encode_table(parse("Ann,100,I,,no", header="name,pressure,stage,note,ill"), SCHEMA)


def test_all_problems_of_a_file_are_named_at_once():
    rows = ["Ann,old,100,IIII,,no", "Bob,50,100,I,,maybe", *["Eve,x,100,I,,no"] * 5]
    with pytest.raises(RowDoesNotFit) as caught:
        encode_table(parse(*rows), SCHEMA)
    said = str(caught.value)
    assert said.startswith("Line 2, column 'age': 'old' is not a number; line 4, column 'age'")
    assert "line 2, column 'stage': 'IIII' is not among the values (did you mean" in said
    assert "line 3, column 'ill': 'maybe' is not a value of the label" in said
    assert said.endswith("; 3 more lines of column 'age'.")
    with pytest.raises(ColumnsDoNotFit) as caught:
        encode_table(parse("50,Ann,I,,no", header="agee,name,stage,note,ill"), SCHEMA)
    said = str(caught.value)
    assert said.startswith(
        "The schema needs column 'age', which the file does not have (did you mean 'agee'?)"
    )
    assert "needs column 'pressure'" in said
    assert "does not know column 'agee' (did you mean 'age'?)" in said


def test_rows_of_another_length_are_all_named():
    with pytest.raises(RowDoesNotFit) as caught:
        parse("Ann", "Bob,50,100,I,,no", "Eve,1")
    assert [misfit.line for misfit in caught.value.misfits] == [2, 4]


def said_of(path, *rows, header=HEADER):
    path.write_text("\n".join([header, *rows]))
    with pytest.raises(InvalidInput) as caught:
        TableRows.read(path, SCHEMA)
    return caught.value


def test_a_row_of_another_length_hides_no_other_problem(tmp_path):
    path = tmp_path / "rows.csv"
    found = said_of(path, "Ann", "Bob,old,100,I,,no", "Eve,50,100,I,,", "Cy,50,100,I,,no,x")
    assert isinstance(found, RowDoesNotFit)
    assert [misfit[:2] for misfit in found.misfits] == [(2, "age"), (5, "ill"), (3, "age"), (4, "ill")]
    assert "the label is missing" in str(found)
    alone = said_of(path, "Ann", "Bob,50,100,I,,no")
    assert [misfit.line for misfit in alone.misfits] == [2]
    assert [misfit.line for misfit in said_of(path, "Ann").misfits] == [2]


def test_a_wrong_column_hides_no_wrong_row(tmp_path):
    header = HEADER.replace("age", "agee")
    found = said_of(tmp_path / "rows.csv", "Ann", "Bob,50,high,I,,no", header=header)
    assert isinstance(found, ColumnsDoNotFit)
    for words in (
        "needs column 'age'",
        "Line 3, column 'pressure': 'high' is not a number.",
        "Line 2, column 'agee': the row has 1 cells",
    ):
        assert words in str(found)


def test_an_unknown_delimiter_is_named_and_not_every_column(tmp_path):
    found = said_of(tmp_path / "rows.csv", "Ann#50#100#I##no", header=HEADER.replace(",", "#"))
    assert str(found).startswith(
        "The file has one column, 'name#age#pressure#stage#note#ill'; cells end in a"
    )
    assert "needs column" not in str(found)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_is_recognised(delimiter):
    table = parse("Ann,50,100,I,,no".replace(",", delimiter), header=HEADER.replace(",", delimiter))
    assert table.columns["age"] == ("50",)
    assert (
        encode_table(table, SCHEMA).features.tolist()
        == encode_table(parse("A,50,100,I,,no"), SCHEMA).features.tolist()
    )


def test_a_decimal_comma_is_recognised_where_the_delimiter_is_another():
    header = HEADER.replace(",", ";")
    table = parse("Ann;50,5;100;I;;no", "Bob;1,125;100;I;;no", header=header)
    assert [table.number(cell) for cell in table.columns["age"]] == [50.5, 1.125]
    again = parse_csv(table.to_csv().decode().splitlines(keepends=True))
    assert again.decimal == ","
    assert again.columns == table.columns
    mixed = parse("Ann;50,5;100.5;I;;no", header=header)
    with pytest.raises(RowDoesNotFit, match="'50,5' is not a number .a decimal comma. write a point."):
        encode_table(mixed, SCHEMA)


def test_a_comma_between_thousands_is_not_taken_for_a_fraction():
    with pytest.raises(InvalidInput, match="'1,125' may stand before a fraction or between thousands"):
        parse("Ann;1,125;100;I;;no", header=HEADER.replace(",", ";"))


@pytest.mark.parametrize("text", [HEADER, f"{HEADER}\n\n"])
def test_a_file_without_rows_is_refused(text):
    with pytest.raises(InvalidInput, match="has no rows"):
        parse_csv(text.splitlines(keepends=True))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "The file is empty; it must name the columns."),
        ("\nAnn,50\n", "The first line is empty; it must name the columns."),
        ("age,stage,age,ill\n", "it repeats 'age'."),
        ('age,ill\n50,no\n51,"yes\n52,no\n', "Line 3 is not CSV: a quotation mark is opened and not closed."),
        ('age,ill\n50,"' + "no,\n" * 50_000, "Line 2 is not CSV: a quotation mark is opened and not closed."),
        ('age,ill\n50,"no" or yes\n', "Line 2 is not CSV: ',' expected after '\"'."),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_the_reason(text, words):
    with pytest.raises(InvalidInput, match=re.escape(words)):
        parse_csv(text.splitlines(keepends=True))


def test_rows_to_predict_need_no_label():
    header = "pressure,age,stage"
    data = encode_unlabelled(parse("100,50,I", header=header), SCHEMA)
    assert data.features.tolist() == encode_table(parse("A,50,100,I,,no"), SCHEMA).features.tolist()
    assert encode_unlabelled(parse("A,50,100,I,,nonsense"), SCHEMA).labels.tolist() == [0]
    with pytest.raises(ColumnsDoNotFit, match="needs column 'age'"):
        encode_unlabelled(parse("100,I", header="pressure,stage"), SCHEMA)
    with pytest.raises(ColumnsDoNotFit, match="does not know column 'ward'; leave it out of the file"):
        encode_unlabelled(parse("100,50,I,7", header=f"{header},ward"), SCHEMA)


def test_identifying_columns_leave_no_trace():
    first, second = make_table(20), make_table(20)
    renamed = type(second)(
        {**second.columns, "name": ["Someone else"] * 20, "note": ["secret"] * 20}, second.lines
    )
    without = {name: cells for name, cells in first.columns.items() if name != "name"}
    encoded = [encode_table(table, SCHEMA) for table in (first, renamed, type(first)(without, first.lines))]
    assert all((data.features == encoded[0].features).all() for data in encoded)


def change(**keys):
    return read_table({**DOCUMENT["schema"], **keys}, Schema, "schema")


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
        (lambda: column(scale=0), "scale must be a decimal number between"),
        (lambda: column(missing=5), "must lie between"),
        (lambda: column(outside="ignore"), "one of"),
        (lambda: column(kind="category", values=["a", "b"]), "unknown key"),
        (lambda: change(column=[{"name": "x", "kind": "category", "values": ["a"]}]), "at least two"),
        (
            lambda: change(column=[{"name": "x", "kind": "category", "values": ["a", "b"], "missing": "c"}]),
            "one of the values",
        ),
        (
            lambda: read_table({"kind": "image", "shape": [2, 2], "label_values": ["a", "b"]}, Schema, "s"),
            "height",
        ),
    ],
)
def test_schema_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_schema_survives_its_document_and_has_one_digest():
    again = read_table(SCHEMA.document(), Schema, "schema")
    assert again == SCHEMA
    assert schema_digest(again) == schema_digest(SCHEMA)
    assert schema_digest(change(unused=[])) != schema_digest(SCHEMA)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_study_has_a_schema(study):
    schema = study.schema()
    assert schema.classes >= 2
    if isinstance(schema, TableSchema):
        assert schema.identifying or study.name == "ecg5000", "beats carry nothing but their samples"
        assert not set(schema.identifying) & set(schema.feature_names)


def test_support2_has_34_features():
    assert study_named("support2").schema().row_shape == (34,)
