from anofel._core import noise as noise
from anofel._core import update_rule as update_rule

__all__ = ["__version__", "noise", "update_rule"]
__version__: str
