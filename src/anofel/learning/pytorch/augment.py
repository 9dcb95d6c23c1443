"""Images moved and mirrored by a client before it trains on them (step 4)."""

import torch
from torch import Tensor, nn

from anofel.errors import InvalidInput

SHIFT_SHARE = 8
"""An image moves by up to an eighth of its side, each way; what comes in is zero."""


def augmented(images: Tensor, how: str, coins: torch.Generator) -> Tensor:
    """Shift every image at random, and perhaps mirror it: ``none``, ``shift`` or ``shift-and-flip``."""
    if how == "none":
        return images
    if images.ndim != 4:
        raise InvalidInput("Only images are augmented.")
    count, _, height, width = images.shape
    reach = height // SHIFT_SHARE, width // SHIFT_SHARE
    padded = nn.functional.pad(images, (reach[1], reach[1], reach[0], reach[0]))
    rows = _starts(count, reach[0], coins) + torch.arange(height)
    columns = _starts(count, reach[1], coins) + torch.arange(width)
    if how == "shift-and-flip":
        mirrored = torch.rand((count, 1), generator=coins) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    which = torch.arange(count)[:, None, None]
    chosen = padded.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]]
    return chosen.permute(0, 3, 1, 2).contiguous()


def _starts(count: int, reach: int, coins: torch.Generator) -> Tensor:
    """Draw where each image begins, as a column."""
    return torch.randint(0, 2 * reach + 1, (count, 1), generator=coins)
