from anofel._core import committee as committee
from anofel._core import count as count

__version__: str
