"""Explain a task before it runs: what it costs, what it gives, what to change."""

import math
from dataclasses import replace
from typing import Any

from anofel.errors import InvalidInput
from anofel.privacy.accounting import micro_epsilon
from anofel.privacy.announced import TAIL
from anofel.privacy.bounds import (
    advantage_bound,
    error_bound,
    gaussian_advantage,
    paper_advantage,
    paper_error_scale,
)
from anofel.privacy.calibrate import noise_multiplier, releases_within
from anofel.privacy.events import GaussianEvent
from anofel.privacy.plan import Plan
from anofel.privacy.verdict import verdict
from anofel.tasks.task import RELATIONS, Task

ERROR_FAILURE = 0.05
"""α holds for the whole run with probability 95 %."""

UNPROVEN = "unproven"

MEDIAN_NOISE = math.sqrt(math.pi / 2)
"""By how much noisier than their mean a median, or a trimmed mean, of equally noisy means is at most."""

PROVEN_SLACK = 2.85
"""What may pass a contribution proof, in norms that an honest client may have (2^128 attempts)."""


def explain(task: Task, target_epsilon: float | None = None) -> dict[str, Any]:
    """Explain a task as one document; every number follows from the announced ones."""
    plan = Plan.of(task)
    report: dict[str, Any] = {
        "task": task.name,
        "digest": task.digest().hex(),
        "unit": plan.spec.unit,
        "relation": plan.spec.relation,
        "delta": float(plan.spec.delta),
        "releases": plan.spec.max_releases,
        "parameters": task.model.parameters,
        "metrics": _metrics(plan),
        "weights": _weights(plan),
        "honest": plan.spec.honest,
        "min_clients": plan.spec.min_clients,
        "max_colluders": plan.spec.max_colluders,
        "expected_clients": plan.spec.expected_clients,
        "mechanism": plan.spec.mechanism,
        "adaptive": plan.spec.adaptive,
        "noise": _noise(plan),
        "slots": _slots(plan),
        "alpha": _alpha(task, plan),
        "counts": _counts(plan),
        "liars": _liars(plan),
        "mean_bound": _mean_bound(task, plan),
        "groups": _groups(task, plan),
    }
    if plan.spec.unit == "paper":
        report |= {"paper": _paper(plan)}
        return report | {"verdict": verdict(report)}
    report |= {"epsilon": _epsilon(plan), "gamma": _gamma(plan)}
    report["verdict"] = verdict(report)
    if target_epsilon is not None:
        report["to_reach"] = to_reach(plan, target_epsilon)
    return report


def _epsilon(plan: Plan) -> dict[str, Any]:
    releases = plan.spec.max_releases
    result = {}
    for relation in RELATIONS:
        one, total = plan.epsilon(1, relation), plan.epsilon(releases, relation)
        result[relation] = {
            "per_iteration": one,
            "total": total,
            "micro_total": micro_epsilon(total),
            "sensitivity": plan.sensitivity(relation).l2,
        }
    return result


def _noise(plan: Plan) -> dict[str, Any]:
    clients = plan.spec.expected_clients
    total = math.sqrt(plan.total_variance(clients))
    mean = total / clients / plan.scale * (MEDIAN_NOISE if plan.groups > 2 else 1)
    positions = (1, plan.spec.max_posts) if plan.spec.adaptive else (None, None)
    return {
        "noise_multiplier": None if plan.spec.unit == "paper" else float(plan.spec.noise_multiplier),
        "local_sigma_first": plan.local_sigma(positions[0]),
        "local_sigma_last": plan.local_sigma(positions[1]),
        "guaranteed_std": math.sqrt(plan.guaranteed_variance()),
        "total_std": total,
        "mean_std": mean,
        "mean_norm": mean * math.sqrt(plan.dimension),
        "relative_to_signal": mean * math.sqrt(plan.dimension) / _signal(plan),
    }


def _signal(plan: Plan) -> float:
    """Give the largest norm of the mean update: C, or C times the sampled records of a client."""
    if plan.spec.unit != "record":
        return plan.update_norm
    return plan.update_norm * plan.spec.records_per_client * float(plan.spec.sampling_rate)


def _metrics(plan: Plan) -> dict[str, Any] | None:
    """Say what the metric slots cost the update, and how noisy a mean of 0 … 1 is."""
    if plan.metrics is None:
        return None
    clients = plan.spec.expected_clients
    units = clients * (plan.spec.records_per_client if plan.spec.unit == "record" else 1)
    step = plan.metric_weight * plan.scale
    return {
        "names": list(plan.metrics.names),
        "update_norm": plan.update_norm,
        "noise": math.sqrt(plan.total_variance(clients)) / step / units,
    }


def _weights(plan: Plan) -> dict[str, Any] | None:
    """Say what weights cost the update, how noisy a mean weight is, and how far it can be pushed."""
    if plan.weights is None:
        return None
    clients = plan.clients_per_sum
    return {
        "most": plan.weights.most,
        "update_norm": plan.update_norm,
        "noise": math.sqrt(plan.total_variance(clients)) / plan.weight_step / clients,
        "largest_factor": 1 / float(plan.weights.floor),
    }


def _slots(plan: Plan) -> dict[str, Any]:
    sums = plan.spec.max_releases * plan.dimension
    return {
        "bits": plan.slot_bits,
        "bound": plan.sum_bound,
        "posts": plan.spec.max_posts,
        "overflow_probability": min(1.0, 2 * sums * math.exp(-(TAIL**2) / 2)),
    }


def _liars(plan: Plan) -> dict[str, Any] | None:
    """Say what lying clients can do to the mean where contributions are proven; None where they are not."""
    if not plan.proven:
        return None
    spec, norm = plan.spec, plan.norm_bound / plan.scale
    honest = math.sqrt(plan.norm_squared) / plan.scale if spec.unit != "record" else _signal(plan)
    one = PROVEN_SLACK * norm / plan.clients_per_sum
    return {
        "norm_bound": norm,
        "of_it_for_noise": norm - honest,
        "slack": PROVEN_SLACK,
        "one": one,
        "max_colluders": max(1, spec.max_colluders) * one,
        "honest_client": honest / plan.clients_per_sum,
        "metric": _lying_metric(plan, norm),
    }


def _groups(task: Task, plan: Plan) -> dict[str, Any] | None:
    """Say what groups give and cost; None without them."""
    spec, clients, liars = task.groups, plan.spec.expected_clients, max(1, plan.spec.max_colluders)
    if spec is None:
        return None
    size = plan.clients_per_sum
    clean = math.prod(max(0, clients - size - place) / (clients - place) for place in range(liars))
    return {
        "number": spec.number,
        "combine": spec.combine,
        "trim": spec.trim,
        "clients": size,
        "lying": spec.trim or (spec.number - 1) // 2,
        "liars": liars,
        "clean": spec.number * clean,
        "noise_of_the_combination": MEDIAN_NOISE if spec.number > 2 else 1.0,
        "noise_for_the_same_epsilon": math.sqrt(spec.number),
    }


def _lying_metric(plan: Plan, norm: float) -> dict[str, Any] | None:
    """Say what one liar can do to a reported mean of 0 … 1; by the norm alone, or by a proven range."""
    if plan.metrics is None:
        return None
    units = plan.clients_per_sum * (plan.spec.records_per_client if plan.spec.unit == "record" else 1)
    ends = plan.metric_range
    largest = PROVEN_SLACK * norm if ends is None else max(-ends[0], ends[1]) / plan.scale
    return {"proven_range": ends is not None, "one": largest / plan.metric_weight / units}


def _mean_bound(task: Task, plan: Plan) -> dict[str, Any] | None:
    """Say what the bound on the mean leaves to liars, and whether noise alone reaches it; None without one.

    Shortening never moves two means further apart, so liars shift the mean by no more than without it, and
    by twice the bound at most.
    """
    rule = task.rule
    if not rule.max_mean_norm:
        return None
    bound, liars = float(rule.max_mean_norm), _liars(plan)
    rate = _largest_rate(task)
    return {
        "norm": bound,
        "in_clipping_norms": bound / plan.clipping_norm,
        "anybody": 2 * bound,
        "one": min(2 * bound, liars["one"]) if liars else None,
        "max_colluders": min(2 * bound, liars["max_colluders"]) if liars else None,
        "model_step": None if rule.is_adaptive else rate * bound / (1 - rule.momentum / (1 << 16)),
        "noise_norm": _noise(plan)["mean_norm"],
    }


def _gamma(plan: Plan) -> dict[str, Any]:
    """γ of the D-IND game, whose adversary replaces a unit: ε under *replace* after all releases."""
    delta = float(plan.spec.delta)
    value = plan.epsilon(plan.spec.max_releases, "replace")
    event = plan.event("replace")
    exact = None
    if isinstance(event, GaussianEvent) and event.sampling_rate == 1.0:
        exact = gaussian_advantage(event.noise_multiplier / math.sqrt(plan.spec.max_releases))
    return {
        "bound": advantage_bound(value, delta),
        "exact_for_gaussian": exact,
        "as_printed_in_the_paper": paper_advantage(value, delta) if value < 700 else 0.0,
    }


def _alpha(task: Task, plan: Plan) -> dict[str, Any]:
    clients = plan.clients_per_sum
    mean = math.sqrt(plan.total_variance(clients)) / clients / plan.scale
    rate = _largest_rate(task)
    iterations = plan.spec.max_releases * plan.groups
    value = error_bound(sigma=mean, coordinates=plan.dimension, iterations=iterations, failure=ERROR_FAILURE)
    step = None if task.rule.is_adaptive else rate * value  # an adaptive rule divides by what it has seen
    return {"failure": ERROR_FAILURE, "per_mean": value, "per_model_step": step}


def _largest_rate(task: Task) -> float:
    rule = task.rule
    rates = [(rule.lr_num, rule.lr_den), *((step.lr_num, step.lr_den) for step in rule.schedule)]
    return max(num / den for num, den in rates)


def _counts(plan: Plan) -> list[dict[str, Any]]:
    """Say what happens when fewer or more contribute, or more collude than the task tolerates."""
    spec = plan.spec
    rows: list[dict[str, Any]] = []
    for clients in sorted(
        {spec.min_clients - 1, spec.min_clients, plan.clients_per_sum, 2 * spec.min_clients}
    ):
        if clients < spec.min_clients:
            rows.append({"clients": clients, "honest": None, "released": False, "epsilon": None})
            continue
        for honest in sorted({max(1, clients // 2), clients - spec.max_colluders}):
            rows.append(
                {"clients": clients, "honest": honest, "released": True, "epsilon": _what_if(plan, honest)}
            )
    return rows


def _what_if(plan: Plan, honest: int) -> float | None:
    if plan.spec.unit == "paper":
        return None
    try:
        return plan.epsilon(plan.spec.max_releases, plan.spec.relation, honest)
    except InvalidInput:
        return None


def _paper(plan: Plan) -> dict[str, Any]:
    """Evaluate the paper's formulas, and what its noise would really give a client."""
    spec = plan.spec
    sensitivity = 2 * plan.clipping_norm / spec.records_per_client
    claimed = float(spec.paper_epsilon)
    try:
        client = {relation: plan.epsilon(spec.max_releases, relation) for relation in RELATIONS}
    except InvalidInput:
        client = {}
    return {
        "status": UNPROVEN,
        "claimed_epsilon": claimed,
        "sigma": plan.paper_sigma,
        "sensitivity": sensitivity,
        "client_epsilon_of_this_noise": client,
        "gamma_as_printed": paper_advantage(claimed, float(spec.delta)),
        "gamma_corrected": advantage_bound(claimed, float(spec.delta)),
        "alpha_scale": paper_error_scale(
            sensitivity=sensitivity, epsilon=claimed, delta=float(spec.delta), iterations=spec.max_releases
        ),
    }


def to_reach(plan: Plan, target_epsilon: float) -> dict[str, Any]:
    """Say what to change to reach a target: the noise, the number of releases, or the number of clients."""
    relation = plan.spec.relation
    multiplier = noise_multiplier(plan, target_epsilon, relation)
    factor = float(multiplier / plan.spec.noise_multiplier)
    return {
        "target_epsilon": target_epsilon,
        "relation": relation,
        "noise_multiplier": str(multiplier),
        "or_releases": releases_within(plan, target_epsilon, relation) or None,
        "clients_for_the_same_noise_in_the_mean": math.ceil(plan.spec.expected_clients * max(1.0, factor)),
    }


def with_overrides(
    task: Task, *, delta: Any = None, releases: int | None = None, clients: int | None = None
) -> Task:
    """Give the same task with another δ, number of releases or of clients, to see what it would mean."""
    spec = task.privacy
    if delta is not None:
        spec = replace(spec, delta=delta)
    if releases is not None:
        spec = replace(spec, max_releases=releases)
    if clients is not None:
        if clients - spec.max_colluders < 2:
            raise InvalidInput("--clients must exceed max_colluders by at least 2.")
        posts = max(clients, spec.max_posts if spec.max_posts != spec.expected_clients else clients)
        spec = replace(spec, min_clients=clients, expected_clients=clients, max_posts=posts)
    return replace(task, privacy=spec)
