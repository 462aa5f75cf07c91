"""What switching stances does to ``generate()`` with a static cache, without traceview.

    python benchmarks/generate_stances.py [--new-tokens 128] [--calls 8] [--hidden 1024]

Needs transformers; cudagraphs need a GPU. The weights are random. Each variant runs in a process of
its own: ``bare`` (compiled throughout), ``gate`` (every other stretch of 40 decoding steps calls
the original instead, as traceview's wrapper does), ``stance`` (the same by
torch.compiler.set_stance), ``both``, and ``aligned`` (both, switched between two generate() calls
only). For each: ms a compiled token, compiles by trigger and in which generate() call, and how many
addresses the cache's first tensor has had. Recordings that only the switching variants have are
traceview's own; those that ``aligned`` does not have come from memory that an eager stretch left.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter

STRETCH = 40
VARIANTS = ("bare", "gate", "stance", "both", "aligned")


def measure(variant: str, new_tokens: int, calls: int, hidden: int) -> dict[str, object]:
    import torch
    from torch._dynamo.callback import on_compile_end
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.generation.configuration_utils import CompileConfig

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1024, hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=8,
        num_attention_heads=8, num_key_value_heads=8, max_position_embeddings=1024,
    )  # fmt: skip
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = LlamaForCausalLM(config).to(device, dtype).eval()
    how = CompileConfig(mode="reduce-overhead" if device == "cuda" else "default")
    how._compile_all_devices = True
    prompt = torch.randint(0, 1024, (1, 32), device=device)
    compiles: Counter[str] = Counter()
    addresses, times = set(), []
    state = {"call": 0, "step": 0, "eager": False, "forced": None, "began": 0.0}

    @on_compile_end
    def _ended(args: object) -> None:
        trigger = getattr(getattr(args, "callback_trigger", None), "name", "?")
        compiles[f"{trigger} in call {state['call']}"] += 1

    def switch(eager: bool) -> None:
        if device == "cuda":
            torch.cuda.synchronize()
        state["eager"] = eager
        if variant in ("stance", "both", "aligned"):
            torch.compiler.set_stance("force_eager" if eager else "default")

    made = torch.compile

    def compile(fn: object, *args: object, **kwargs: object) -> object:
        compiled = made(fn, *args, **kwargs)

        def call(*args: object, **kwargs: object) -> object:
            layers = next((v.layers for v in kwargs.values() if hasattr(v, "layers")), None)
            if layers and getattr(layers[0], "keys", None) is not None:
                addresses.add(layers[0].keys.data_ptr())
            if state["step"] % STRETCH == 0:
                if device == "cuda":
                    torch.cuda.synchronize()
                now = time.perf_counter()
                if state["step"] and not state["eager"]:
                    times.append((now - state["began"]) / STRETCH * 1e3)
                if variant in ("gate", "stance", "both"):
                    switch(not state["eager"])
                state["began"] = time.perf_counter()
            state["step"] += 1
            by_gate = state["eager"] and variant in ("gate", "both", "aligned")
            return (fn if by_gate else compiled)(*args, **kwargs)

        return call

    torch.compile = compile
    for number in range(calls):
        state["call"] = number
        if variant == "aligned":
            switch(number % 2 == 1)
            state["step"] = 0
        model.generate(
            prompt, max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=False,
            cache_implementation="static", compile_config=how, pad_token_id=0,
        )  # fmt: skip
    steady = times[len(times) // 3 :]
    return {
        "variant": variant,
        "compiled_ms_a_token": round(statistics.median(steady), 3) if steady else None,
        "compiles": dict(compiles),
        "addresses": len(addresses),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=1024)
    args = parser.parse_args()
    if args.variant:
        print(json.dumps(measure(args.variant, args.new_tokens, args.calls, args.hidden)))
        return
    for variant in VARIANTS:
        subprocess.run([sys.executable, *sys.argv, "--variant", variant], check=False)


if __name__ == "__main__":
    main()
