"""A module of the user's as named parameters: what travels, what stays, and what is refused.

Rules, in the same words in ``docs/networks.md``:

1. A parameter that is trained travels, under its name in the module.
2. Tied weights travel once, under their first name.
3. A frozen parameter does not travel: it is part of the code, the same for everybody.
4. A buffer does not travel and must not change in training; BatchNorm, whose statistics do, is refused.
5. A parameter without a shape yet, or one that is not a real number, is refused.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from anofel.errors import InvalidInput
from anofel.learning.parameters import Layout, Parameters


class ModuleRefused(InvalidInput):
    """A module cannot be trained by many; the message names the part."""

    code = "module-refused"


class TrainableModule:
    """A module that passed the rules."""

    def __init__(self, module: nn.Module) -> None:
        """Check a module and copy it, so that nobody changes it afterwards. Raises ``ModuleRefused``."""
        _check_layers(module)
        self._module = copy.deepcopy(module)
        trained = {name: value for name, value in self._module.named_parameters() if value.requires_grad}
        if not trained:  # (1) to (3); named_parameters gives tied weights once
            raise ModuleRefused("The module has no parameter to train.")
        self.names = tuple(trained)
        first = next(iter(trained.values()))
        self.dtype, self.device = first.dtype, first.device
        self.initial = {name: _array(value) for name, value in trained.items()}
        """The parameters that travel, as the module was made."""
        self.layout = Layout.of(self.initial)

    @classmethod
    def made_by(cls, make: Callable[[], nn.Module], seed: int) -> Self:
        """Make a module whose initial parameters follow from a seed; PyTorch's randomness is left alone."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return cls(make())

    @property
    def size(self) -> int:
        """How many numbers travel."""
        return self.layout.size

    def tensors(self, parameters: Parameters) -> dict[str, Tensor]:
        """Turn a posted model into tensors. Raises ``InvalidInput`` for other names or shapes."""
        if Layout.of(parameters) != self.layout:
            raise InvalidInput("The model does not have the names and shapes of the module's parameters.")
        return {
            name: torch.tensor(parameters[name], dtype=self.dtype, device=self.device) for name in self.names
        }

    def loaded(self, parameters: Parameters) -> nn.Module:
        """Return a copy of the module that holds a posted model."""
        made, tensors = copy.deepcopy(self._module), self.tensors(parameters)
        with torch.no_grad():
            for name, value in made.named_parameters():
                if name in tensors:
                    value.copy_(tensors[name])
        return made

    @contextmanager
    def functional(self, *, training: bool) -> Iterator[Callable[[Mapping[str, Tensor], Tensor], Tensor]]:
        """Give the module as a function of parameters and inputs. Raises ``ModuleRefused`` (4)."""
        module = self._module.train(training)

        def call(tensors: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
            outputs: Tensor = torch.func.functional_call(module, dict(tensors), (inputs,))
            return outputs

        with keeps_buffers(module):
            yield call


@contextmanager
def keeps_buffers(module: nn.Module) -> Iterator[None]:
    """Refuse a module whose buffers change meanwhile (4)."""
    before = {name: buffer.detach().clone() for name, buffer in module.named_buffers()}
    yield
    for name, buffer in module.named_buffers():
        if name not in before or not torch.equal(before[name], buffer):
            raise ModuleRefused(
                f"The module changes its buffer '{name}' in training; only parameters travel between clients."
            )


def update_of(before: Parameters, after: Mapping[str, Tensor]) -> dict[str, NDArray[np.float64]]:
    """Subtract the model a client started from, both as the module held them."""
    return {
        name: _array(value) - _array(torch.tensor(before[name], dtype=value.dtype))
        for name, value in after.items()
    }


def _check_layers(module: nn.Module) -> None:
    for name, layer in module.named_modules():
        if isinstance(layer, _BatchNorm):  # (4)
            raise ModuleRefused(
                f"The layer '{name}' is a {type(layer).__name__}: its statistics are no parameters and mix "
                "the records of a batch; use GroupNorm."
            )
    for name, value in module.named_parameters():
        if is_lazy(value):  # (5)
            raise ModuleRefused(f"The parameter '{name}' has no shape yet; run the module on one row first.")
        if value.requires_grad and not value.is_floating_point():
            raise ModuleRefused(f"The parameter '{name}' holds {value.dtype}; only real numbers are trained.")


def _array(value: Tensor) -> NDArray[np.float64]:
    return value.detach().to("cpu", torch.float64).numpy().copy()
