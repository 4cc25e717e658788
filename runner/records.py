"""What travels: workloads, cells, what was measured of an implementation, and its record.

Frozen values without behaviour beyond their own consistency. Times are microseconds (`_us`),
sizes are bytes, rates are decimal (1e9 bytes/s, 1e12 FLOP/s). A missing number is None, never 0.
"""

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

AxisValue = int | float | bool | str


class Status(StrEnum):
    """How one implementation of one cell ended."""

    ok = "ok"
    checked = "checked"
    empty = "empty"
    wrong_values = "wrong_values"
    wrong_shape = "wrong_shape"
    wrong_dtype = "wrong_dtype"
    unsupported = "unsupported"
    unavailable = "unavailable"
    compile_failed = "compile_failed"
    crashed = "crashed"
    unsafe = "unsafe"
    out_of_memory = "out_of_memory"
    timed_out = "timed_out"
    lost = "lost"
    noisy = "noisy"
    invalid = "invalid"


TIMED = frozenset({Status.ok, Status.noisy, Status.invalid})
"""Only these may carry a time: a wrong answer has none."""

FAILED = frozenset(Status) - {
    Status.ok,
    Status.checked,
    Status.empty,
    Status.noisy,
    Status.unsupported,
    Status.unavailable,
}
"""These make the command exit with 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """Axes bound to numbers, with the storage they are computed in."""

    axes: dict[str, AxisValue]
    dtype: str
    layout: str = "contiguous"
    seed: int = 0
    distribution: str = "normal"
    name: str = ""
    """The model's workload it comes from (gate_up, ...); no part of the cell's id."""

    @property
    def label(self) -> str:
        """Readable, e.g. `M4096-N14336-K4096-gelu_tanh-bf16`; not unique by contract."""
        parts = [_label(name, value) for name, value in self.axes.items()]
        parts.append(self.dtype)
        if self.layout != "contiguous":
            parts.append(self.layout)
        if self.distribution != "normal":
            parts.append(self.distribution)
        return "-".join(part for part in parts if part)


def _label(name: str, value: AxisValue) -> str:
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, str):
        return value
    return f"{name}{value:g}" if isinstance(value, float) else f"{name}{value}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A kernel and a workload; `index` is its place in the job, `id` its content."""

    index: int
    kernel: str
    workload: Workload

    @property
    def id(self) -> str:
        """`c` and eight hex digits of the content: the same cell has the same id in every job."""
        content = [
            self.kernel,
            self.workload.axes,
            self.workload.dtype,
            self.workload.layout,
            self.workload.seed,
            self.workload.distribution,
        ]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return "c" + hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One pass of an implementation: it reads tensors from memory and writes one back."""

    name: str
    kind: str
    flops: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one call must do by the kernel's own convention, and its floor on a target.

    `floor_us` is max(FLOPs / peak, bytes / bandwidth) against the target's datasheet, summed over
    the stages, since a stage that is written and read back cannot overlap the next.
    """

    stages: tuple[Stage, ...]
    convention: str = ""
    floor_us: float | None = None
    bound: str | None = None
    ridge: float | None = None

    @property
    def flops(self) -> int:
        return sum(stage.flops for stage in self.stages)

    @property
    def bytes(self) -> int:
        return sum(stage.bytes_read + stage.bytes_written for stage in self.stages)

    @property
    def bytes_read(self) -> int:
        return sum(stage.bytes_read for stage in self.stages)

    @property
    def intensity(self) -> float | None:
        """FLOP per byte; None where nothing moves."""
        return self.flops / self.bytes if self.bytes else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Correctness:
    """An output held against y64: |y - y64| / (|y64| + rms of its row), largest and rms."""

    max_error: float
    rms_error: float
    max_tolerance: float
    rms_tolerance: float
    yardstick: str
    yardstick_max_error: float
    yardstick_rms_error: float
    worst_index: tuple[int, ...] = ()
    nonfinite: int = 0
    nonfinite_reference: int = 0
    checks: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A median with the bounds of its 95 % interval."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceState:
    """What NVML said of the GPU at one moment."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    watts: float | None = None
    celsius: int | None = None
    energy_mj: int | None = None
    throttle: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Consecutive samples of one implementation: its turn in one round.

    `held` is False when the device caught up with the host during the block, so that its samples
    hold host time. `fault` says what the GPU's clock did that makes the block no sample of the
    implementation. Such blocks are repeated (`repeats` times), then labelled.
    """

    round: int
    position: int
    state: str
    calls: int
    samples_us: tuple[float, ...]
    held: bool | None = None
    before: DeviceState | None = None
    after: DeviceState | None = None
    fault: str = ""
    repeats: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sustained:
    """Back-to-back calls for a good part of a second, at the clock that power leaves.

    `period_us` a call, `sm_mhz` the median clock, `watts` and `joules` (per call) from the energy
    counter's ticks inside the stretch; absent where it ticked less than three times.
    """

    period_us: float
    seconds: float
    calls: int
    sm_mhz: float | None = None
    watts: float | None = None
    joules: float | None = None
    power_limited: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """The times of one implementation, in the state and by the timer named here.

    `latency_us` is the headline: `period_us` or `graph_us` cold on a GPU, `wall_us` warm on `cpu`.
    `warm_us` is the same quantity warm; `stream_us` is `period_us` cold beside a `graph_us`, and
    `graph_nodes` what a call became in the graph, by kind. `launch_bound`: the host takes longer
    to submit a call than the device to do it. `clocks` is the rule that the SM clock was under.
    `rounds_us` holds the round medians behind the headline, in round order, so that the k-th value
    of two implementations of a cell was measured side by side. `process_of_round` numbers the
    fresh process that each came from; empty: one process. Over several the intervals of
    `latency_us` and `warm_us` are over the processes' medians.
    """

    timer: str
    headline: str
    state: str
    latency_us: Interval
    rounds_us: tuple[float, ...]
    calls: int
    cache: str
    warm_us: Interval | None = None
    warm_rounds_us: tuple[float, ...] = ()
    host_us: float | None = None
    stream_us: Interval | None = None
    stream_rounds_us: tuple[float, ...] = ()
    graph_nodes: dict[str, float] = field(default_factory=dict)
    launch_bound: bool | None = None
    power_limited: bool | None = None
    sm_mhz: float | None = None
    sustained: Sustained | None = None
    clocks: str = "observe"
    blocks: tuple[Block, ...] = ()
    warmup_calls: int | None = None
    warmup_s: float | None = None
    warmup_settled: bool | None = None
    threads: int | None = None
    stopped: str = ""
    clock_spread: float | None = None
    notes: tuple[str, ...] = ()
    process_of_round: tuple[int, ...] = ()

    @property
    def by_process(self) -> dict[int, tuple[float, ...]]:
        """The rounds of each process; all under 0 where there was one."""
        found: dict[int, list[float]] = {}
        for place, us in enumerate(self.rounds_us):
            process = self.process_of_round[place] if self.process_of_round else 0
            found.setdefault(process, []).append(us)
        return {process: tuple(rounds) for process, rounds in found.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One kernel, memcpy or memset that a trace saw in one call; `kind` by its name."""

    name: str
    kind: str
    family: str
    duration_us: float
    start_us: float
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    registers: int | None = None
    shared_bytes: int | None = None
    bytes: int | None = None
    stream: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What one tool saw of one implementation of one cell.

    `launches` holds the device work of the median call. `busy_us` is the union of its intervals,
    `span_us` first start to last end while the queue was held full. Without evidence `reason` says
    why, and every count is None: "no evidence" is not "no kernels". Of a tool around the worker
    `version` and the exact `command` are kept, and `report` is its file in the job's folder;
    `metrics` are counters of one call by name, times in us, sizes in bytes, shares in percent.
    """

    tool: str
    cell_id: str
    implementation: str
    reason: str = ""
    calls: int | None = None
    launches: tuple[Launch, ...] = ()
    launch_count: int | None = None
    busy_us: float | None = None
    span_us: float | None = None
    held: bool | None = None
    tuning: str = ""
    version: str = ""
    command: str = ""
    report: str = ""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One implementation of one cell, finished. A status outside `TIMED` carries no time.

    `process` numbers the fresh process, from 1, where a job repeats in several; 0: of all of them.
    `first_call_s` lasts until the first answer; `tuning_s` of it went to timing candidates, as the
    implementation tells, and the rest, where something compiles, is `compile_s`.
    """

    job: str
    experiment: str
    cell: Cell
    implementation: str
    status: Status
    reason: str = ""
    phase: str = ""
    cost: Cost | None = None
    correctness: Correctness | None = None
    recheck: Correctness | None = None
    timing: Timing | None = None
    evidence: tuple[Evidence, ...] = ()
    compile_s: float | None = None
    tuning_s: float | None = None
    first_call_s: float | None = None
    tuning: str = ""
    target: str = ""
    device: str = ""
    peak_memory_bytes: int | None = None
    attempts: int = 1
    process: int = 0
    repro: str = ""
    range_id: int | None = None
    log: str = ""
    traceback: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.timing is not None and self.status not in TIMED:
            raise ValueError(f"a record with status {self.status} cannot carry a time")
        if self.status == Status.ok and self.timing is None:
            raise ValueError("a record with status ok must carry a time")

    @property
    def traced(self) -> Evidence | None:
        """The first evidence that saw the device, whatever the tool."""
        return next((e for e in self.evidence if e.launch_count is not None), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Skip:
    """An implementation that a cell will not run, known before any work."""

    implementation: str
    status: Status
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCell:
    """A cell and who runs in it."""

    cell: Cell
    implementations: tuple[str, ...]
    skips: tuple[Skip, ...] = ()


class Verdict(StrEnum):
    """What the paired interval says of an implementation against the baseline."""

    faster = "faster"
    slower = "slower"
    equal = "equal"
    undecided = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One implementation against the baseline in one cell; `speedup` is baseline / implementation.

    Its interval is over `processes`, where there are several, else over `rounds`. `state` is that
    of the times compared; `detectable` the smallest ratio that as many of them, with this noise,
    would have told from 1 + band.
    """

    cell_id: str
    implementation: str
    against: str
    state: str
    speedup: Interval
    verdict: Verdict
    rounds: int
    detectable: float
    processes: int = 1
    note: str = ""


class ClaimVerdict(StrEnum):
    """What the records say of an expectation."""

    supported = "supported"
    refuted = "refuted"
    undecided = "undecided"
    not_measured = "not_measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One expectation of the claim in one cell (its label; empty: in none) beside what was seen."""

    expectation: str
    verdict: ClaimVerdict
    seen: str
    cell: str = ""
    predicted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimResult:
    """The claim's verdict over the job, and each expectation's."""

    verdict: ClaimVerdict
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What the records of a job add up to."""

    comparisons: tuple[Comparison, ...] = ()
    claim: ClaimResult | None = None

    def of(self, cell_id: str, implementation: str) -> Comparison | None:
        """The comparison of one implementation in one cell."""
        return next(
            (
                c
                for c in self.comparisons
                if c.cell_id == cell_id and c.implementation == implementation
            ),
            None,
        )


class JobStatus(StrEnum):
    """How a job ended; running until it does."""

    running = "running"
    finished = "finished"
    failed = "failed"
    killed = "killed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job as its folder holds it: what every sink (table, report, MLflow, finding) is made from.

    `signature` is the content hash of what was asked (config without paths and tracking, kernel
    source, versions, GPU); `id` names this attempt. `environment` has the sections `gpu`, `host`,
    `software`, `code`; `config` is the resolved experiment. `seconds` is the split of its wall
    time, in the order of `spent.PARTS`.
    """

    id: str
    folder: str
    signature: str
    experiment: str
    kernel: str
    question: str
    command: str
    started: str
    ended: str | None = None
    status: JobStatus = JobStatus.running
    status_reason: str = ""
    sweep_id: str | None = None
    overrides: tuple[str, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    judgement: Judgement = field(default_factory=Judgement)
