"""A trained module as an ONNX graph, by PyTorch's own exporter: bytes of images in, probabilities out."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from anofel.learning.pytorch.trainer import TorchTrainer
from anofel.models.parameters import Parameters
from anofel.tasks.schema import ImageSchema


class _Predictor(nn.Module):
    """The module between the bytes of an image and the probabilities."""

    def __init__(self, module: nn.Module, fraction_bits: int) -> None:
        super().__init__()
        self.module = module
        self.unit = 2.0**-fraction_bits

    def forward(self, images: Tensor) -> Tensor:
        """Scale, put the channels first, and turn logits into probabilities."""
        logits: Tensor = self.module(images.to(torch.float32).permute(0, 3, 1, 2) * self.unit)
        logits = logits.to(torch.float64)
        if logits.shape[1] == 1:
            positive = torch.sigmoid(logits)
            return torch.cat([1 - positive, positive], dim=1)
        return torch.softmax(logits, dim=1)


def export_module(trainer: TorchTrainer, parameters: Parameters, schema: ImageSchema) -> Any:
    """Export the module of a trainer with these parameters; gives the ONNX model."""
    module = _Predictor(
        trainer.module.loaded(parameters).to("cpu", torch.float32).eval(), schema.fraction_bits
    )
    images = torch.zeros((2, *schema.shape), dtype=torch.uint8)
    rows = torch.export.Dim("rows", min=1, max=1 << 20)
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            (images,),
            input_names=["images"],
            output_names=["probabilities"],
            dynamic_shapes={"images": {0: rows}},
            dynamo=True,
            opset_version=18,
            verbose=False,
        )
    assert program is not None
    return program.model_proto


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter from talking: what it says is not about the user's model."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
