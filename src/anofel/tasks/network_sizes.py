"""How many parameters the paper's networks have, computed without PyTorch.

A task file names a network; everybody who reads it (board, client, auditor) needs its size, but only
those who train need PyTorch. The tests hold each formula against the network itself
(:mod:`anofel.learning.pytorch.networks`).
"""

from anofel.errors import InvalidInput

NETWORKS = ("lenet5", "resnet20-gn", "squeezenet-gn")

RESNET_WIDTHS = (16, 32, 64)
RESNET_BLOCKS = 3
SQUEEZENET_STEM = 96
SQUEEZENET_FIRES = ((128, 16), (128, 16), (256, 32), (256, 32), (384, 48), (384, 48), (512, 64), (512, 64))
"""Outputs and squeezed width of each fire module, in order."""
_SMALLEST_SIDE = {"lenet5": 16, "resnet20-gn": 8, "squeezenet-gn": 8}


def network_size(kind: str, shape: tuple[int, ...], classes: int) -> int:
    """Count the parameters of a network for images of `shape` (height, width, channels).

    Raises ``InvalidInput`` for rows that are not images, or too small.
    """
    smallest = _SMALLEST_SIDE[kind]
    if len(shape) != 3 or min(shape[:2]) < smallest:
        raise InvalidInput(f"The network {kind} needs images of at least {smallest} × {smallest} pixels.")
    height, width, channels = shape
    if kind == "lenet5":
        return _lenet5(height, width, channels, classes)
    return _resnet20(channels, classes) if kind == "resnet20-gn" else _squeezenet(channels, classes)


def lenet5_side(side: int) -> int:
    """Give the side of LeNet5's last feature maps: halve, lose 4 to the 5 × 5 window, halve."""
    return (side // 2 - 4) // 2


def _convolution(inputs: int, outputs: int, window: int) -> int:
    return (inputs * window * window + 1) * outputs


def _dense(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def _normed(inputs: int, outputs: int, window: int) -> int:
    """Count a convolution and the scale and shift of the normalisation after it."""
    return _convolution(inputs, outputs, window) + 2 * outputs


def _lenet5(height: int, width: int, channels: int, classes: int) -> int:
    flat = 16 * lenet5_side(height) * lenet5_side(width)
    convolutions = _convolution(channels, 6, 5) + _convolution(6, 16, 5)
    return convolutions + _dense(flat, 120) + _dense(120, 84) + _dense(84, classes)


def _resnet20(channels: int, classes: int) -> int:
    size, inputs = _normed(channels, RESNET_WIDTHS[0], 3), RESNET_WIDTHS[0]
    for width in RESNET_WIDTHS:
        for _ in range(RESNET_BLOCKS):
            size += _normed(inputs, width, 3) + _normed(width, width, 3)
            size += _normed(inputs, width, 1) if inputs != width else 0
            inputs = width
    return size + _dense(inputs, classes)


def _squeezenet(channels: int, classes: int) -> int:
    size, inputs = _normed(channels, SQUEEZENET_STEM, 3), SQUEEZENET_STEM
    for outputs, squeezed in SQUEEZENET_FIRES:
        size += _normed(inputs, squeezed, 1)
        size += _normed(squeezed, outputs // 2, 1) + _normed(squeezed, outputs // 2, 3)
        inputs = outputs
    return size + _convolution(inputs, classes, 1)
