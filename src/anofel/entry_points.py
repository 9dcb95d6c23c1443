"""Functions of the user's own, named ``module:function`` in a file or an option."""

import pkgutil
from collections.abc import Callable
from typing import Any

from anofel.errors import InvalidInput


def load_function(name: str, what: str) -> Callable[..., Any]:
    """Import a function; ``what`` says whose it is. Raises ``InvalidInput``."""
    try:
        found = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(f"{what} '{name}' cannot be imported: {error}.") from None
    if ":" not in name or not callable(found):
        raise InvalidInput(f"{what} '{name}' must be a function, named as module:function.")
    return found  # type: ignore[no-any-return]
