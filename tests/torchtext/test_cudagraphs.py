"""Messages of the cudagraphs logger, as torch 2.6 to 2.13 write them."""

import pytest

from traceview.torchtext.cudagraphs import (
    other_addresses,
    partition_reason,
    partitions_without,
    read_event,
    recorded_for,
    run_id,
    same_addresses,
    skip_cause,
    tree_sizes,
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("skipping cudagraphs due to mutated inputs (2 instances). Found from : \n", "mutation"),
        ("skipping cudagraphs due to cpu device (arg0_1). Found from : \n  mutated inputs", "cpu"),
        ("    op3: reason=DeviceCopy ops, ir=DeviceCopy(mutated inputs)", "copy"),
        ("skipping cudagraphs due to something new", None),
    ],
)
def test_a_cause_is_read_from_the_reason_alone(text, cause):
    assert skip_cause(text) == cause


def test_counts_and_ids():
    assert read_event("skipping cudagraphs due to mutated inputs (2 instances)").count == 2
    assert partitions_without("Created 3 graph partitions: 2 cudagraphable, 1 non-cuda") == 1
    assert partitions_without("Created 3 graph partitions") is None
    assert partition_reason("    op3: reason=cpu ops, ir=x") == "cpu ops"
    assert run_id("[0/1] Running warmup function=FunctionID(id=0)") == "0/1"
    tensor = "[0]: Tensor(size=[{}, 5], data_ptr=0x{})"
    message = f"[0/0] Recording function=partition_0, cuda_graph_id={{}}, inputs: {tensor}"
    first, moved, other = ((0, 45, "7F6B"), (1, 45, "7F00"), (2, 44, "7F6B"))
    same = {recorded_for(message.format(*each)) for each in (first, moved)}
    assert len(same) == 1
    assert recorded_for(message.format(*other)) not in same
    assert recorded_for("[0/1] Recording function 3 of graph recording id 1") is None
    assert tree_sizes("[0/1] Recording cudagraph tree for symint key (16, 7)") == (7, 16)
    assert tree_sizes("Recording cudagraph tree for graph without symints") is None


def test_inputs_of_two_recordings_that_lie_elsewhere():
    text = (
        "[0/0] Recording function=partition_0, cuda_graph_id={id}, inputs: "
        "[0]: Tensor(size=[96], stride=(1,), dtype=torch.float32, data_ptr={a}), "
        "[1]: Tensor(size=[{n}], stride=(1,), data_ptr=0x7F), ... (3 more items)"
    )
    one = text.format(id=1, a="0x10", n=8)
    assert other_addresses(one, text.format(id=2, a="0x20", n=8)) == 1
    assert other_addresses(one, text.format(id=2, a="0x10", n=8)) == 0
    assert other_addresses(one, text.format(id=2, a="0x20", n=9)) == 0
    assert other_addresses(one, "Running warmup") == 0
    assert same_addresses(one, text.format(id=2, a="0x10", n=8))
    assert not same_addresses(one, text.format(id=2, a="0x20", n=8))
    assert not same_addresses(one, "Running warmup")
