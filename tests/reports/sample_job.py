"""Post-mortems as the pipeline makes them, by hand: of one rank, of 4, of 512, and odd ones."""

import sample
import sample_odd
from msgspec import structs

from traceview.diagnosis.job.model import (
    Attempt,
    Bypass,
    CacheRow,
    ChainLink,
    ConfigDifference,
    Divergence,
    IdleOnCompile,
    Job,
    JobBreak,
    JobCaches,
    JobCause,
    JobChain,
    JobCompile,
    JobFailure,
    JobFile,
    JobFrame,
    JobTimeline,
    JobTuning,
    KeyDifference,
    Lane,
    LateCompile,
    LateCompiles,
    RankGroup,
    RankRow,
    Ranks,
    Side,
    Straggler,
    Tuning,
    Wait,
)
from traceview.diagnosis.model import Reading, ReadingRow

SCRIPT = "/home/ada/train/train.py"
KINDS = ("compile", "compile_alone", "wait", "failed")
PHASES = {"dynamo": 0.1, "aot": 0.15, "inductor": 0.3, "codegen": 0.1, "kernel_compile": 0.35}


def ranks(count):
    """All ranks of a job."""
    return Ranks(count, f"all {count} ranks" if count > 2 else "rank 0")


def one(number):
    """One rank."""
    return Ranks(1, f"rank {number}")


def seconds_of(rank, count):
    """The slow one compiles all of it anew; the others' caches are warm."""
    return 41.3 if rank == count // 2 and count > 1 else 5.0 + rank % 7 * 0.21


def lane(rank, count):
    """Two compiles; the others wait for the slow one."""
    own = seconds_of(rank, count)
    slow = own > 40
    spans = [(1.0 + rank % 5 * 0.1, own * 0.8, 0)]
    if slow:
        spans = [(1.2, 5.0, 0), (6.2, own - 10, 1)]
    elif count > 1:
        spans.append((6.2, 31.0, 2))
    return Lane(f"rank {rank}", (*spans, (70.0, own * 0.1, 0)))


def rank_row(rank, count):
    """A row of the table of ranks."""
    own = seconds_of(rank, count)
    slow = own > 40
    return RankRow(
        rank=f"rank {rank}",
        seconds=own,
        phases={name: own * share for name, share in PHASES.items()},
        compiles=2,
        recompiles=1,
        graph_breaks=rank % 2,
        failures=0,
        hits=0 if slow else 4,
        misses=4 if slow else 0,
        bypasses=0,
        first_at_s=1.0,
        last_at_s=74.0,
        waited_seconds=0.0 if slow else 31.0,
        waited_for_seconds=31.0 if slow else 0.0,
        straggler=slow,
    )


def job(count):
    """A job whose middle rank compiles on another setting than the rest."""
    slow = f"rank {count // 2}"
    total = sum(seconds_of(rank, count) for rank in range(count))
    late = LateCompile("forward", SCRIPT, 39, ranks(count), count, 2.1 * count, 9, 9, 70.0,
                       "`self.noise` was 0.0 and is 0.1")  # fmt: skip
    frame = JobFrame(
        name="forward", file=SCRIPT, line=39, user_file=SCRIPT, user_line=67, rank_seconds=total,
        most_seconds=41.3, most_rank=slow, ranks=ranks(count), compiles=2 * count, recompiles=count,
        graph_breaks=0, hits=4 * count - 4, misses=4, failures=0,
        phases={name: total * share for name, share in PHASES.items()},
        causes=(
            JobCause("cache_miss", f"on {slow}, whose `cpp.simdlen` is 0", 36.0),
            JobCause("recompiles", "`self.noise` was 0.0 and is 0.1", 2.1 * count),
        ),
    )  # fmt: skip
    small = structs.replace(
        frame, name="clipped", line=47, user_line=69, rank_seconds=0.03, most_seconds=0.03,
        most_rank="rank 1", ranks=one(1), compiles=1, recompiles=0, hits=None, misses=None,
        failures=1, causes=(JobCause("failed", "Unsupported: data-dependent branching"),),
    )  # fmt: skip
    attempt = Attempt("logs", "1", 2, ranks(count), "2026-03-01T12:00:00+00:00",
                      "2026-03-01T12:02:00+00:00", count + 2, 44.0, 1, True)  # fmt: skip
    headline = f"44.0 s of compilation, 41.3 s of it on {slow}; the others waited 31.0 s for it"
    remark = "Its cache was cold because `cpp.simdlen` is 0 there and not set elsewhere."
    return Job(
        headline=headline,
        remarks=(remark,),
        sentence=f"{headline}. {remark}",
        attempt=attempt,
        compile=JobCompile(44.0, total, 5.4, 41.3, slow, 31.0, count, count, 2 * count, 1.0, 74.0,
                           31.0, "derived", dict(PHASES)),
        timeline=JobTimeline(80.0, 0.05, KINDS, tuple(lane(r, count) for r in range(count))),
        frames=(frame, small),
        frames_left_out=3,
        frames_left_out_seconds=0.4,
        ranks=tuple(rank_row(rank, count) for rank in range(count)),
        waits=(Wait(slow, "forward", SCRIPT, 39, "0/0", 6.2, 31.0, ranks(count), "derived",
                    "between their compiles there are no records"),),
        stragglers=(Straggler(slow, 41.3, 5.4, "Its caches missed where the others' hit.",
                              (JobCause("cache_miss", "`forward`, 4 times", 36.0),), "derived"),),
        caches=JobCaches(
            rows=(CacheRow("fx_graph", {"hit": 4 * count - 4, "miss": 4}, ranks(count)),
                  CacheRow("aotautograd", {"hit": 2 * count, "bypass": 1}, ranks(count))),
            bypasses=(Bypass("aotautograd", "Unsupported call_function target", 1, one(0)),),
            differences=(KeyDifference(
                "fx_graph", "inductor_config[cpp.simdlen]", "settings", "ranks",
                (Side(one(count // 2), "0", "miss"),
                 Side(Ranks(count - 1, "the others"), None, "hit")),
                ("forward",), 2, 36.0, "The setting differs, so nothing in the cache fits.",
            ),),
        ),
        recompiles=(JobChain("forward", SCRIPT, 39, ranks(count), 1, 2.1 * count, False, (
            ChainLink("0/1", "self.noise == 0.0", "float_value", "self.noise", "0.0", "0.1", 2.1,
                      70.0),
        ), 2),),
        breaks=(JobBreak(SCRIPT, 25, "forward", "GB0124", "`Tensor.item()` call", 3 * count, one(0),
                         False),),
        divergences=(Divergence(
            "collectives", "pooled", SCRIPT, 31, "Ranks run collectives in another order.",
            (RankGroup(one(0), "all_reduce scores, all_reduce weights"),
             RankGroup(one(1), "all_reduce weights, all_reduce scores")),
            "all_reduce(scores)\nall_reduce(weights)", "all_reduce(weights)\nall_reduce(scores)",
            SCRIPT, 35,
        ),),
        late=LateCompiles("profiler_steps", 3, None, count, 3.0, 2.1 * count,
                          "After step 3, 1 function was compiled again.", (late,), 1),
        configs=(ConfigDifference("inductor_config", "cpp.simdlen", (
            Side(one(count // 2), "0"), Side(Ranks(count - 1, "the others"), None))),),
        failures=(JobFailure("failed", "Unsupported", "Data-dependent branching\n  if loss > 1:",
                             "clipped", SCRIPT, 48, "clipped", one(1), 1, 12.0, False),),
        autotuning=JobTuning(3.0, 1.2, "rank 0", (
            Tuning("addmm", "2048x4096, 4096x1024", 3.0, 4, ranks(count), ("triton_mm_17",)),
        )),
        idle=(IdleOnCompile("rank 0", "profiles/worker0.pt.trace.json", 4.0, 2.0, 0.5, 1.25,
                            "derived", "1.25 s of 2.0 s idle fall on compiles of other ranks."),),
        attempts=(
            structs.replace(attempt, pass_name="logs.2", attempt=1, shown=False, failures=1),
            attempt,
        ),
        files=(
            JobFile("job/trace/rank_1.log", "structured", one(1), 529_673, 529_673, 211, 900, 1,
                    None),
            JobFile("job/profiles/worker1.json", "kineto", Ranks(0, "not recorded"), 115_083, 4096,
                    None, 0, 1, "The file ends in the middle of an event."),
        ),
        left_out={"waits": 2},
        notes=("Clocks of ranks differ by up to 3 ms.",),
    )  # fmt: skip


def postmortem(count=4):
    """The diagnosis of such a job."""
    return structs.replace(
        sample.empty(),
        verdict=sample.verdict("not_measured", "Nothing was measured: only logs were read"),
        job=job(count),
        findings=(sample.finding(),),
        target="logs/job-17",
        reading=Reading(
            1234, 2, 1, (ReadingRow("job/trace/rank_1.log", "truncated", 1, 211, None),)
        ),
        environment={"torch_version": "2.13.0+cpu", "cwd": "/home/ada/train"},
        created="2026-03-02T08:00:00+00:00",
        traceview="0.1.0",
    )


def bare():
    """A job of which hardly anything is known."""
    attempt = Attempt("logs", None, 1, Ranks(0, "no rank"), None, None, None, None, 0)
    nothing = JobCompile(*[None] * 6, 0, 0, 0, None, None, None, None, {})
    empty = Job("No compile was recorded.", attempt, nothing, JobTimeline(0.0, 0.0, KINDS, ()))
    return structs.replace(postmortem(1), job=empty, findings=())


def hostile(size=2_000):
    """An attack in every text."""
    return sample._poison(postmortem(), sample.Poison(size))


def absurd(offset=0):
    """An odd number in every place for one."""
    base = postmortem()
    return structs.replace(base, job=sample_odd.bend(base.job, sample_odd.Odd(offset)))


ALL = {
    "one": lambda: postmortem(1),
    "four": postmortem,
    "twelve": lambda: postmortem(12),
    "many": lambda: postmortem(512),
    "bare": bare,
    "hostile": hostile,
    "absurd": absurd,
}
