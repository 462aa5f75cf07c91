"""What a trial switches: one grammar for the command line, for rules and for the target. Pure.

    mode=max-autotune    dynamic=True   backend=aot_eager   fullgraph=True   options.KEY=VALUE
    torch._dynamo.config.X=VALUE        (also torch._inductor.config, torch._functorch.config,
                                        torch.compiler.config, torch.fx.experimental._config)
    torch.backends.cudnn.benchmark=True
    float32_matmul_precision=high       num_threads=4
    deterministic_debug_mode=default    detect_anomaly=False
    no_grad   inference_mode   autocast=bfloat16   sdpa=FLASH_ATTENTION   channels_last
    guards=skip                         eager=NAME      pad=ARGUMENT:DIMENSION:SIZE/SIZE/…
    stance=default                      in place of what the script gives to set_stance
    static=ARGUMENT/ARGUMENT[]/…        these tensors (or all in it) are marked as staying put
    blocks=CLASS                        modules of this class are compiled, not what holds them
    compile=FUNCTION                    this function, or method CLASS.NAME, is compiled as well
    form=OPERATOR:WAY                   the operator is written another way in compiled code
    env.NAME=VALUE                      an environment variable: tried in processes of its own

A value is a Python literal; what is none is a string.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "compile",
    "option",
    "config",
    "attribute",
    "process",
    "around",
    "guards",
    "eager",
    "pad",
    "static",
    "env",
    "blocks",
    "stance",
    "function",
    "form",
]

_COMPILE = ("mode", "dynamic", "backend", "fullgraph")
_CONFIGS = (
    *("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config"),
    *("torch.compiler.config", "torch.fx.experimental._config"),
)
_PROCESS = (
    *("float32_matmul_precision", "num_threads"),
    *("deterministic_debug_mode", "detect_anomaly"),
)
_AROUND = {"no_grad": False, "inference_mode": False, "autocast": True, "sdpa": True}
_AROUND |= {"channels_last": False}
_PAD = re.compile(r"([A-Za-z_]\w*):(\d):(\d{1,9}(?:/\d{1,9}){0,63})")
_FORM = re.compile(r"(aten\.[a-z_0-9]+):([\w ()=-]+)")
_ARGUMENTS = re.compile(r"[A-Za-z_]\w*(\[\])?(/[A-Za-z_]\w*(\[\])?){0,63}")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class Setting:
    """One setting. ``owner``: the module that a ``config`` or ``attribute`` belongs to."""

    kind: Kind
    name: str
    value: Any = None
    owner: str = ""


def parse(text: str) -> Setting:
    """The setting that ``text`` names; ValueError, in one sentence, where it names none."""
    name, given, value = text.strip().partition("=")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise ValueError(f"{text!r} is no setting: NAME=VALUE is expected")
    known: Any = value.strip() if given else None
    with suppress(ValueError, SyntaxError):
        known = ast.literal_eval(value.strip())
    setting = _named(name, known)
    if setting is None:
        raise ValueError(f"{name!r} is no setting that can be tried")
    if bool(given) == (setting.kind == "around" and not _AROUND[name]):
        raise ValueError(f"{name!r} takes {'no' if given else 'a'} value")
    return setting


@dataclass(frozen=True)
class Remedy:
    """What is switched: settings, or the new text of one of the user's files."""

    name: str
    settings: tuple[Setting, ...] = ()
    patch: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Remedy:
        """ValueError where a setting is none."""
        return cls(data["name"], tuple(map(parse, data.get("settings") or ())), data.get("patch"))

    @property
    def lowers_precision(self) -> bool:
        """Whether products are computed in a lower precision than the script asks for."""
        lower = {"float32_matmul_precision": ("high", "medium"), "allow_tf32": (True,)}
        return "autocast" in self.named("around") or any(
            each.value in lower.get(each.name, ()) for each in self.settings
        )

    @property
    def without_gradients(self) -> bool:
        """Whether nothing that is computed under it has a gradient."""
        return bool({"no_grad", "inference_mode"} & set(self.named("around")))

    def named(self, kind: str) -> dict[str, Any]:
        """Names and values of the settings of one kind."""
        return {each.name: each.value for each in self.settings if each.kind == kind}


def _named(name: str, value: Any) -> Setting | None:
    if name in _COMPILE:
        return Setting("compile", name, value)
    if name in _PROCESS:
        return Setting("process", name, value)
    if name in _AROUND:
        return Setting("around", name, value)
    if name in ("eager", "blocks"):
        return Setting(name, str(value))  # type: ignore[arg-type]
    if name == "compile" and _NAME.fullmatch(str(value)):
        return Setting("function", str(value))
    if (name, value) in (("guards", "skip"), ("stance", "default")):
        return Setting(name, name, value)  # type: ignore[arg-type]
    if name == "pad" and (pad := _PAD.fullmatch(str(value))):
        return Setting("pad", pad[1], (int(pad[2]), tuple(sorted({*map(int, pad[3].split("/"))}))))
    if name == "form" and (form := _FORM.fullmatch(str(value))):
        return Setting("form", form[1], form[2])
    if name == "static" and _ARGUMENTS.fullmatch(str(value)):
        return Setting("static", name, tuple(value.split("/")))
    if name.startswith("env."):
        return Setting("env", name.removeprefix("env."), str(value))
    if name.startswith("options."):
        return Setting("option", name.removeprefix("options."), value)
    for owner in _CONFIGS:
        if name.startswith(f"{owner}."):
            return Setting("config", name.removeprefix(f"{owner}."), value, owner)
    if name.startswith("torch.backends."):
        owner, _, attribute = name.rpartition(".")
        return Setting("attribute", attribute, value, owner)
    return None
