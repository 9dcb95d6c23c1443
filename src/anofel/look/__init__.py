"""``anofel look``: the page of a board that somebody else runs, or that lies in a directory."""
