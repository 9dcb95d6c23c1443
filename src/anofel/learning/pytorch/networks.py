"""The networks of the paper's experiments (AnoFel §5), with GroupNorm where they had BatchNorm.

BatchNorm keeps running statistics outside its parameters and mixes the records of a batch; neither
survives federated averaging, let alone clipping record by record. Pixels come as 0 … 1; each network
first moves them to −1 … 1.

GroupNorm leaves every channel a mean of its own, and rectified maps carry it on: after many layers the first
model would answer nearly the same to all images, and clients with few steps an iteration would not get
away from that. So filters start without a mean, residual blocks as their shortcut, and SqueezeNet, which
had no norm at all, normalises after rectifying.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from anofel.tasks.network_sizes import (
    RESNET_BLOCKS,
    RESNET_WIDTHS,
    SQUEEZENET_FIRES,
    SQUEEZENET_STEM,
    lenet5_side,
)

_CHANNELS_PER_GROUP = 8


class LeNet5(nn.Module):
    """LeNet5 with tanh, as in 1998 and as private training prefers: its activations are bounded."""

    def __init__(self, height: int, width: int, channels: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.dense1 = nn.Linear(16 * lenet5_side(height) * lenet5_side(width), 120)
        self.dense2 = nn.Linear(120, 84)
        self.dense3 = nn.Linear(84, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Give one logit per class."""
        # tanh rises, so pooling first gives the same maps and leaves it a quarter of the values
        maps = torch.tanh(nn.functional.max_pool2d(self.conv1(_centred(images)), 2))
        maps = torch.tanh(nn.functional.max_pool2d(self.conv2(maps), 2))
        hidden = torch.tanh(self.dense2(torch.tanh(self.dense1(maps.flatten(1)))))
        logits: Tensor = self.dense3(hidden)
        return logits


class ResidualBlock(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut, which is a 1 × 1 convolution where the width changes."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.first = _normed(inputs, outputs, 3, stride)
        self.second = _normed(outputs, outputs, 3, gain=0)
        self.shortcut = nn.Identity() if stride == 1 else _normed(inputs, outputs, 1, stride)

    def forward(self, maps: Tensor) -> Tensor:
        """Add the shortcut to the two convolutions."""
        inner = self.second(torch.relu(self.first(maps)))
        return torch.relu(inner + self.shortcut(maps))


class ResNet20(nn.Module):
    """ResNet20: three stages of three residual blocks."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.stem = _normed(channels, RESNET_WIDTHS[0], 3)
        blocks, inputs = [], RESNET_WIDTHS[0]
        for width in RESNET_WIDTHS:
            for _ in range(RESNET_BLOCKS):
                blocks.append(ResidualBlock(inputs, width))
                inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.dense = nn.Linear(inputs, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Give one logit per class."""
        maps = self.blocks(torch.relu(self.stem(_centred(images))))
        logits: Tensor = self.dense(maps.mean(dim=(2, 3)))
        return logits


class Fire(nn.Module):
    """Squeeze to few channels, expand by 1 × 1 and 3 × 3 convolutions; a shortcut where the width stays."""

    def __init__(self, inputs: int, outputs: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze = _normed(inputs, squeezed, 1)
        self.expand1 = _normed(squeezed, outputs // 2, 1)
        self.expand3 = _normed(squeezed, outputs // 2, 3)
        self.keeps_width = inputs == outputs

    def forward(self, maps: Tensor) -> Tensor:
        """Join both expansions."""
        few = _rectified(self.squeeze, maps)
        joined = torch.cat([_rectified(self.expand1, few), _rectified(self.expand3, few)], dim=1)
        return joined + maps if self.keeps_width else joined


class SqueezeNet(nn.Module):
    """SqueezeNet for small images: a stem, eight fire modules with three poolings, a 1 × 1 classifier."""

    POOL_BEFORE = frozenset({0, 3, 7})

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.stem = _normed(channels, SQUEEZENET_STEM, 3)
        fires, inputs = [], SQUEEZENET_STEM
        for outputs, squeezed in SQUEEZENET_FIRES:
            fires.append(Fire(inputs, outputs, squeezed))
            inputs = outputs
        self.fires = nn.ModuleList(fires)
        self.classify = nn.Conv2d(inputs, classes, 1)
        nn.init.normal_(self.classify.weight, std=0.01)

    def forward(self, images: Tensor) -> Tensor:
        """Give one logit per class."""
        maps = _rectified(self.stem, _centred(images))
        for place, fire in enumerate(self.fires):
            maps = fire(nn.functional.max_pool2d(maps, 2) if place in self.POOL_BEFORE else maps)
        logits: Tensor = self.classify(maps)
        return logits.mean(dim=(2, 3))


def make_network(kind: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Make a network by the name it has in task files, for images of `shape` (height, width, channels)."""
    height, width, channels = shape
    makers: dict[str, Callable[[], nn.Module]] = {
        "lenet5": lambda: LeNet5(height, width, channels, classes),
        "resnet20-gn": lambda: ResNet20(channels, classes),
        "squeezenet-gn": lambda: SqueezeNet(channels, classes),
    }
    return makers[kind]()


def _centred(images: Tensor) -> Tensor:
    return 2 * images - 1


def _rectified(layers: nn.Sequential, maps: Tensor) -> Tensor:
    """Convolve, rectify, then normalise."""
    convolution, norm = layers
    normed: Tensor = norm(torch.relu(convolution(maps)))
    return normed


def _normed(inputs: int, outputs: int, window: int, stride: int = 1, gain: float = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, window, stride=stride, padding=window // 2)
    norm = nn.GroupNorm(outputs // _CHANNELS_PER_GROUP, outputs)
    with torch.no_grad():
        convolution.weight -= convolution.weight.mean(dim=(1, 2, 3), keepdim=True)
        assert convolution.bias is not None
        convolution.bias.zero_()
        norm.weight.fill_(gain)
    return nn.Sequential(convolution, norm)
