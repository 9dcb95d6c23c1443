"""A task as its owner writes it: the document, the schema of its rows, the sizes of its models."""
