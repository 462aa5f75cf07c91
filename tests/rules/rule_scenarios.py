"""Which scenario shows which rule, read from the scripts below fixtures/scenarios themselves.

A comment at the end of a line says that the finding must name that line:

    peak = y.abs().max().item()  # finding: gb-item
    self.step += 1  # finding: rc-limit-hit, rc-module-int-attr

Behind the script's docstring it says that the finding names no line: it is about the whole script.
A rule must stay silent on ``good/<rule's name>*.py``, and on ``gpu/NAME_good.py`` where
``gpu/NAME.py`` shows it. Archives need not be recorded again when only such a comment changes.
"""

import ast
import json
import re
from pathlib import Path
from typing import NamedTuple

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SCRIPTS = FIXTURES / "scenarios"
RUNS = FIXTURES / "runs"
HEALTHY = (
    "pointwise", "mlp_training", "two_shapes", "int_argument", "lr_scheduler", "custom_op",
    "eval_no_grad", "dynamic_shapes", "train_eval", "bf16_autocast", "submodule_only",
    "large_gemm", "two_callables", "backends_loop", "worker_threads",
)  # fmt: skip

#: Scripts recorded for something else on which a rule must stay silent too, because they come close
#: to what it finds. No script can say so of itself, as any rule may be silent on it; a new rule
#: needs no line here.
SILENT_TOO = {
    "acc-backend-bug": "bad/acc_rng bad/acc_low_precision",
    "acc-low-precision": "bad/acc_rng bad/acc_backend_bug",
    "acc-rng": "bad/acc_low_precision bad/acc_backend_bug",
    "ap-grad-inference": "healthy/eval_no_grad healthy/mlp_training gpu/transformer_training "
    "gpu/pointwise",
    # gpu/ap_host_sync reads each loss, too; but its GPU works 9 % of a step, and hardly ever has
    # anything left to do when the host comes to wait: that costs 0.3 % of the step.
    "ap-host-sync": "gpu/ap_host_sync gpu/transformer_training gpu/launch_bound gpu/cg_skip_cpu",
    "ap-launch-bound": "gpu/reduce_overhead gpu/gemm_bound",
    "ind-reverse-jacobian": "healthy/mlp_training healthy/eval_no_grad",
    "ap-many-tensors": "bad/ap_call_overhead healthy/mlp_training healthy/lr_scheduler",
    "ap-not-in-model": "healthy/mlp_training healthy/lr_scheduler gpu/transformer_training",
    "bm-no-break-even": "bad/ap_gemm_bound",
    "bm-no-sync": "gpu/gemm_bound gpu/tf32_off gpu/missed_epilogue gpu/ap_host_sync",
    "bm-noise": "gpu/pointwise gpu/gemm_bound gpu/transformer_training",
    "cap-bad-args": "bad/cap_toolchain_missing",
    "cap-compile-crash": "bad/cap_suppressed_failure bad/gb_item bad/cap_toolchain_missing",
    "cap-customop-no-fake": "healthy/custom_op bad/cap_suppressed_failure",
    "cap-nothing-captured": "bad/gb_fragmented",
    "cap-toolchain-missing": "bad/cap_customop_no_fake",
    "cg-copied-input": "gpu/reduce_overhead gpu/cg_moved_input_good gpu/cg_dynamic_rerecord_good "
    "gpu/radar_clutter",
    "cg-dynamic-rerecord": "gpu/reduce_overhead gpu/cudagraph_overwritten",
    "cg-output-overwritten": "gpu/reduce_overhead gpu/cg_skip_mutation",
    "cg-skip-cpu": "gpu/cg_skip_mutation gpu/reduce_overhead gpu/launch_bound",
    "cg-skip-mutation": "gpu/reduce_overhead",
    "ct-cache-bypass": "bad/ct_cache_disabled",
    "ct-cache-disabled": "bad/ct_cache_bypass",
    "dd-ddp-splits": "good/dd_rank_skew",
    "dd-rank-skew": "bad/dd_ddp_splits good/dd_ddp_splits",
    "gb-disabled-hot": "bad/gb_unsupported_call",
    "gb-dynamic-output-shape": "bad/gb_item",
    "gb-fragmented": "bad/gb_item",
    "gb-optimizer-or-backward": "healthy/lr_scheduler healthy/mlp_training",
    "gb-unsupported-call": "bad/gb_item bad/cap_nothing_captured_ddp",
    "gd-guard-overhead": "bad/ap_call_overhead healthy/mlp_training",
    "ap-algorithm-search": "gpu/mesh_ladder gpu/slow_kernel_gather",
    "ind-cpu-operand": "gpu/cg_skip_cpu_good gpu/slow_kernel_gather gpu/algorithm_search_good",
    "ind-expanded-product": "bad/ap_gemm_bound healthy/large_gemm",
    "ind-extern-dominated": "gpu/mesh_ladder gpu/pollen_drift healthy/large_gemm healthy/custom_op "
    "bad/ap_gemm_bound bad/ap_custom_op_on_host gpu/transformer_training",
    "ind-misaligned-copy": "gpu/pointwise gpu/transformer_training",
    "ind-missed-epilogue": "gpu/autotuned_template gpu/transformer_training gpu/tf32_off "
    "gpu/launch_bound",
    "ind-repeated-heads": "good/ind_plain_attention gpu/transformer_training",
    "ind-slow-kernel": "gpu/pointwise gpu/slow_kernel_columns gpu/slow_kernel_scan "
    "gpu/mem_peak_up gpu/missed_epilogue",
    "ind-tf32-off": "gpu/gemm_bound gpu/pointwise",
    "mem-driver-calls": "gpu/pointwise gpu/transformer_training gpu/mem_peak_up",
    "mem-peak-up": "gpu/pointwise",
    "rc-auto-dynamic": "bad/rc_module_int_attr",
    "rc-dim-specialized": "bad/rc_dynamic_false healthy/dynamic_shapes",
    "rc-object-identity": "bad/rc_python_constant",
    "rc-param-shape": "bad/rc_dim_specialized",
    "rc-python-constant": "healthy/int_argument",
    "rc-resumed-value": "bad/rc_python_constant",
    "rc-tensor-meta": "bad/rc_dynamic_false",
    "rc-zero-one": "bad/rc_auto_dynamic",
    "sv-cold-requests": "bad/rc_limit_hit",
}
_MARK = re.compile(r"  # finding: ([\w, -]+)$")


class Scenario(NamedTuple):
    """``name`` is GROUP/NAME; ``line`` the one that the finding names, None: it names none."""

    name: str
    line: int | None = None

    @property
    def run(self):
        return self.name.replace("/", "-")


def recorded():
    """The names in the index of recorded runs."""
    index = RUNS / "INDEX.json"
    return set(json.loads(index.read_text())) if index.exists() else set()


def marks(script):
    """Rule → the line of ``script`` marked with it, None for the end of its docstring."""
    text = script.read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0].end_lineno
    return {
        rule.strip(): None if number == docstring else number
        for number, line in enumerate(text.splitlines(), 1)
        if (mark := _MARK.search(line))
        for rule in mark[1].split(",")
    }


def _shown():
    """Rule → the scenarios that show it."""
    shown = {}
    for script in sorted(SCRIPTS.glob("*/*.py")):
        name = f"{script.parent.name}/{script.stem}"
        for rule, line in marks(script).items():
            shown.setdefault(rule, []).append(Scenario(name, line))
    return shown


def good(rule, bad=()):
    """The scenarios on which ``rule`` must stay silent; ``bad`` are those that show it."""
    own = [f"good/{path.stem}" for path in (SCRIPTS / "good").glob(f"{rule.replace('-', '_')}*.py")]
    twins = [f"{scenario.name}_good" for scenario in bad]
    twins = [name for name in twins if (SCRIPTS / f"{name}.py").exists()]
    return tuple(map(Scenario, [*sorted(own), *twins, *SILENT_TOO.get(rule, "").split()]))


SCENARIOS = {rule: (tuple(bad), good(rule, bad)) for rule, bad in sorted(_shown().items())}
