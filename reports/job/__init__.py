"""The story of a job: what a post-mortem's report adds to that of one rank.

words       names and phrases
pictures    compile seconds by rank, all ranks on one axis

The pages are ``templates/job.html.j2`` and ``templates/report.md.j2``. All of them write
``Diagnosis.job`` down and compute nothing but places on a picture.
"""
