"""The record of a rollout check: on a terminal, and as a page."""
