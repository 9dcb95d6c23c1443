"""Prints the environment of its process as JSON."""

import json
import os

print(json.dumps(dict(os.environ)))
