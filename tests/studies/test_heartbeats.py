from dataclasses import replace

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.studies.catalogue import study_named
from anofel.studies.fetch import sha256_of, study_directory
from anofel.studies.heartbeats import load_heartbeats
from anofel.studies.load import load_study


def pinned(tmp_path, monkeypatch, train, test):
    """The study with small files of our own in the cache, pinned as the real ones are."""
    monkeypatch.setenv("ANOFEL_CACHE", str(tmp_path))
    study = study_named("ecg5000")
    directory = study_directory(study)
    directory.mkdir(parents=True)
    for part, lines in {"TRAIN": train, "TEST": test}.items():
        (directory / f"ECG5000_{part}.tsv").write_text("".join(f"{line}\n" for line in lines))
    members = tuple(replace(m, sha256=sha256_of(directory / m.name)) for m in study.source.members)
    return replace(study, source=replace(study.source, members=members))


def beat(kind, first):
    return "\t".join([str(kind), str(first), *["-0.5"] * 139])


def test_lines_become_beats(tmp_path, monkeypatch):
    train = [beat(1 + number % 5, number / 4) for number in range(6)]
    study = pinned(tmp_path, monkeypatch, train, [beat(5, 30)])
    parts = load_study(study)
    features = np.concatenate([part.features for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    assert [len(part) for part in parts] == [6, 1]
    assert sorted(labels.tolist()) == [0, 0, 1, 2, 3, 4, 4]
    tenth = 2**16 / 10
    firsts = sorted(round(value / tenth, 3) for value in features[:, 0].tolist())
    assert firsts == [0, 0.25, 0.5, 0.75, 1, 1.25, 10], "clipped at ten deviations"
    assert set(features[:, 1:].ravel().tolist()) == {round(-0.5 * tenth)}


@pytest.mark.parametrize("line", ["1\t2\t3", beat(1, 0) + "\t1", ""])
def test_a_line_that_is_no_beat_is_refused(tmp_path, monkeypatch, line):
    study = pinned(tmp_path, monkeypatch, [beat(1, 0), line], [beat(2, 0)])
    with pytest.raises(InvalidInput, match="not a class and 140 samples"):
        load_heartbeats(study)
