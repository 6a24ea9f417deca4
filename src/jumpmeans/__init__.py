"""jumpmeans."""
