"""How facts become text: numbers, units, names and places are put into words here only.

numbers   durations, sizes, ratios, counts: one way to print each
names     categories, effects, phases, kernels and functions, as a reader of PyTorch knows them
text      text from logs made safe to show, cut and wrapped

Findings, reports and messages use these and format nothing on their own.
"""
