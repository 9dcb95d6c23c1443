"""A module of the user's as named parameters: what travels, what stays, and what is refused.

Rules, in the same words in ``docs/networks.md``:

1. A parameter that is trained travels, under its name in the module.
2. Tied weights travel once, under their first name.
3. A frozen parameter does not travel: it is part of the code, the same for everybody.
4. A buffer does not travel and must not change in training; BatchNorm, whose statistics do, is refused.
5. A parameter without a shape yet, or one that is not a real number, is refused.
6. All trained parameters have one precision and lie on one device.
7. What is no module, was compiled to a script or cannot be copied is refused.
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
from anofel.models.parameters import Layout, Parameters
from anofel.tasks.entry_points import fault


class ModuleRefused(InvalidInput):
    """A module cannot be trained by many; the message names the part."""

    code = "module-refused"


class TrainableModule:
    """A module that passed the rules."""

    def __init__(self, module: nn.Module) -> None:
        """Check a module and copy it, so that nobody changes it afterwards. Raises ``ModuleRefused``."""
        if not isinstance(module, nn.Module):  # (7)
            raise ModuleRefused(f"What should be trained is a {type(module).__name__} and no nn.Module.")
        _check_layers(module)
        self._module = _copied(module)
        trained = {name: value for name, value in self._module.named_parameters() if value.requires_grad}
        if not trained:  # (1) to (3); named_parameters gives tied weights once
            raise ModuleRefused("The module has no parameter to train.")
        _check_alike(trained)
        self.names = tuple(trained)
        first = next(iter(trained.values()))
        self.dtype, self.device = first.dtype, first.device
        self.initial = {name: _array(value) for name, value in trained.items()}
        """The parameters that travel, as the module was made."""
        self.layout = Layout.of(self.initial)

    @classmethod
    def made_by(cls, make: Callable[[], nn.Module], seed: int) -> Self:
        """Make a module whose initial parameters follow from a seed; PyTorch's randomness is left alone."""
        with torch.random.fork_rng(devices=[]):
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
        if name not in before or not _is_same(before[name], buffer):
            raise ModuleRefused(
                f"The module changes its buffer '{name}' in training; only parameters travel between clients."
            )


def _is_same(before: Tensor, after: Tensor) -> bool:
    """Compare buffers; what is not a number equals itself here, since nothing changed it."""
    if (before.dtype, before.shape, before.device) != (after.dtype, after.shape, after.device):
        return False
    return bool(((before == after) | (before.isnan() & after.isnan())).all())


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
        if isinstance(layer, torch.jit.ScriptModule):  # (7)
            raise ModuleRefused(f"The layer '{name}' was compiled to a script; give the module itself.")
    for name, value in module.named_parameters():
        if is_lazy(value):  # (5)
            raise ModuleRefused(f"The parameter '{name}' has no shape yet; run the module on one row first.")
        if value.requires_grad and not value.is_floating_point():
            raise ModuleRefused(f"The parameter '{name}' holds {value.dtype}; only real numbers are trained.")


def _check_alike(trained: Mapping[str, Tensor]) -> None:
    (first, pattern), *others = trained.items()
    for name, value in others:  # (6)
        for here, there in ((value.dtype, pattern.dtype), (value.device, pattern.device)):
            if here != there:
                raise ModuleRefused(f"The parameter '{name}' is {here}, but '{first}' is {there}.")


def _copied(module: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(module)
    except Exception as error:  # (7); a layer may hold anything
        layers = reversed([*module.named_modules()])  # inner ones before those that hold them
        name = next((name for name, layer in layers if name and not _is_copied(layer)), "")
        raise ModuleRefused(f"The layer '{name}' cannot be copied: {fault(error)}.") from error


def _is_copied(layer: nn.Module) -> bool:
    try:
        copy.deepcopy(layer)
    except Exception:
        return False
    return True


def _array(value: Tensor) -> NDArray[np.float64]:
    return value.detach().to("cpu", torch.float64).numpy().copy()
