"""Where the milliseconds of a step go, in both stances: accounting that closes.

accounting   rows of both stances, on the step as timed
device       busy and idle time of a device
host         time of the thread that runs the steps
"""
