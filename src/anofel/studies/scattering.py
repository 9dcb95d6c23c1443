"""The scattering transform of images (Bruna and Mallat 2013): fixed wavelets, so nothing private is learned.

A public transform of a schema: a linear model on it learns images with far less noise than a network does.
Two layers at two scales and eight orientations; then each group of three channels of an image is moved
to mean zero and variance one, so that every image has features of nearly the same norm.

Written by hand: the only package for it, kymatio, has had no release since 2022 and does not load beside
today's SciPy. The tests compare with its coefficients.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anofel.tasks.schema import SCATTERING_CHANNELS, SCATTERING_STRIDE, scattering_shape

Real = NDArray[np.float32]
Waves = NDArray[np.complexfloating[Any, Any]]

_ORIENTATIONS = 8
_SIGMA = 0.8
"""Of the finest wavelet, in pixels."""
_FREQUENCY = 0.75 * np.pi
"""Of the finest wavelet, in radians a pixel."""
_SLANT = 4 / _ORIENTATIONS
_GROUP = 3
"""Channels that are normalised together."""
_LEAST_VARIANCE = 1e-5
_CHUNK = 64
"""Planes that are transformed at once."""


def scattered(images: NDArray[np.uint8]) -> Real:
    """Transform images (rows, height, width, channels); one flat row of norm one (or less) for each."""
    count, height, width, channels = images.shape
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(-1, height, width)
    found = np.empty((len(planes), SCATTERING_CHANNELS, *scattering_shape(height, width)), np.float32)
    for start in range(0, len(planes), _CHUNK):
        chunk = planes[start : start + _CHUNK].astype(np.float32) / np.float32(256)
        found[start : start + _CHUNK] = coefficients(chunk)
    return _normalised(found.reshape(count, channels * SCATTERING_CHANNELS // _GROUP, -1))


def coefficients(planes: Real) -> Real:
    """Give the coefficients of planes of one channel: smoothed, then the 16 and the 64 moduli, smoothed."""
    margin, (height, width) = SCATTERING_STRIDE, planes.shape[1:]
    grown = [-(-side // SCATTERING_STRIDE) * SCATTERING_STRIDE - side for side in (height, width)]
    padding = [(0, 0), *((margin, margin + more) for more in grown)]
    padded = np.pad(planes, padding, mode="reflect")
    size = padded.shape[1:]
    found = [_smoothed(padded, 1)]
    spectrum = np.fft.fft2(padded)
    first = [_modulus(spectrum, wavelet) for wavelet in _wavelets(size, 0)]
    found += [_smoothed(part, 1) for part in first]
    found += [_smoothed(_modulus(_folded(spectrum * w)), 2) for w in _wavelets(size, 1)]
    for part in first:
        again = np.fft.fft2(part)
        found += [_smoothed(_modulus(_folded(again * w)), 2) for w in _wavelets(size, 1)]
    return np.stack(found, axis=1)


def _modulus(spectrum: Waves, wavelet: Real | None = None) -> Real:
    waves = np.fft.ifft2(spectrum if wavelet is None else spectrum * wavelet)
    modulus: Real = np.abs(waves).astype(np.float32, copy=False)
    return modulus


def _folded(spectrum: Waves) -> Waves:
    """Take every second sample of each side, in frequencies."""
    count, height, width = spectrum.shape
    halves = spectrum.reshape(count, 2, height // 2, 2, width // 2)
    folded: Waves = halves.sum(axis=(1, 3)) / np.float32(4)
    return folded


def _smoothed(maps: Real, step: int) -> Real:
    """Smooth with a Gaussian, take every fourth sample of the image, and leave the margin out."""
    rows, columns = (_smoothing(side, step) for side in maps.shape[1:])
    smoothed: Real = (rows @ maps @ columns.T).astype(np.float32, copy=False)
    return smoothed


@cache
def _smoothing(side: int, step: int) -> Real:
    """Make the matrix that smooths one side of maps whose samples are `step` pixels apart."""
    stride = SCATTERING_STRIDE // step
    centres = np.arange(stride, side - stride, stride)[:, None]
    distance = np.abs(np.arange(side)[None, :] - centres)
    weights = np.exp(-((np.minimum(distance, side - distance) * step / (2 * _SIGMA)) ** 2) / 2)
    matrix: Real = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return matrix


@cache
def _wavelets(size: tuple[int, int], scale: int) -> tuple[Real, ...]:
    """Make the Morlet wavelets of a scale, in frequencies; these are real."""
    return tuple(
        _morlet(size, _SIGMA * 2**scale, _FREQUENCY / 2**scale, np.pi * (turn + 1) / _ORIENTATIONS)
        for turn in range(_ORIENTATIONS)
    )


def _morlet(size: tuple[int, int], sigma: float, frequency: float, angle: float) -> Real:
    """Make a wave under a slanted Gaussian, without a mean, that repeats with the size."""
    height, width = size
    wave, envelope = np.zeros(size, np.complex128), np.zeros(size, np.float64)
    for down in (-2, -1, 0, 1, 2):
        for right in (-2, -1, 0, 1, 2):
            y, x = np.mgrid[down * height : (down + 1) * height, right * width : (right + 1) * width]
            along, across = (
                x * np.cos(angle) + y * np.sin(angle),
                y * np.cos(angle) - x * np.sin(angle),
            )
            part = np.exp(-(along**2 + (across * _SLANT) ** 2) / (2 * sigma**2))
            wave += part * np.exp(1j * frequency * along)
            envelope += part
    scaled = (wave - envelope * (wave.sum() / envelope.sum())) * _SLANT / (2 * np.pi * sigma**2)
    spectrum: Real = np.fft.fft2(scaled).real.astype(np.float32)
    return spectrum


def _normalised(groups: Real) -> Real:
    """Move every group of an image to mean zero and variance one, and the image to norm one."""
    groups -= groups.mean(axis=2, keepdims=True)
    groups /= np.sqrt((groups**2).mean(axis=2, keepdims=True) + np.float32(_LEAST_VARIANCE))
    flat: Real = groups.reshape(len(groups), -1)
    flat /= np.float32(np.sqrt(flat.shape[1]))
    return flat
