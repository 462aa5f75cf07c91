"""A bug report of a run: complete, in the form that a tracker asks for, without what is private."""
