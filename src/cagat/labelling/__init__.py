"""Label a graph in the browser: suggestions, a model in the background, and labels that are on disk at once."""
