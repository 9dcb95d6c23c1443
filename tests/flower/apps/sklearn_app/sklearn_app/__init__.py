"""An app that the tests define, as the quickstarts of Flower are laid out."""
