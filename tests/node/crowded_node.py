"""``anofel node run`` with room for so many connections: ``python -m tests.node.crowded_node MOST …``."""

import sys

from anofel.node import serve

if __name__ == "__main__":
    from anofel.cli import main

    serve.MAX_CONNECTIONS = int(sys.argv[1])  # type: ignore[misc]
    sys.argv = ["anofel", "node", "run", *sys.argv[2:]]
    main()
