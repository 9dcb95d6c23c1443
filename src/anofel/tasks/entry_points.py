"""Functions of the user's own, named ``module:function`` in a file or an option."""

import pkgutil
from collections.abc import Callable
from typing import Any

from anofel.errors import InvalidInput


def load_function(name: str, what: str) -> Callable[..., Any]:
    """Import a function; ``what`` says whose it is. Raises ``InvalidInput``."""
    try:
        found = pkgutil.resolve_name(name)
    except Exception as error:  # the user's module runs here, so anything may come
        raise InvalidInput(f"{what} '{name}' cannot be imported: {fault(error)}.") from error
    if ":" not in name or not callable(found):
        raise InvalidInput(f"{what} '{name}' must be a function, named as module:function.")
    return found  # type: ignore[no-any-return]


def fault(error: Exception) -> str:
    """Say in one line what the user's own code raised: kind and text."""
    text = str(error).strip().partition("\n")[0].rstrip(". ")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
