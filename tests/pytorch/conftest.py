"""One thread: several on few cores make PyTorch slower, and tests run side by side."""

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
