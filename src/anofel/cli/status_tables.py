"""What a role's status says to people: tables for a narrow terminal. Programs get all of it by ``--json``."""

from collections.abc import Sequence
from typing import Any


def of_owner(found: dict[str, Any]) -> dict[str, Any]:
    """Show quality in columns of its own; leave out ids, and what is said of no iteration."""
    entries = found.get("iterations")
    if not entries:
        return found
    measures = sorted({name for entry in entries for name in entry["metrics"] or {}})
    told = sorted({name for entry in entries for name in entry.get("reported") or {}})
    kept = ["iteration", "outcome", "count", "posts"]
    kept += ["groups"] if any(len(entry.get("groups") or []) > 1 for entry in entries) else []
    kept += _said(entries, ("shortened", "rejected", "culprits"))
    shown = dict(found)
    shown["iterations"] = [
        {name: entry.get(name) for name in kept}
        | {name: (entry["metrics"] or {}).get(name) for name in measures}
        for entry in entries
    ]
    if told:
        shown["reported_by_clients"] = [
            {"iteration": entry["iteration"]} | {name: (entry["reported"] or {}).get(name) for name in told}
            for entry in entries
        ]
    return shown


def of_client(found: dict[str, Any]) -> dict[str, Any]:
    """Show reasons apart from the iterations; leave out what is the same for all of them."""
    entries = found.get("iterations")
    if not entries:
        return found
    kept = ["bundle"] if len({entry["bundle"] for entry in entries}) > 1 else []
    kept += ["iteration", *_said(entries, ("cover",)), "posted", "skipped", "outcome"]
    shown = dict(found)
    shown["iterations"] = [{name: entry[name] for name in kept} for entry in entries]
    reasons = [entry for entry in entries if entry["reason"]]
    if reasons:
        shown["why_skipped"] = [
            {name: entry[name] for name in (*kept[:1], "iteration", "reason")} for entry in reasons
        ]
    return shown


def _said(entries: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Select the columns that say something in some row."""
    return [name for name in names if any(entry.get(name) for entry in entries)]
