import re
import tomllib
from copy import deepcopy
from decimal import Decimal, localcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.disk.sections import InvalidDocument, canonical_json, plain
from anofel.errors import InvalidInput
from anofel.tasks.example_files import example_text
from anofel.tasks.task import Task, parse_task, read_task
from tests.patients import DOCUMENT, make_task

EXAMPLES = sorted((Path(__file__).parents[1] / "src" / "anofel" / "tasks" / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_tasks_survive_their_canonical_encoding(path):
    task = Task.load(path)
    data = task.to_bytes()
    assert Task.from_bytes(data) == task
    assert Task.from_bytes(data).digest() == task.digest()
    assert b"." in data


def test_digest_changes_with_every_number():
    digests = {
        make_task(privacy=change).digest()
        for change in ({}, {"clipping_norm": "0.25"}, {"max_releases": 11}, {"delta": "0.000001"})
    }
    assert len(digests) == 4


def test_a_task_that_switches_the_contribution_proof_off_says_so_in_its_encoding():
    insecure = make_task(task={"insecure_unproven_contributions": True})
    assert b'"insecure_unproven_contributions":true' in insecure.to_bytes()
    assert Task.from_bytes(insecure.to_bytes()) == insecure
    assert make_task(task={"insecure_unproven_contributions": False}).to_bytes() == make_task().to_bytes()
    assert b"unproven" not in make_task().to_bytes()


def test_equal_decimals_have_one_encoding():
    first, second = (make_task(privacy={"clipping_norm": Decimal(text)}) for text in ("0.50", "0.5"))
    assert first.digest() == second.digest()


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        ("privacy", "min_clients", 3, "exceed max_colluders by at least 2"),
        ("privacy", "min_clients", "8", "must be an integer"),
        ("privacy", "min_clients", True, "must be an integer"),
        (
            "privacy",
            "clipping_norm",
            "0",
            "must be a decimal number between 0.000001 and 1000000, but is '0'",
        ),
        ("privacy", "clipping_norm", "wide", "must be a decimal"),
        ("privacy", "clipping_norm", "NaN", "must be a decimal"),
        ("privacy", "noise_multiplier", "0", "must be positive"),
        ("privacy", "unit", "household", "must be one of"),
        ("privacy", "relation", "add-remove", "must be one of"),
        ("privacy", "sampling_rate", "0.5", "unit 'record' only"),
        ("privacy", "epsilon", 1, "unknown key 'epsilon'"),
        ("privacy", "adaptive", 1, "true or false"),
        ("model", "kind", "resnet", "must be one of"),
        ("model", "hidden", [3], "hidden layers of an mlp"),
        ("model", "parameters", 7, "must be 6 with this schema, but is 7"),
        ("training", "algorithm", "adam", "must be one of"),
        ("rule", "max_mean_norm", "0.0000001", "must be 0 or at least 0.000001"),
        ("rule", "max_mean_norm", "-1", "must be a decimal number between 0 and 1000000"),
        ("rule", "momentum", 65536, "must be an integer between 0 and 65535, but is 65536"),
        ("task", "name", 5, "must be a text"),
        ("task", "name", "", "must have 1 to 128 characters"),
        ("task", "name", "a" * 129, "must have 1 to 128 characters"),
        ("task", "name", "lung\x1b[2J", "control character"),
        ("task", "study", "lung\nBlock 7: accepted", "control character"),
        ("schema", "label", "dead\u202e", "control character"),
        ("schema", "label_values", ["no", "y\x07es"], "control character"),
        ("schema", "unused", ["a\u2028b"], "control character"),
    ],
)
def test_each_wrong_key_is_refused(section, key, value, message):
    with pytest.raises(InvalidInput, match=message):
        make_task(**{section: {key: value}})


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "custom-example"', 'name = "lung/relapse"', "[task] name: must be without / and \\"),
        ('name = "custom-example"', 'name = "lung\\\\relapse"', "[task] name: must be without / and \\"),
        ('label = "relapse"', 'label = ""', "[schema] label: must name a column"),
        (
            'label_values = ["no", "yes"]',
            'target = { kind = "survival", unit = "d", event = "", event_values = ["0", "1"], cuts = [9] }',
            "[schema.target] event: must name a column",
        ),
    ],
)
def test_a_written_task_that_could_not_be_used_is_refused_with_its_line(old, new, problem, tmp_path):
    """A board takes such tasks, so its encoding is read as before."""
    text = example_text("custom")
    line = text[: text.index(old)].count("\n") + 1
    path = tmp_path / "task.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(InvalidDocument) as caught:
        Task.load(path)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(f"line {line}: {problem}")
    with pytest.raises(InvalidDocument, match=re.escape(problem)):
        parse_task(path.read_text(), "task.toml")
    document = tomllib.loads(path.read_text(), parse_float=Decimal)
    posted = read_task(document).to_bytes()
    assert Task.from_bytes(posted).to_bytes() == posted
    (tmp_path / "task.json").write_bytes(posted)
    assert Task.load(tmp_path / "task.json").to_bytes() == posted


def test_combinations_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInput, match="use fedsgd"):
        make_task(privacy={"unit": "record"}, training={"algorithm": "fedavg", "learning_rate": "0.1"})
    with pytest.raises(InvalidInput, match="must be positive for fedavg"):
        make_task(training={"algorithm": "fedavg"})
    with pytest.raises(InvalidInput, match="not combined"):
        make_task(privacy={"unit": "paper", "adaptive": True})


@pytest.mark.parametrize("algorithm", ["fedsgd", "custom"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("learning_rate", "0.1"),
        ("epochs", 2),
        ("batch_size", 16),
        ("optimiser", "adam"),
        ("momentum", "0.9"),
        ("max_steps", 3),
        ("proximal", "0.1"),
        ("weight_decay", "0.1"),
        ("label_smoothing", "0.1"),
        ("augment", "shift"),
        ("precision", "bfloat16"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(algorithm, key, value):
    with pytest.raises(InvalidInput, match=f"{key}: belongs to the algorithm fedavg, not to {algorithm}"):
        make_task(training={"algorithm": algorithm, key: value})


def test_a_training_key_that_says_nothing_is_not_in_the_encoding():
    training = {"algorithm": "fedavg", "learning_rate": "0.1"}
    plain, bounded = make_task(training=training), make_task(training=training | {"max_steps": 3})
    assert b"max_steps" not in plain.to_bytes()
    assert type(bounded).from_bytes(bounded.to_bytes()) == bounded
    assert bounded.digest() != plain.digest()


@pytest.mark.parametrize("missing", ["task", "model", "training", "rule", "privacy"])
def test_missing_section_is_named(missing):
    document = {name: section for name, section in DOCUMENT.items() if name != missing}
    with pytest.raises(InvalidInput, match=f"'{missing}'"):
        read_task(document)


def test_schema_or_study_is_needed():
    document = deepcopy(DOCUMENT)
    del document["schema"]
    with pytest.raises(InvalidInput, match=r"\[schema\] is needed"):
        read_task(document)
    document["task"]["study"] = "nowhere"
    with pytest.raises(InvalidInput, match="no study"):
        read_task(document)


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda data: data + b" ", "canonical"),
        (lambda data: data.replace(b'"0.5"', b'"0.50"'), "canonical"),
        (lambda data: data.replace(b'"0.5"', b"0.5"), "floating-point"),
        (lambda data: data[:-1], "not a JSON"),
        (lambda _: b"\xff", "not a JSON"),
        (lambda _: b"[]", "must be a table"),
    ],
)
def test_encoding_that_is_not_canonical_is_refused(tamper, message):
    with pytest.raises(InvalidInput, match=message):
        Task.from_bytes(tamper(make_task().to_bytes()))


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        Task.load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[task")
    with pytest.raises(InvalidInput, match="not TOML"):
        Task.load(tmp_path / "bad.toml")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=9))
def test_decimals_have_one_spelling(number):
    text = plain(number)
    assert Decimal(text) == number
    assert plain(Decimal(text)) == text
    assert "E" not in text


def test_canonical_json_refuses_floats():
    with pytest.raises(InvalidInput, match="floating-point"):
        canonical_json({"a": [0.5]})


@pytest.mark.parametrize("precision", [3, 28, 100])
def test_the_encoding_does_not_depend_on_the_context_of_the_thread(precision):
    task = make_task(privacy={"clipping_norm": Decimal("1.234567890123456789012345678901234567")})
    with localcontext(prec=precision):
        assert b'"1.234567890123456789012345678901234567"' in task.to_bytes()
        assert Task.from_bytes(task.to_bytes()) == task


@pytest.mark.parametrize(
    "number", ["1E-99999", "1E-999999999999999999", "1." + "1" * 40, "1" + "0" * 40, "1E+40", "0E-41"]
)
def test_a_decimal_with_very_many_digits_is_refused_before_it_is_used(number):
    with pytest.raises(InvalidInput, match="at most 40 digits"):
        make_task(privacy={"noise_multiplier": number})


def test_a_positive_noise_multiplier_has_a_least_value():
    make_task(privacy={"noise_multiplier": Decimal("0.000001")})
    with pytest.raises(InvalidInput, match="at least 0.000001"):
        make_task(privacy={"noise_multiplier": Decimal("0.0000009")})
