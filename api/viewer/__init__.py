"""The web viewer: pages over the questions that the read API answers, rendered here, with a little script."""
