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
            ]
            for c in report.committees
        ]
        print_table("Committees", ["key", "scheme", "opens", "since block", "handovers"], rows)
        for c in report.committees:
            people = [[str(number), name] for number, name in enumerate(c.members, start=1)]
            print_table(f"Members of {c.key_id[:_SHORT]}…", ["", "name"], people)
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
        columns = ["task", "rule", "contributions", "releases", "ε", "ended"]
        print_table("Tasks, with ε by zero-out", columns, rows)
    for name in dict.fromkeys(record.task for record in report.iterations):
        _show_iterations(name, [record for record in report.iterations if record.task == name])
    for text in report.notes:
        print_text(f"Note: {text}")


def _show_iterations(task: str, records: list[IterationRecord]) -> None:
    """Print a task's own; what clients reported stands apart: a narrow terminal has no room for both."""
    columns = ["iteration", "outcome", "count", "posts", "left\nout", "count\nby", "sum\nby", "the sum was"]
    print_table(f"Iterations of {task}", columns, [_row(record) for record in records])
    if any(record.reported for record in records):
        told = [[str(record.iteration), _reported(record)] for record in records]
        print_table(f"Reported by the clients of {task}", ["iteration", "noisy means"], told)


def _sums(report: AuditReport) -> str:
    text = str(report.sums_recomputed)
    return f"{text}; {report.sums_pruned} no longer can be" if report.sums_pruned else text


def _findings(report: AuditReport) -> list[list[str]]:
    return [[str(f.height), f.rule, f.about, f.reason] for f in report.findings]


def _row(record: IterationRecord) -> list[str]:
    checked = {True: "recomputed", False: "not checked", None: "–"}[record.sum_checked]
    return [
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
