from anofel._core import noise as noise
from anofel._core import update_rule as update_rule

__version__: str
