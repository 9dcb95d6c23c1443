"""A task's privacy in one word, by what an adversary gains; and what to change if it is too little.

The adversary knows everything but which of two records (or clients) took part, and sees every sum. By chance
it is right 50 times in 100. Rules, in the same words in ``docs/privacy.md``:

1. Strong: it is right at most 60 times in 100.
2. Moderate: at most 75 times.
3. Weak: at most 95 times.
4. None: more often, or nothing is proven.
5. Where fewer than 100 clients cannot have the unit client, because it is weak or drowns the update in noise,
   the unit record is suggested.
6. Nothing is suggested that cannot be: a number of releases below one is none.
"""

from typing import Any, Final

WORDS: Final = (("strong", 0.60), ("moderate", 0.75), ("weak", 0.95))
"""The word for each share of right guesses, the best first."""
NONE: Final = "none"
MANY_CLIENTS: Final = 100


def verdict(report: dict[str, Any]) -> dict[str, Any]:
    """Judge a report of :func:`anofel.privacy.explain.explain`."""
    if "paper" in report:
        return {"word": NONE, "right_guesses": None, "suggestion": "Use the unit 'record' or 'client'."}
    gamma = report["gamma"]
    exact = gamma["exact_for_gaussian"]
    advantage = gamma["bound"] if exact is None else min(exact, gamma["bound"])
    right = (1 + advantage) / 2
    word = next((word for word, most in WORDS if right <= most), NONE)
    return {"word": word, "right_guesses": right, "suggestion": _suggestion(report, word)}


def _suggestion(report: dict[str, Any], word: str) -> str | None:
    clients, drowned = report["expected_clients"], report["noise"]["relative_to_signal"] >= 1
    is_weak = word in ("weak", NONE)
    if report["unit"] == "client" and clients < MANY_CLIENTS and (is_weak or drowned):  # (5)
        why = "this noise is louder than all they say" if drowned else "this noise does not hide one of them"
        return (
            f"{clients} clients are too few to hide a whole client in a sum that still teaches something: "
            f'{why}. Use unit = "record", which hides every single row; it needs algorithm = "fedsgd" and '
            "records_per_client."
        )
    if is_weak:
        return "Ask for more noise or fewer releases: anofel privacy TASK --target-epsilon 2."
    return None
