"""Commands that the report gives to paste."""

import pytest

from traceview.diagnosis.ruling import of_target, with_target
from traceview.rules.finding import Cost, Evidence, Finding, Snippet
from traceview.run import Manifest

SCRIPT = Manifest(target=["train.py", "--name", "a b"])
MODULE = Manifest(target=["pkg.train"], target_kind="module")
RANKS = Manifest(target=["train.py"], nproc=2)
LOGS = Manifest(target=["logs.tar.xz"], target_kind="logs", nproc=2)


@pytest.mark.parametrize(
    ("command", "manifest", "text"),
    [
        ("traceview diagnose --warm SCRIPT", SCRIPT,
         "traceview diagnose --warm train.py --name 'a b'"),
        ("TORCH_TRACE=DIR python SCRIPT", MODULE, "TORCH_TRACE=DIR python -m pkg.train"),
        ("traceview diagnose --warm SCRIPT", RANKS,
         "traceview diagnose --nproc-per-node 2 --warm train.py"),
        ("TORCH_TRACE=DIR python SCRIPT", RANKS,
         "TORCH_TRACE=DIR torchrun --nproc-per-node 2 train.py"),
        ("TORCH_TRACE=DIR python SCRIPT", Manifest(), "TORCH_TRACE=DIR python SCRIPT"),
        ("TORCH_TRACE=DIR python SCRIPT", LOGS, "TORCH_TRACE=DIR python SCRIPT"),
    ],
)  # fmt: skip
def test_the_command_is_about_the_target_of_the_run(command, manifest, text):
    assert of_target(command, manifest) == text


@pytest.mark.parametrize(
    ("language", "text"), [("shell", "run train.py"), ("python", "run SCRIPT")]
)
def test_what_a_finding_has_to_paste(language, text):
    finding = Finding(
        code="TV903", rule="bm-noise", severity="info", title="", explanation="", cost=Cost(),
        confidence="measured", location=None, evidence=(Evidence("", "runs"),), what_to_do="",
        snippet=Snippet(language, "run SCRIPT"),
    )  # fmt: skip
    assert with_target(finding, RANKS).snippet.text == text
