//! Nothing is built; `fetch.py` wants the sources of a dependency.
