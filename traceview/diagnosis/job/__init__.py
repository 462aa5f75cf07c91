"""The story of a job: what all its ranks did, for post-mortems."""
