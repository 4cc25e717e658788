"""`trace=torch`: what the profiler saw of a few calls, in a pass of its own after timing.

Device work belongs to the call in whose range it was *launched*, by correlation id, from
whichever thread. The stream is held until every call is queued, so that the spans hold no host
time; inputs are cold, as in the headline.
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ..records import Evidence, Launch
from ..schema import Language
from .dispatch import classify, own
from .inputs import Inputs

_RANGE = "klab-call-"
_DEVICE_WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
_LAUNCHES = {"cuda_runtime", "cuda_driver"}


def warm_profiler() -> None:
    """The first profiler session of a process may see no device work: spend one on nothing."""
    with torch.profiler.profile(activities=_activities()):
        torch.ones(1, device="cuda").add_(1)
        torch.cuda.synchronize()


def trace(
    call: Callable[..., Any],
    copies: list[Inputs],
    *,
    cell_id: str,
    implementation: str,
    own_language: Language,
    flush: Callable[[], object],
    host_us: float,
    chrome: Path | None = None,
) -> Evidence:
    """Evidence of one call per copy; the launches are those of the call with the median span.

    `flush` clears the cache before the first call. `chrome` keeps the profiler's own trace there.
    """
    found, held = record(
        call, copies, flush=flush, host_us=host_us, keep=len(copies), chrome=chrome
    )
    per_call = [own(launches, own_language) for launches in found]
    if not any(per_call):
        return Evidence(
            tool="torch",
            cell_id=cell_id,
            implementation=implementation,
            reason="the profiler saw no device work in any of the calls",
            calls=len(copies),
            launch_count=0,
            held=held,
        )
    spans = [(span(launches), k) for k, launches in enumerate(per_call) if launches]
    _, chosen = sorted(spans)[len(spans) // 2]
    launches = per_call[chosen]
    return Evidence(
        tool="torch",
        cell_id=cell_id,
        implementation=implementation,
        calls=len(copies),
        launches=tuple(launches),
        launch_count=len(launches),
        busy_us=busy(launches),
        span_us=span(launches),
        held=held,
    )


def record(
    call: Callable[..., Any],
    copies: list[Inputs],
    *,
    flush: Callable[[], object],
    host_us: float,
    keep: int,
    chrome: Path | None = None,
) -> tuple[list[list[Launch]], bool]:
    """The device work of one call per copy, call by call, and whether the queue was held.

    The last `keep` outputs stay alive, so that so many calls write to other memory each.
    """
    torch.cuda.synchronize()
    cycles = int(2000 * (len(copies) * (2 * host_us + 100) + 200))
    begin = torch.cuda.Event()
    outputs: list[Any] = [None] * max(1, keep)
    with torch.profiler.profile(activities=_activities()) as profiler:
        flush()
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        begin.record()
        for index, inputs in enumerate(copies):
            with torch.profiler.record_function(f"{_RANGE}{index}"):
                outputs[index % len(outputs)] = call(*inputs)
        held = not begin.query()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = chrome or Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return attribute(seen(events), len(copies)), held


def seen(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, where they hold any device work: what flushes the cache and what holds the queue
    is always there. Raises RuntimeError where they hold none: that is no evidence, and not a call
    without kernels."""
    if not any(event.get("cat") in _DEVICE_WORK for event in events):
        raise RuntimeError(
            "the profiler saw no device work at all, not even what holds the queue: no evidence"
        )
    return events


def attribute(events: list[dict[str, Any]], calls: int) -> list[list[Launch]]:
    """The device work of each call, from a Chrome trace: by the correlation id of its launch."""
    ranges: dict[int, tuple[float, float]] = {}
    for event in events:
        name = event.get("name", "")
        if event.get("cat") == "user_annotation" and name.startswith(_RANGE):
            start = float(event["ts"])
            ranges[int(name.removeprefix(_RANGE))] = (start, start + float(event["dur"]))
    owner: dict[int, int] = {}
    for event in events:
        if event.get("cat") in _LAUNCHES and "correlation" in event.get("args", {}):
            moment = float(event["ts"])
            for index, (start, end) in ranges.items():
                if start <= moment <= end:
                    owner[event["args"]["correlation"]] = index
    per_call: list[list[Launch]] = [[] for _ in range(calls)]
    for event in events:
        if event.get("cat") not in _DEVICE_WORK:
            continue
        index = owner.get(event.get("args", {}).get("correlation"))
        if index is not None:
            per_call[index].append(_launch(event))
    for launches in per_call:
        launches.sort(key=lambda launch: launch.start_us)
    return [_from_zero(launches) for launches in per_call]


def _launch(event: dict[str, Any]) -> Launch:
    args = event["args"]
    family, kind = classify(event["name"])
    return Launch(
        name=event["name"],
        kind=kind,
        family=family,
        duration_us=float(event["dur"]),
        start_us=float(event["ts"]),
        grid=tuple(args.get("grid", ())),
        block=tuple(args.get("block", ())),
        registers=args.get("registers per thread"),
        shared_bytes=args.get("shared memory"),
        bytes=args.get("bytes"),
        stream=args.get("stream"),
    )


def _from_zero(launches: list[Launch]) -> list[Launch]:
    if not launches:
        return launches
    first = launches[0].start_us
    return [replace(launch, start_us=round(launch.start_us - first, 3)) for launch in launches]


def busy(launches: list[Launch]) -> float:
    """The union of the intervals, in us: overlapping kernels count once."""
    total, reached = 0.0, float("-inf")
    for launch in sorted(launches, key=lambda launch: launch.start_us):
        end = launch.start_us + launch.duration_us
        total += max(0.0, end - max(reached, launch.start_us))
        reached = max(reached, end)
    return round(total, 3)


def span(launches: list[Launch]) -> float:
    """First start to last end, in us; ValueError of none."""
    first = min(launch.start_us for launch in launches)
    return round(max(launch.start_us + launch.duration_us for launch in launches) - first, 3)


def _activities() -> list[torch.profiler.ProfilerActivity]:
    return [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
