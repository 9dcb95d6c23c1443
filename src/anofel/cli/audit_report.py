"""An audit's report for a person."""

from anofel.audit.report import AuditReport, IterationRecord
from anofel.cli.output import print_table, print_text

_SHORT = 16


def show(report: AuditReport) -> None:
    """Print the report."""
    if not report.ok:
        print_table(
            f"The board “{report.board}” broke rules", ["block", "rule", "about", "reason"], _findings(report)
        )
    print_table(
        f"The board “{report.board}” kept every rule" if report.ok else "What was checked",
        ["", ""],
        [
            ["genesis", report.genesis],
            ["last block", f"{report.height} ({report.tip})"],
            ["registered clients", f"{report.clients} in epoch {report.epochs - 1}"],
            ["sums recomputed", _sums(report)],
            ["blobs checked", str(report.blobs_checked)],
        ],
    )
    if report.postings:
        rows = [[kind, str(number)] for kind, number in report.postings.items()]
        print_table("Postings", ["kind", "number"], rows)
    if report.committees:
        rows = [
            [
                c.key_id[:_SHORT] + "…",
                c.scheme,
                f"{c.threshold} of {len(c.members)}",
                str(c.established_at),
                str(c.handovers),
                "\n".join(f"{number}: {name}" for number, name in enumerate(c.members, start=1)),
            ]
            for c in report.committees
        ]
        print_table(
            "Committees", ["key", "scheme", "opens with", "since block", "handovers", "members"], rows
        )
    if report.tasks:
        rows = [
            [
                t.name,
                t.rule,
                t.contributions,
                str(t.releases),
                "–" if t.epsilon is None else f"{t.epsilon:.3f}",
                "yes" if t.ended else "no",
            ]
            for t in report.tasks
        ]
        columns = ["task", "rule", "contributions", "releases", "ε (zero-out)", "ended"]
        print_table("Tasks", columns, rows)
    if report.iterations:
        columns = [
            "task",
            "iteration",
            "outcome",
            "count",
            "submissions",
            "excluded",
            "count shares",
            "sum shares",
            "sum",
        ]
        rows = [_row(record) for record in report.iterations]
        if any(record.reported for record in report.iterations):
            columns.append("reported by clients")
            rows = [[*row, _reported(r)] for row, r in zip(rows, report.iterations, strict=True)]
        print_table("Iterations", columns, rows)
    for text in report.notes:
        print_text(f"Note: {text}")


def _sums(report: AuditReport) -> str:
    text = str(report.sums_recomputed)
    return f"{text}; {report.sums_pruned} no longer can be" if report.sums_pruned else text


def _findings(report: AuditReport) -> list[list[str]]:
    return [[str(f.height), f.rule, f.about, f.reason] for f in report.findings]


def _row(record: IterationRecord) -> list[str]:
    checked = {True: "recomputed", False: "not verified", None: "–"}[record.sum_checked]
    return [
        record.task,
        str(record.iteration),
        record.outcome,
        _count(record),
        str(record.submissions),
        str(len(record.excluded)),
        _members(record.count_shares_by),
        _members(record.sum_shares_by),
        checked,
    ]


def _count(record: IterationRecord) -> str:
    """Give the count, with those of the groups behind it."""
    if record.count is None:
        return "–"
    groups = "" if record.counts is None else f" ({' + '.join(map(str, record.counts))})"
    return f"{record.count}{groups}"


def _reported(record: IterationRecord) -> str:
    told = record.reported or {}
    return ", ".join(f"{name} {value:.3f}" for name, value in told.items()) or "–"


def _members(numbers: list[int]) -> str:
    return ", ".join(str(number) for number in numbers) or "–"
