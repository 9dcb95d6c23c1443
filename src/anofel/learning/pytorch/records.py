"""Gradients record by record, each clipped, for the unit ``record`` (step 4).

``torch.func`` differentiates many records at once; norms and sums are taken with double precision, so
that no rounding of the module's own precision lets a record exceed the clipping norm.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anofel.learning.pytorch.module import ModuleRefused, TrainableModule

_MAX_RECORDS = 256
_MAX_NUMBERS = 1 << 23
"""Gradients of one micro-batch hold at most this many numbers."""


def micro_batch(size: int) -> int:
    """Choose how many records are differentiated at once, for a module of `size` parameters."""
    return max(1, min(_MAX_RECORDS, _MAX_NUMBERS // size))


def clipped_gradient_sum(
    module: TrainableModule,
    tensors: Mapping[str, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    inputs: Tensor,
    labels: Tensor,
    clipping_norm: float,
) -> dict[str, NDArray[np.float64]]:
    """Sum the records' gradients, each scaled down to norm `clipping_norm` at most.

    A record whose gradient is not finite adds nothing, and changes nothing of what the others add. Raises
    ``ModuleRefused`` for a module that treats the records of a batch together.
    """
    totals = {name: torch.zeros(value.shape, dtype=torch.float64) for name, value in tensors.items()}
    size = micro_batch(module.size)
    with module.functional(training=True) as call:

        def loss_of_one(parameters: Mapping[str, Tensor], row: Tensor, label: Tensor) -> Tensor:
            return loss(call(parameters, row[None]), label[None])

        gradients = torch.func.vmap(
            torch.func.grad(loss_of_one), in_dims=(None, 0, 0), randomness="different"
        )
        for rows, wanted in zip(torch.split(inputs, size), torch.split(labels, size), strict=True):
            if not len(rows):  # nobody was sampled
                continue
            try:
                found = gradients(dict(tensors), rows, wanted)
            except RuntimeError as error:
                reason = str(error).strip().split("\n")[0]
                raise ModuleRefused(f"The module cannot be trained record by record: {reason}") from None
            _add_clipped(totals, found, clipping_norm)
    return {name: total.numpy() for name, total in totals.items()}


def _add_clipped(totals: dict[str, Tensor], found: Mapping[str, Tensor], clipping_norm: float) -> None:
    flat = {name: value.reshape(len(value), -1).to("cpu", torch.float64) for name, value in found.items()}
    squared = torch.stack([(value**2).sum(dim=1) for value in flat.values()]).sum(dim=0)
    broken = ~torch.isfinite(squared)
    squared[broken] = 0.0
    factors = (clipping_norm / squared.sqrt().clamp_min(torch.finfo(torch.float64).tiny)).clamp_max(1.0)
    for name, value in flat.items():
        value[broken] = 0.0  # a factor of zero would leave what is not a number
        totals[name] += (factors @ value).reshape(totals[name].shape)
