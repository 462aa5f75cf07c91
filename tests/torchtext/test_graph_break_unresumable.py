"""A break that Dynamo cannot resume from keeps its own type, not that of the words around it."""

from traceview.torchtext.graph_breaks import parse_graph_break

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


def test_a_failing_backend_names_the_line_of_the_operator():
    """The frame's own stack ends where the compiled function was called."""
    found = parse_graph_break(
        "Graph break in user code at /home/me/sample.py:50\n"
        "Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and "
        "falling back to eager. Graph break encountered:\n\n"
        "Backend compiler exception\n"
        "  Explanation: Backend compiler `inductor` failed with aten._local_scalar_dense.default\n"
        "    \n"
        "    While executing %a : [num_users=1] = call_function[target=operator.getitem]\n"
        "    Original traceback:\n"
        '      File "/home/me/sample.py", line 31, in update\n'
        "        a, bar = self.alpha[t], self.alpha_bar[t]\n"
        "  Hint: Report an issue to the backend compiler repo.\n"
        "  Developer debug context: Backend: inductor\n"
        "User code traceback:\n"
        '  File "/home/me/sample.py", line 50, in main\n'
        "    x = step(x, noise, t)\n"
    )
    assert [(frame.line, frame.function) for frame in found.stack] == [(50, "main"), (31, "update")]
    assert found.frame_skipped
