"""Audit: anyone re-derives a board from its genesis and learns whether every rule was kept (D-14).

``audit`` replays every block through the same rules as a node (``anofel.board.chain``) and then
checks what a node does not: that keys follow from the messages of their run, that sums are those of the
accepted payloads, that ε is right, that every blob is there.
"""

from anofel.audit.auditor import AuditFailed, Auditor
from anofel.audit.report import AuditReport, Finding

__all__ = ["AuditFailed", "AuditReport", "Auditor", "Finding"]
