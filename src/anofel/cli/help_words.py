"""How help reads: whole paragraphs, words for what a value is, square brackets as they are written."""

import inspect
from typing import Final

import typer
from typer import rich_utils
from typer.core import TyperArgument, TyperOption

_WORDS: Final = {
    "str": "text",
    "int": "number",
    "float": "number",
    "Path": "path",
    "path": "path",
    "datetime": "date",
}
_ANY: Final = 2**31
"""A bound beyond this is that of a field of a message; nobody gets there."""


def tidy(app: typer.Typer) -> None:
    """Let the help of all commands fill its lines, wherever a docstring breaks them."""
    for command in app.registered_commands:
        command.help = _paragraphs(command.help or inspect.getdoc(command.callback) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            tidy(group.typer_instance)


def _paragraphs(text: str) -> str:
    # Rich takes square brackets for markup: anofel[plot] would lose its end.
    whole = (" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))
    return "\n\n".join(whole).replace("[", r"\[")


def _value(option: TyperOption | TyperArgument, ctx: typer.Context) -> str | None:  # noqa: ARG001
    """Say what a value is, with its bounds: ``<text>``, ``<4 to 64>``; a flag takes none."""
    if getattr(option, "is_flag", False):
        return None
    if option.metavar is not None:
        return option.metavar
    low, high = getattr(option, "min", None), getattr(option, "max", None)
    if high is not None and high < _ANY:
        return f"<up to {high:g}>" if low is None else f"<{low:g} to {high:g}>"
    if low is not None:
        return f"<{low:g} or more>"
    name = option.bare_type()
    inner = name.removeprefix("list[").removesuffix("]")
    word = f"<{_WORDS.get(inner, inner)}>"
    return f"{word} …" if inner != name else word


def _usage(argument: TyperArgument, _ctx: typer.Context) -> list[str]:
    """Write an argument as manuals do: ``MODEL``, ``[TASKS]…``."""
    name = getattr(argument, "display_name_raw", argument.name).upper()
    shown = name if argument.required else f"[{name}]"
    return [shown if argument.nargs == 1 else f"{shown}…"]


def use_words() -> None:
    """Tell typer, which has no setting for these; one before 0.29 has other words for values."""
    TyperOption.display_type_rich = _value  # type: ignore[assignment, method-assign]
    TyperArgument.display_type_rich = _value  # type: ignore[assignment, method-assign]
    TyperArgument.get_usage_pieces = _usage  # type: ignore[assignment, method-assign]
    rich_utils.RANGE_STRING = ""
