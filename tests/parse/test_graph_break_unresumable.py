"""A break that Dynamo cannot resume from keeps its own type, not that of the words around it."""

from traceview.parse.graph_break_text import parse_graph_break

TEXT = """\
Graph break in user code at /u/train.py:7
Graph Break Reason: Encountered graph break that we cannot resume from. Compiling up to the \
previous resumable state, then skipping the rest of the function. Graph break encountered:

Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()`.
  Developer debug context: call_method TensorVariable() item () {}

 For more details about this graph break, please visit: https://x/gb/gb0124.html
User code traceback:
  File "/u/train.py", line 7, in forward
    y = y[:n]
"""


def test_the_type_stands_behind_the_preamble():
    found = parse_graph_break(TEXT)
    assert found.gb_type == "Unsupported Tensor.item() call with capture_scalar_outputs=False"
    assert (found.gb_id, found.user_line, found.frame_skipped) == ("GB0124", 7, False)
