"""Write the explanation of a task as plain sentences."""

import math
from collections.abc import Iterator
from typing import Any


def render(report: dict[str, Any]) -> str:
    """Write the report for a terminal."""
    return "\n".join(_lines(report))


def _lines(report: dict[str, Any]) -> Iterator[str]:
    yield from _verdict(report)
    yield f"Task {report['task']}: {report['parameters']:,} parameters, {report['releases']} releases."
    yield (
        f"  At least {report['min_clients']} clients per sum, {report['max_colluders']} may collude: "
        f"h = {report['honest']} honest contributors are guaranteed."
    )
    yield from _paper(report["paper"]) if "paper" in report else _proven(report)
    yield from _noise(report)
    if report["metrics"]:
        yield from _metrics(report["metrics"])
    if report["weights"]:
        yield from _weights(report["weights"])
    if report["groups"]:
        yield from _groups(report["groups"])
    clients = report["groups"]["clients"] if report["groups"] else report["expected_clients"]
    yield from _liars(report["liars"], clients)
    if report["mean_bound"]:
        yield from _mean_bound(report["mean_bound"])
    yield from _counts(report)
    if "to_reach" in report:
        yield from _to_reach(report["to_reach"])
    if "attack" in report:
        yield from _attack(report["attack"])
    if "plot" in report:
        yield f"Plot: {report['plot']}"


def _verdict(report: dict[str, Any]) -> Iterator[str]:
    found, unit = report["verdict"], report["unit"]
    if found["right_guesses"] is None:
        yield "Protection: NONE is proven. The paper's formulas do not bound what an adversary learns."
    else:
        times = math.ceil(found["right_guesses"] * 100)
        yield (
            f"Protection of one {unit}: {found['word'].upper()}. Somebody who knows everything but which of "
            f"two {unit}s took part, and sees every sum, guesses right at most {min(times, 100)} times in "
            "100; chance is 50."
        )
    if found["suggestion"]:
        yield f"  {found['suggestion']}"


def _proven(report: dict[str, Any]) -> Iterator[str]:
    yield f"Privacy of one {report['unit']} (δ = {report['delta']:g}):"
    for relation, value in report["epsilon"].items():
        yield (
            f"  {relation:<9} ε = {value['total']:.4f} in total, {value['per_iteration']:.4f} per iteration; "
            f"{value['micro_total']} micro-ε on the board"
        )
    gamma = report["gamma"]
    exact = "" if gamma["exact_for_gaussian"] is None else f"; exactly {gamma['exact_for_gaussian']:.4f}"
    yield f"  γ ≤ {gamma['bound']:.4f}: an attacker's advantage in telling two {report['unit']}s apart{exact}"


def _paper(paper: dict[str, Any]) -> Iterator[str]:
    yield f"The paper's formulas: ε = {paper['claimed_epsilon']:g} ({paper['status']})."
    yield "  The sensitivity 2C/|D| does not hold for a whole local epoch, and the noise is divided too far."
    for relation, value in paper["client_epsilon_of_this_noise"].items():
        yield f"  What this noise gives a whole client ({relation}): ε = {value:.1f}"
    yield (
        f"  γ = {paper['gamma_as_printed']:.4f} as printed, {paper['gamma_corrected']:.4f} "
        f"with the sign corrected (both {paper['status']})"
    )


def _metrics(metrics: dict[str, Any]) -> Iterator[str]:
    yield f"Metric slots ({', '.join(metrics['names'])}), part of the same sum and of the same ε:"
    yield f"  an update keeps a norm of {metrics['update_norm']:.4g}"
    yield f"  a reported mean between 0 and 1 carries noise of σ = {metrics['noise']:.3g}"


def _weights(weights: dict[str, Any]) -> Iterator[str]:
    yield f"Weights (1 from {weights['most']:,} rows on), part of the same sum and of the same ε:"
    yield f"  an update keeps a norm of {weights['update_norm']:.4g}"
    yield f"  the mean weight, between 0 and 1, carries noise of σ = {weights['noise']:.3g}"
    yield f"  noise or liars magnify a mean {weights['largest_factor']:.3g}-fold at most ([weights] floor)"


def _noise(report: dict[str, Any]) -> Iterator[str]:
    noise, slots, alpha = report["noise"], report["slots"], report["alpha"]
    yield f"Noise ({report['mechanism']}{', adaptive' if report['adaptive'] else ''}):"
    if noise["local_sigma_first"] == noise["local_sigma_last"]:
        yield f"  each client adds σ = {noise['local_sigma_first']:,} integer steps"
    else:
        yield (
            f"  the first client adds σ = {noise['local_sigma_first']:,} integer steps, "
            f"the last {noise['local_sigma_last']:,}"
        )
    yield (
        f"  in the mean of {report['expected_clients']}: {noise['mean_std']:.3g} per parameter, "
        f"norm {noise['mean_norm']:.3g}, {noise['relative_to_signal']:.2f} times the largest signal"
    )
    yield (
        f"  α = {alpha['per_mean']:.3g}: no entry of any released mean is off by more "
        f"(probability {1 - alpha['failure']:.0%})"
    )
    yield (
        f"Slots: {slots['bits']} bits for {slots['posts']} posts; a sum overflows "
        f"with probability below {slots['overflow_probability']:.0e}"
    )


def _liars(liars: dict[str, Any] | None, clients: int) -> Iterator[str]:
    if liars is None:
        yield "Lying clients: INSECURE, contributions are unproven; one client can spoil or poison a sum."
        return
    yield (
        f"Lying clients (lattice committees; a contribution proves a norm of {liars['norm_bound']:.4g}, "
        f"of which {liars['of_it_for_noise']:.4g} for its noise):"
    )
    yield (
        f"  one moves the mean of {clients} by at most {liars['one']:.3g} (an honest client by "
        f"{liars['honest_client']:.3g}), those who may collude by {liars['max_colluders']:.3g}"
    )
    if metric := liars["metric"]:
        by = (
            "its proven range"
            if metric["proven_range"]
            else "its norm alone; proven_ranges bounds it further"
        )
        yield f"  one moves a reported mean between 0 and 1 by at most {metric['one']:.3g}, by {by}"
    yield "  a post that does not count adds nothing but rounding, and no post keeps a sum from being decoded"
    yield "Lying clients (paillier committees; a contribution proves no norm):"
    yield "  one that counts moves the mean without bound or spoils the sum; one that does not adds zero"


def _groups(groups: dict[str, Any]) -> Iterator[str]:
    how = groups["combine"] + (f", {groups['trim']} left out at either end" if groups["trim"] else "")
    yield (
        f"Groups: {groups['number']} of about {groups['clients']} clients, each with a count and a sum of "
        f"its own; the model takes their {how}"
    )
    yield (
        f"  while at most {groups['lying']} of them hold liars, no entry leaves the range of the others; "
        f"with {groups['liars']} liars, {groups['clean']:.1f} groups are expected to hold none"
    )
    yield (
        f"  cost: h counts for each group, so the same ε takes {groups['noise_for_the_same_epsilon']:.2f} "
        "times the noise of one sum"
    )
    yield (
        f"  and combining makes the mean up to {groups['noise_of_the_combination'] - 1:.0%} noisier (in the "
        "numbers above)"
    )
    yield "  the counts of all groups are public and outside of ε; who is in a group is public, by nullifiers"


def _mean_bound(bound: dict[str, Any]) -> Iterator[str]:
    step = bound["model_step"]
    yield (
        f"Bound on the mean: one longer than {bound['norm']:.4g} ({bound['in_clipping_norms']:.3g} clipping "
        "norms) is shortened to it"
        + ("" if step is None else f"; so a model moves by at most {step:.3g} per iteration")
    )
    if bound["one"] is not None:
        yield (
            f"  with it one liar moves the mean by at most {bound['one']:.3g}, those who may collude by "
            f"{bound['max_colluders']:.3g}"
        )
    yield f"  any number of liars, with or without proofs, moves it by at most {bound['anybody']:.3g}"
    if bound["noise_norm"] > bound["norm"]:
        yield (
            f"  The noise alone has a norm of {bound['noise_norm']:.3g}, so almost every mean is shortened "
            "and training slows down; raise max_mean_norm or the number of clients."
        )


def _counts(report: dict[str, Any]) -> Iterator[str]:
    where = " of a group" if report["groups"] else ""
    yield f"If the number of contributors{where} differs:"
    for row in report["counts"]:
        if not row["released"]:
            yield f"  {row['clients']:>7} contribute: no sum is released"
        elif row["epsilon"] is not None:
            yield (
                f"  {row['clients']:>7} contribute, {row['honest']} of them honest: "
                f"ε = {row['epsilon']:.4f} ({report['relation']})"
            )


def _to_reach(target: dict[str, Any]) -> Iterator[str]:
    yield f"To reach ε = {target['target_epsilon']:g} ({target['relation']}):"
    yield f"  noise_multiplier = {target['noise_multiplier']}"
    yield (
        f"  (with {target['clients_for_the_same_noise_in_the_mean']} clients "
        "the mean is then no noisier than now)"
    )
    if target["or_releases"] is None:
        yield "  with the noise as it is, not even one release stays within it"
    else:
        yield f"  or max_releases = {target['or_releases']} with the noise as it is"


def _attack(results: dict[str, Any]) -> Iterator[str]:
    yield "Membership inference on the sums (advantage TPR − FPR):"
    for relation, result in results.items():
        verdict = "within" if result["within_bound"] else "ABOVE"
        yield (
            f"  {relation:<9} without noise {result['advantage_without_noise']:.3f}, "
            f"with noise {result['advantage_with_noise']:.3f} ± {result['margin']:.3f}, "
            f"{verdict} the bound γ = {result['gamma']:.3f}"
        )
