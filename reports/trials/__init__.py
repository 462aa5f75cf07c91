"""The results record of trials: on a terminal, and as a page."""
