"""The story of a job: what a post-mortem's report adds to that of one rank.

words       names and phrases
pictures    compile seconds by rank
timeline    all ranks on one axis
terminal    a screen of lines
markdown    a ticket

The HTML page is ``templates/job.html.j2``. All of them write ``Diagnosis.job`` down and compute
nothing but places on a picture.
"""
