"""The YAML grammar as dataclasses: Hydra composes against them, so that a misspelt key stops.

The string under a field is its manual. Nothing here probes, reads or rewrites anything. Checks
that a type cannot say (ranges, choices, one source of shapes) live in `checks` and `plan`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omegaconf import MISSING


class Mode(StrEnum):
    """What a command does with each cell."""

    run = "run"
    check = "check"
    profile = "profile"


class WorkerMode(StrEnum):
    """Where implementations run."""

    process = "process"
    inline = "inline"


class Submit(StrEnum):
    """How calls reach the device in the headline: one by one, or as one captured CUDA graph."""

    stream = "stream"
    graph = "graph"


class AxisType(StrEnum):
    """The type of an axis' values."""

    int = "int"
    float = "float"
    bool = "bool"
    str = "str"


class Language(StrEnum):
    """What an implementation is written in: decides what it needs to run."""

    torch = "torch"
    triton = "triton"
    cuda = "cuda"


class Compile(StrEnum):
    """The arm of torch.compile; always fullgraph and static shapes."""

    none = "none"
    default = "default"
    max_autotune = "max_autotune"


class Device(StrEnum):
    """A kind of device."""

    cuda = "cuda"
    cpu = "cpu"


class Distribution(StrEnum):
    """How inputs are drawn: the same kernel takes other power, and another time, on other values.

    uniform: in [-scale, scale]. integers: whole numbers from -8 to 8, whatever the scale, which
    every dtype holds exactly. zeros: timed on nothing but zeros, checked on normal inputs.
    outliers: normal, and in the first tensor that a kernel draws (its activation) one channel in
    a thousand is 20 to 100 times larger.
    """

    normal = "normal"
    uniform = "uniform"
    integers = "integers"
    zeros = "zeros"
    outliers = "outliers"


class Precision(StrEnum):
    """The precision of the reference."""

    fp64 = "fp64"
    fp32 = "fp32"


class Store(StrEnum):
    """Where runs are filed."""

    local = "local"
    server = "server"
    none = "none"


class OnError(StrEnum):
    """What an unreachable tracking store does to a run."""

    warn = "warn"
    fail = "fail"


@dataclass
class Axis:
    """One named dimension or option of a kernel."""

    type: AxisType = AxisType.int
    min: float | None = None
    """Smallest value allowed."""
    max: float | None = None
    """Largest value allowed."""
    choices: list[Any] = field(default_factory=list)
    """The only values allowed; empty: no such limit."""
    default: Any = None
    """Taken where the shapes do not say; None: the shapes must say."""
    doc: str = ""


@dataclass
class Implementation:
    """One way to compute a kernel."""

    target: str = MISSING
    """Dotted path of the function: takes the inputs, then `arguments` and `kwargs` by name."""
    language: Language = Language.torch
    compile: Compile = Compile.none
    """Wrap the target in torch.compile."""
    cost: str = MISSING
    """Which of the kernel's cost plans this path follows (a key of what `cost` returns)."""
    requires: list[str] = field(default_factory=list)
    """Import names that must be there; a missing one makes it `unavailable`."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    dtypes: list[str] = field(default_factory=list)
    """Names of conf/dtype it supports; empty: all."""
    layouts: list[str] = field(default_factory=list)
    """Layouts it supports; empty: all that the kernel declares."""
    devices: list[Device] = field(default_factory=list)
    """Kinds of device it runs on; empty: all."""
    where: str = ""
    """An expression over the axes that must hold, e.g. `act in ['none', 'relu'] and bias`."""
    doc: str = ""


@dataclass
class Model:
    """A model's fields, from which a kernel's YAML makes axes. Absent fields are None."""

    name: str = ""
    hidden: int | None = None
    intermediate: int | None = None
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None
    source: str = ""


@dataclass
class Shapes:
    """Where workloads come from: exactly one of `cases`, `product`, `model`."""

    name: str = ""
    cases: list[dict[str, Any]] = field(default_factory=list)
    """Workloads one by one."""
    product: dict[str, list[Any]] = field(default_factory=dict)
    """Every combination; an axis left out comes from the kernel's default set."""
    zip: list[list[str]] = field(default_factory=list)
    """Axes of `product` that advance together, e.g. [[N, K]]."""
    model: Model = field(default_factory=Model)
    phase: str = ""
    """prefill or decode: a label."""
    workloads: list[str] = field(default_factory=list)
    """Which of the kernel's `from_model` workloads; empty: all."""
    tokens: list[int] = field(default_factory=list)
    batch: list[int] = field(default_factory=lambda: [1])
    kv_len: list[int] = field(default_factory=lambda: [0])
    tp: int = 1
    """Tensor-parallel degree."""
    axes: dict[str, list[Any]] = field(default_factory=dict)
    """With `model`: further axes (act, bias, layout ...), every combination."""
    exclude: list[str] = field(default_factory=list)
    """Expressions over the axes; a workload for which one holds is left out, and said."""


@dataclass
class Kernel:
    """An operation: how to make inputs, the truth, the cost, and the ways to compute it."""

    name: str = MISSING
    module: str = MISSING
    """Dotted path of the module with `make_inputs`, `reference` and `cost`."""
    doc: str = ""
    axes: dict[str, Axis] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    """Axes passed by name to the reference and to every implementation."""
    baseline: str = "eager"
    """What speed-up is against."""
    yardstick: str = "eager"
    """Whose error the tolerance is a multiple of; the same dtype, no compiler."""
    error_multiple: float = 2.0
    """k: an implementation may err k times as much as the yardstick, or 2 ulp."""
    sum_length: str = ""
    """Terms of the longest sum, over the axes, e.g. K: sqrt of them in ulp is allowed."""
    precision: Precision = Precision.fp64
    implementations: dict[str, Implementation] = field(default_factory=dict)
    from_model: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Named workloads: an expression an axis, over model fields, tokens, batch, kv_len, tp."""
    shapes: Shapes = field(default_factory=Shapes)
    """The default set: used where the experiment gives no source of its own."""


@dataclass
class Dtype:
    """Storage, accumulation and math mode."""

    name: str = MISSING
    storage: str = MISSING
    """A torch dtype by name, e.g. bfloat16."""
    output: str = MISSING
    accumulate: str = "float32"
    itemsize: int = MISSING
    """Bytes of one stored element."""
    output_itemsize: int = MISSING
    peak: str = MISSING
    """Which of the target's peaks applies (a key of `target.peak_tflops`)."""
    tf32: bool = False
    """TF32 tensor cores for fp32 matrix products: always explicit."""
    scaling: str = "none"
    sane_rms: float = MISSING
    """The yardstick's own rms error must stay below this, or the comparison is `invalid`."""


@dataclass
class Target:
    """A GPU by datasheet. `uncertain` names the fields whose sources disagree."""

    name: str = MISSING
    kind: Device | None = None
    """cuda or cpu; None: `auto`, decided when the device is looked at."""
    product: str = ""
    """How the driver names it."""
    capability: str | None = None
    """Compute capability, e.g. 9.0."""
    sms: int | None = None
    memory_gb: float | None = None
    """Decimal gigabytes."""
    bandwidth_gbps: float | None = None
    """Decimal gigabytes a second."""
    l2_mb: float | None = None
    """Binary megabytes as the device reports them."""
    shared_per_sm_kb: float | None = None
    shared_per_block_kb: float | None = None
    registers_per_sm: int | None = None
    threads_per_sm: int | None = None
    blocks_per_sm: int | None = None
    boost_mhz: int | None = None
    """The clock that the peaks assume."""
    max_mhz: int | None = None
    peak_tflops: dict[str, float] = field(default_factory=dict)
    """Dense peaks by fp32, tf32, fp16, bf16, fp8, int8."""
    watts: int | None = None
    uncertain: list[str] = field(default_factory=list)
    source: str = ""


@dataclass
class Protocol:
    """How to sample."""

    name: str = MISSING
    min_rounds: int = 20
    max_rounds: int = 20
    round_step: int = 10
    """Rounds between two looks at the intervals."""
    samples: int = 1
    """Samples in a block."""
    sample_us: float = 300.0
    """The device time that one sample should span: sets how many calls it holds."""
    precision: float = 0.01
    """Sampling stops when every pair's interval is narrower than this on each side."""
    band: float = 0.01
    """The indifference band d."""
    confidence: float = 0.95
    warmup_ms: float = 50.0
    """Accumulated time of calls before the first sample."""
    cell_budget_s: float = 20.0
    """Sampling time of a cell after which no further rounds start."""
    warm: bool = True
    """Time warm beside cold (on cpu the headline is warm anyway)."""
    sustained_ms: float = 0.0
    """After the rounds, back-to-back calls of each implementation for so long: the time, clock,
    power and joules of a GPU that is kept at it; 0: none."""
    clocks: str = "observe"
    """observe, or lock:<MHz>: the SM clock held there while the job times, where the driver permits
    it (root), and given back to no lock at all: NVML tells of none that stood before."""
    cell_limit_s: float = 900.0
    """Wall time after which a cell's announced implementation ends `timed_out`."""
    step_limit_s: float = 300.0
    """The same for one step (load, check, time) of one implementation."""
    processes: int = 1
    """Fresh worker processes in each of which every cell is measured once, one after the other.
    With several, intervals and verdicts take the process as the unit, not the round."""
    budget_s: float = 0.0
    """Wall seconds for measuring the cells, an equal share a process; 0: no such budget. Every
    cell first gets min_rounds, whatever that takes. While some of the budget is left, cells whose
    interval is wider than `precision` are measured a second time, widest first, with up to
    max_rounds and what is left as sampling time."""


TOOLS = ("torch", "nsys", "ncu")
"""Keys of Trace that are a pass each, in the order of the passes."""


@dataclass
class Trace:
    """Evidence passes after timing, each in a worker of its own: a key present is a pass; `auto`
    is torch on a GPU."""

    auto: dict[str, Any] | None = None
    none: dict[str, Any] | None = None
    torch: dict[str, Any] | None = None
    nsys: dict[str, Any] | None = None
    ncu: dict[str, Any] | None = None
    cells: str = "first:8"
    """first:N, all, slowest:N, or an expression over the axes."""
    calls: int = 3
    """Calls traced for each implementation."""


@dataclass
class Tracking:
    """Where runs are filed."""

    name: str = MISSING
    store: Store = Store.local
    uri: str = ""
    """With `server`: its address; empty: MLFLOW_TRACKING_URI."""
    on_error: OnError = OnError.warn
    """An unreachable store: warn and keep the files, or fail before the first job."""
    timeout_s: int = 3
    """A server must answer within this."""
    prefix: str = ""
    """Put before the names of MLflow experiments, which are the kernels'."""


@dataclass
class Settings:
    """Library settings that decide dispatch: set in the worker and recorded."""

    cublas_workspace: str = ""
    """CUBLAS_WORKSPACE_CONFIG; empty: the library's default."""
    blas: str = "default"
    """Preferred BLAS: default, cublas or cublaslt."""
    reduced_precision_reduction: bool = True
    """bf16 and fp16 reductions inside GEMM may be in reduced precision (torch's default)."""
    cudnn_benchmark: bool = False
    threads: int = 0
    """CPU threads of torch; 0: torch's default, one a core. More than there are CPUs are noted."""


@dataclass
class Claim:
    """What the experiment expects to see."""

    fused: str = ""
    unfused: str = ""
    expect: dict[str, Any] = field(default_factory=dict)
    """Bands such as speedup: ">= 1.05", and counts such as stages: {triton: 1}."""


@dataclass
class Experiment:
    """One composed question: from here on plain values."""

    experiment_name: str = "adhoc"
    question: str = ""
    kernel: Kernel = field(default_factory=Kernel)
    shapes: Shapes = field(default_factory=Shapes)
    dtype: Dtype = field(default_factory=Dtype)
    target: Target = field(default_factory=Target)
    protocol: Protocol = field(default_factory=Protocol)
    trace: Trace = field(default_factory=Trace)
    tracking: Tracking = field(default_factory=Tracking)
    implementations: list[str] = field(default_factory=list)
    """Which of the kernel's implementations; empty: all."""
    claim: Claim = field(default_factory=Claim)
    distribution: Distribution = Distribution.normal
    warm_inputs: list[str] = field(default_factory=list)
    """Inputs, by their names in `make_inputs`, that a cold call finds in the cache: activations
    that the layer before has just written, beside cold weights. GPU only."""
    seed: int = 0
    mode: Mode = Mode.run
    submit: Submit = Submit.stream
    worker: WorkerMode = WorkerMode.process
    device: str = "0"
    """GPU index or UUID."""
    cell: str | None = None
    """Only this cell, by its id."""
    max_failures: int = 0
    """A multirun ends after this many failed jobs; 0: it runs all."""
    settings: Settings = field(default_factory=Settings)
    strict: bool = False
    """noisy, unsupported, unavailable and a refuted claim make the exit code 1."""
