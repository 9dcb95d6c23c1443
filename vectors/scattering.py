"""Write scattering.json: coefficients of a made-up image by kymatio 0.3.0, which is not ours.

Run: pip install kymatio==0.3.0 (and a SciPy that still has sph_harm), then python vectors/scattering.py
"""

import json
from pathlib import Path

import numpy as np
from kymatio.numpy import Scattering2D

HEIGHT, WIDTH = 16, 12


def main() -> None:
    """Write the file beside this one."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    image = (7 * y + 13 * x + 9 * ((y * x) % 11)) % 256
    found = Scattering2D(J=2, L=8, shape=image.shape)(image / 256)
    content = {
        "made_by": "kymatio 0.3.0, Scattering2D(J=2, L=8), of image / 256",
        "image": image.tolist(),
        "coefficients": np.round(found, 6).tolist(),
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(content) + "\n")


main()
