"""Options that several commands have, declared once as the fields of a record."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

Command = Callable[..., None]


def spread(*, without_default: tuple[str, ...] = (), **records: type) -> Callable[[Command], Command]:
    """Give a command the fields of records as options, in place of the parameters that take the records.

    ``without_default`` names the ones that a user of this command has to give.
    """
    fields = {name: dict(signature(record, eval_str=True).parameters) for name, record in records.items()}

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_options(**given: Any) -> None:
            made = {
                name: record(**{field: given.pop(field) for field in fields[name]})
                for name, record in records.items()
            }
            command(**given, **made)

        shown = []
        for parameter in signature(command, eval_str=True).parameters.values():
            if parameter.name not in fields:
                shown.append(parameter)
                continue
            for name, option in fields[parameter.name].items():
                default = Parameter.empty if name in without_default else option.default
                shown.append(option.replace(default=default))
        ordered = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in shown]
        with_options.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in ordered}
        return with_options

    return decorate
