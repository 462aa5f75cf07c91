"""Which scenario shows which rule, and at which line of the script the finding must point."""

import json
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

RUNS = Path(__file__).resolve().parents[2] / "fixtures" / "runs"


def recorded():
    """The names in the index of recorded runs."""
    index = RUNS / "INDEX.json"
    return set(json.loads(index.read_text())) if index.exists() else set()


class Scenario(NamedTuple):
    """``name`` is GROUP/NAME; ``line`` is text of the line that the finding names."""

    name: str
    line: str | None = None

    @property
    def run(self):
        return self.name.replace("/", "-")


def on(group, *entries):
    return tuple(Scenario(f"{group}/{name}", line) for name, line in entries)


def good(*names):
    return tuple(Scenario(name) for name in names)


def _shown():
    """The tables of every module shown_*.py beside this one: rule → (bad, good) scenarios."""
    modules = sorted(path.stem for path in Path(__file__).parent.glob("shown_*.py"))
    return {
        rule: scenarios
        for name in modules
        for rule, scenarios in import_module(name).SCENARIOS.items()
    }


HEALTHY = (
    "pointwise", "mlp_training", "two_shapes", "int_argument", "lr_scheduler", "custom_op",
    "eval_no_grad", "dynamic_shapes", "train_eval", "bf16_autocast", "submodule_only",
    "large_gemm",
)  # fmt: skip
SCENARIOS = _shown()
