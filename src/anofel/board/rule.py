"""Rules of admission: numbered sentences, the same words here and in ``docs/board-rules.md``.

A rule is something that must hold. A posting that breaks one is ``Rejected`` with the rule's code;
codes never change once published.
"""

from dataclasses import dataclass
from typing import TypeVar

from anofel.errors import VerificationError

T = TypeVar("T")

RULES: dict[str, "Rule"] = {}
"""All rules by code, in the order of the documentation."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the board."""

    number: str
    code: str
    sentence: str


class Rejected(VerificationError):
    """A posting breaks a rule of the board; ``code`` is the rule's."""

    code = "rejected"

    def __init__(self, rule: Rule, detail: str = "", culprit: str = "") -> None:
        reason = f" {detail}" if detail else ""
        super().__init__(f"Refused by rule {rule.number}: {rule.sentence}{reason}")
        self.code = rule.code
        self.rule = rule
        self.detail = detail
        self.culprit = culprit
        """The role-holder at fault; empty for clients, who have no name."""

    def again(self) -> "Rejected":
        """Return the same refusal to raise once more; an exception collects frames each time it is raised."""
        return Rejected(self.rule, self.detail, self.culprit)


def rule(number: str, code: str, sentence: str) -> Rule:
    """Declare a rule."""
    made = Rule(number, code, sentence)
    if code in RULES or number in {other.number for other in RULES.values()}:
        raise AssertionError(f"The rule {number} ({code}) is declared twice.")
    RULES[code] = made
    return made


def require(condition: bool, broken: Rule, detail: str = "", culprit: str = "") -> None:
    """Raise ``Rejected`` unless the condition holds."""
    if not condition:
        raise Rejected(broken, detail, culprit)


def present(value: T | None, broken: Rule, culprit: str = "") -> T:
    """Return what must be there. Raises ``Rejected``."""
    if value is None:
        raise Rejected(broken, culprit=culprit)
    return value
