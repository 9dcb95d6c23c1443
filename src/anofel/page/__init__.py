"""The page of a board: what anybody may see of it, as documents and as HTML that works without JavaScript."""
