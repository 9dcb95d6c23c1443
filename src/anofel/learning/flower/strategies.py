"""Flower's strategies as update rules of a task; only those whose meaning stays.

Rules, in the same words in ``docs/coming-from-flower.md``:

1. FedAvg and FedProx are ``integer-mean`` with the rate 1; μ of FedProx is a setting of training.
2. FedAvgM is ``integer-mean`` with its momentum in units of 2^−16 and its learning rate.
3. FedAdam is ``integer-adam``, its bias correction a schedule of rates; FedYogi is ``integer-yogi``.
4. Every other strategy is refused by name, with what would be lost.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from anofel.learning.flower.settings import FlowerRefused
from anofel.tasks.task import MAX_CHANGES, RateChange, RuleSpec

_UNITS: Final = 1 << 16
_DENOMINATOR: Final = 1_000_000
_UNSEEN: Final = "and nobody ever sees one"
_LOST: Final = {
    "FedAdagrad": "its second moment is a sum that grows without end, for which there is no integer rule",
    "FedMedian": f"a median needs every update, {_UNSEEN}; [groups] has medians of means",
    "FedTrimmedAvg": f"a trimmed mean needs every update, {_UNSEEN}; [groups] has trimmed means of means",
    "Krum": f"it chooses single updates, {_UNSEEN}",
    "MultiKrum": f"it chooses single updates, {_UNSEEN}",
    "Bulyan": f"it chooses single updates, {_UNSEEN}",
    "QFedAvg": "it weighs each client by its loss, which nobody learns",
    "FaultTolerantFedAvg": "its thresholds are the task's min_clients; use FedAvg",
    "FedXgbBagging": "trees have no mean",
    "FedXgbCyclic": "trees have no mean, and clients would take part one after the other",
    "FedXgbNnAvg": "trees have no mean",
    "FedOpt": "it is a base class and has no rule of its own",
}
_WRAPPERS: Final = "its clipping and noise are the task's own: [privacy] says how much, and counts ε"
_NOT_KNOWN: Final = f"what it does with single updates would be lost, {_UNSEEN}"


def rule_of_strategy(name: str, settings: Mapping[str, Any], rounds: int) -> RuleSpec:
    """Give the update rule that does what a strategy does. Raises ``FlowerRefused``."""
    if name in ("FedAvg", "FedProx"):  # (1)
        return RuleSpec()
    if name == "FedAvgM":  # (2)
        num, den = _rate(name, "server_learning_rate", settings)
        return RuleSpec(lr_num=num, lr_den=den, momentum=_share(name, "server_momentum", settings))
    if name in ("FedAdam", "FedYogi"):  # (3)
        return _adaptive(name, settings, rounds)
    wrapped = name.startswith(("DifferentialPrivacy", "DPFedAvg"))  # (4)
    lost = _WRAPPERS if wrapped else _LOST.get(name, _NOT_KNOWN)
    raise FlowerRefused(f"The strategy {name} is not taken: {lost}.")


def lost_of(about: Mapping[str, Any]) -> list[str]:
    """Name what an app asks of its strategy and does not get; it is trained all the same."""
    settings, lost = about["settings"], []
    for key in ("fraction_train", "fraction_fit"):
        if settings.get(key, 1) < 1:
            lost.append(f"{key} = {settings[key]}: every client that can takes part in every iteration.")
    if about["evaluates"]:
        lost.append("evaluate_fn: the owner measures models with anofel owner run --validation.")
    lost.append("Weights by the number of examples: every client counts the same.")
    lost.append(
        "Rounds of evaluation and metrics of clients; the task's [metrics] are summed in secret instead."
    )
    return lost


def _adaptive(name: str, settings: Mapping[str, Any], rounds: int) -> RuleSpec:
    eta = float(settings["eta"])
    first, second = float(settings["beta_1"]), float(settings["beta_2"])
    rates = [_fraction(name, "eta", eta)]
    if name == "FedAdam":
        # Flower counts rounds from 1 and corrects by the power that is one higher.
        exponents = range(2, min(rounds, MAX_CHANGES) + 2)
        corrections = [math.sqrt(1 - second**power) / (1 - first**power) for power in exponents]
        rates = [_fraction(name, "eta", eta * correction) for correction in corrections]
    (num, den), *later = rates
    schedule = [
        RateChange(iteration=iteration, lr_num=rate[0], lr_den=rate[1])
        for iteration, (rate, before) in enumerate(zip(later, rates, strict=False), start=2)
        if rate != before
    ]
    floor = Decimal(str(settings["tau"]))
    if floor < Decimal("0.000001"):
        raise FlowerRefused(
            f"The strategy {name} has tau = {floor}; the integer rule needs 0.000001 or more."
        )
    return RuleSpec(
        kind="integer-adam" if name == "FedAdam" else "integer-yogi",
        lr_num=num,
        lr_den=den,
        momentum=_share(name, "beta_1", settings),
        second_momentum=_share(name, "beta_2", settings),
        floor=floor,
        schedule=tuple(schedule),
    )


def _rate(name: str, key: str, settings: Mapping[str, Any]) -> tuple[int, int]:
    return _fraction(name, key, float(settings[key]))


def _fraction(name: str, key: str, value: float) -> tuple[int, int]:
    if not 0 < value < _DENOMINATOR:
        raise FlowerRefused(f"The strategy {name} has {key} = {value}; it must be positive.")
    found = Fraction(value).limit_denominator(_DENOMINATOR)
    if not found:
        raise FlowerRefused(f"The strategy {name} has {key} = {value}; it is too small.")
    return found.numerator, found.denominator


def _share(name: str, key: str, settings: Mapping[str, Any]) -> int:
    value = float(settings[key])
    if not 0 <= value < 1:
        raise FlowerRefused(
            f"The strategy {name} has {key} = {value}; it must be from 0 up to, not including, 1."
        )
    return min(round(value * _UNITS), _UNITS - 1)
