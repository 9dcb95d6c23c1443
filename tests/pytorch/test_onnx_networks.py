"""Networks as ONNX: another program computes our own numbers from the bytes of images."""

import numpy as np
import onnxruntime
import pytest

from anofel.learning.build import trainer_of
from anofel.learning.classifier import Classifier
from anofel.learning.onnx_export import to_onnx
from anofel.models.rules import rule_of
from anofel.tasks.task import read_task
from tests.pytorch.digits import make_digits


@pytest.mark.parametrize("kind", ["lenet5", "resnet20-gn"])
def test_a_network_computes_what_we_compute(kind: str) -> None:
    task = read_task(
        {
            "task": {"name": "digits", "study": "mnist"},
            "model": {"kind": kind},
            "training": {"algorithm": "fedsgd"},
            "rule": {},
            "privacy": {
                "clipping_norm": 1,
                "noise_multiplier": 1,
                "max_releases": 1,
                "min_clients": 4,
                "max_colluders": 1,
            },
        }
    )
    model = rule_of(task).initial(trainer_of(task).initial(), task.model.scale_bits)
    classifier, rows = Classifier(model, task), make_digits(20)
    session = onnxruntime.InferenceSession(to_onnx(classifier), providers=["CPUExecutionProvider"])
    probabilities, labels = session.run(["probabilities", "label"], {"images": rows.features})
    ours = classifier.predict_proba(rows.features)
    assert ours.shape == (20, 10)
    assert np.abs(probabilities - ours).max() < 1e-5
    assert labels.tolist() == [str(index) for index in probabilities.argmax(axis=1)]
    assert np.array_equal(classifier.predict_proba(rows), ours)
