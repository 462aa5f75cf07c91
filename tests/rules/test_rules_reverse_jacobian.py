"""Jacobians in reverse mode: when forward mode needs less, and what it saves."""

import pytest

from traceview.rules import ind_reverse_jacobian


def found(make, outputs, inputs, nodes=("_autograd_grad",), basis=None):
    basis = basis or f"{outputs}, {outputs}"
    text = f"""
    def forward(self, L_x_: "f32[8, {inputs}][{inputs}, 1]cpu"):
        out: "f32[{outputs}][1]cpu" = self.f(L_x_)
        basis: "f32[{basis}][1, 1]cpu" = torch.eye({outputs})
        _add_batch_dim: "f32[{outputs}][1]cpu" = torch._functorch.predispatch._add_batch_dim(basis, 0, 2)
        _autograd_grad = torch._functorch.eager_transforms._autograd_grad([out], [L_x_], [_add_batch_dim])
        batched_outputs: "f32[{inputs}][1]cpu" = _autograd_grad[0]
        return (batched_outputs,)
"""  # noqa: E501 - as torch writes it
    kernel = {"stance": "compiled", "compile_id": "0/0", "ms": 2.0, "file": "/srv/a.py", "line": 3}
    tables = make(
        graphs=[{"compile_id": "0/0", "kind": "dynamo_output", "text": text}],
        matched_kernels=[
            kernel | {"source_nodes": list(nodes)},
            kernel | {"source_nodes": ["out"]},
        ],
        speedups=[{"eager_ms": 4.0, "compiled_ms": 4.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 4.0}],
    )
    return list(ind_reverse_jacobian.check(tables))


def test_forward_mode_saves_what_outputs_cost_beyond_the_inputs(make):
    (finding,) = found(make, outputs=40, inputs=4)
    assert finding.cost.ms_per_step == pytest.approx(1.8)  # of 2 ms; the other kernel stays
    assert finding.title == (
        "A Jacobian at a.py:3 of 40 outputs by 4 inputs is made in reverse mode: up to 1.80 ms, "
        "45 % of the step"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"outputs": 4, "inputs": 4},
        {"outputs": 40, "inputs": 4, "nodes": ("sum_1",)},  # no kernel computes it
        {"outputs": 40, "inputs": 4, "basis": "3, 40"},  # gradients of three, no Jacobian
    ],
)
def test_reverse_mode_is_right(make, given):
    assert found(make, **given) == []
