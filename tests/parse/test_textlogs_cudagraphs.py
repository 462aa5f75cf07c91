import json

import pytest
from textlog_runs import HEAD, lines, read

TREES = f"V{HEAD}_inductor/cudagraph_trees.py:1] [__cudagraphs]"
UTILS = f"W{HEAD}_inductor/cudagraph_utils.py:330] [0/0] [__cudagraphs]"
SCHEDULER = f"V{HEAD}_inductor/scheduler.py:1] [0/0] [__cudagraphs]"
MUTATION = (
    "skipping cudagraphs due to mutated inputs (2 instances). Found from : \n"
    ' File "/p/train.py", line 12, in step\n    cache.add_(x)\n'
)


def event(folder, prefix, text):
    tables, _ = read(folder, logs=lines(prefix, text))
    return tables["cudagraph_events"].row(0, named=True)


def test_a_skip_names_its_reason_and_the_users_line(tmp_path):
    row = event(tmp_path, UTILS, MUTATION)

    assert row["event"] == "skip"
    assert row["reason"] == "skipping cudagraphs due to mutated inputs (2 instances)"
    assert row["count"] == 2
    assert (row["user_file"], row["user_line"], row["user_function"]) == ("/p/train.py", 12, "step")
    assert json.loads(row["user_stack"])[0]["code"] == "cache.add_(x)"
    assert row["compile_id"] == "0/0"


def test_a_skip_is_a_warning_too(tmp_path):
    tables, _ = read(tmp_path, logs=lines(UTILS, MUTATION))
    warning = tables["warnings"].row(0, named=True)
    assert (warning["kind"], warning["file"], warning["line"]) == (
        "cudagraph_skip",
        "/p/train.py",
        12,
    )


@pytest.mark.parametrize(
    ("prefix", "text", "kind", "count"),
    [
        (UTILS, "skipping cudagraphs due to cpu device (arg0_1)", "skip", None),
        (
            UTILS,
            "skipping cudagraphs due to multiple devices: device(type='cuda', index=0)",
            "skip",
            None,
        ),
        (UTILS, "disabling cudagraphs due to override_cudagraphs annotation", "skip", None),
        (TREES, "Recording cudagraph tree for graph without symints", "tree", None),
        (TREES, "[0/0] Recording cudagraph tree for symint key (9,)", "tree", None),
        (TREES, "[1/0] Running warmup function=partition_0", "warmup", None),
        (
            TREES,
            "[1/0] Recording function=f, mode=FORWARD, cuda_graph_id=3, inputs: ",
            "record",
            None,
        ),
        (
            TREES,
            "[1/0] Re-recording function=f, mode=FORWARD, reason=static input",
            "rerecord",
            None,
        ),
        (
            TREES,
            "Checkpointing cuda caching allocator state. Number of checkpoints 4",
            "checkpoint",
            4,
        ),
        (
            SCHEDULER,
            "Created 3 graph partitions: 2 cudagraphable, 1 non-cudagraphable",
            "partition",
            3,
        ),
        (
            SCHEDULER,
            "  Partition 0: 2 nodes, cudagraphable, inputs=3, outputs=4",
            "partition",
            None,
        ),
        (
            UTILS,
            "CUDAGraph supports dynamic shapes by recording a new graph for each distinct input "
            "size. Recording too many CUDAGraphs may lead to extra overhead. We have observed 9 "
            "distinct sizes.",
            "dynamic_shapes",
            9,
        ),
        (UTILS, "something new", "other", None),
    ],
)
def test_kinds_of_events(tmp_path, prefix, text, kind, count):
    row = event(tmp_path, prefix, text)
    assert (row["event"], row["count"], row["reason"]) == (kind, count, text.strip())


def test_the_rerecord_limit_names_function_and_limit(tmp_path):
    text = (
        "skipping cudagraph due to function 5 exceeding max re-recording limit (=128) on cudagraph "
        "node None due to static input data pointer changed.\ninput name: primals_1. data pointer "
        'changed from 1 to 2. input stack trace: File "/p/t.py", line 3, in f\n.'
    )
    row = event(tmp_path, UTILS, text)
    assert (row["event"], row["function_id"], row["count"]) == ("rerecord_limit", 5, 128)


def test_a_splitting_nodes_stack_is_put_together_from_its_lines(tmp_path):
    text = (
        "Created 2 graph partitions: 1 cudagraphable, 1 non-cudagraphable\n"
        "  Partition 0: 1 nodes, non-cudagraphable, inputs=1, outputs=1\n"
        "    op2: reason=cpu ops, ir=ComputedBuffer, fx=aten.add.Tensor(x)\n"
        '           File "/p/t.py", line 8, in f\n'
        "             y = x.cpu() + 1"
    )
    tables, _ = read(tmp_path, logs=lines(SCHEDULER, text))

    found = tables["cudagraph_events"].to_dicts()
    assert [row["event"] for row in found] == ["partition"] * 3
    assert [row["user_line"] for row in found] == [None, None, 8]


def test_an_overwritten_output_without_its_beginning_is_an_event_too(tmp_path):
    stderr = "Error: acc ssing tensor output of CUDAGraphs that has been overwritten by a run.\n"
    tables, damage = read(tmp_path, stderr=stderr * 2)
    assert tables["cudagraph_events"].height == 2
    assert damage.total == 0


def test_an_overwritten_output_is_found_in_a_traceback(tmp_path):
    stderr = (
        "Traceback (most recent call last):\n"
        '  File "/p/t.py", line 9, in <module>\n    print(first)\n'
        "RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a "
        'subsequent run. Stack trace: File "/p/t.py", line 4, in f\n    return x * 2. To prevent '
        "overwriting, clone the tensor outside of torch.compile() or call "
        "torch.compiler.cudagraph_mark_step_begin() before each model invocation.\n"
    )
    tables, _ = read(tmp_path, stderr=stderr)

    row = tables["cudagraph_events"].row(0, named=True)
    assert (row["event"], row["origin"], row["raw_line"]) == ("overwritten", "stderr", 4)
    assert (row["user_file"], row["user_line"], row["user_function"]) == ("/p/t.py", 4, "f")
