from .bar import Bar
