"""What the types of the schema cannot say: ranges, names that must exist, expressions that parse.

Pure: raises ConfigError with the full key, the value and the choices, or returns.
"""

import re
from collections.abc import Collection, Iterable

from ..clocks import check_clocks
from ..errors import ConfigError, unknown
from ..schema import (
    TOOLS,
    Experiment,
    Implementation,
    Kernel,
    OnError,
    Store,
    WorkerMode,
)
from . import axes, expressions, shapes

LAYOUTS = ("contiguous", "transposed", "padded", "strided")
BLAS = ("default", "cublas", "cublaslt")
WORKSPACE = re.compile(r"(:\d+:\d+)+")
CELL = re.compile(r"c[0-9a-f]{8}")
MOST_ROUNDS = 100_000

_PROTOCOL: dict[str, tuple[float, float]] = {
    # fewer rounds give no interval that covers what it says
    "min_rounds": (20, MOST_ROUNDS),
    "max_rounds": (20, MOST_ROUNDS),
    "round_step": (1, MOST_ROUNDS),
    "samples": (1, 10_000),
    "sample_us": (1, 1e7),
    "precision": (1e-5, 1),
    "band": (0, 1),
    "confidence": (0.5, 0.9999),
    "warmup_ms": (0, 1e6),
    "cell_budget_s": (0.01, 1e6),
    "cell_limit_s": (1, 1e6),
    "step_limit_s": (1, 1e6),
    "processes": (1, 100),
    "budget_s": (0, 1e6),
    "sustained_ms": (0, 60_000),
}


def check(experiment: Experiment, *, dtypes: Collection[str]) -> None:
    """Raises ConfigError for the first thing that cannot be run as asked."""
    kernel(experiment.kernel, dtypes=dtypes)
    _protocol(experiment)
    _trace(experiment)
    _chosen(experiment)
    _settings(experiment)
    if experiment.cell is not None and not CELL.fullmatch(experiment.cell):
        raise ConfigError(
            f"cell={experiment.cell}: no cell's id. An id is c and eight hex digits; "
            "klab plan lists them."
        )
    names = {*experiment.kernel.axes, "dtype", "layout"}
    for index, text in enumerate(experiment.shapes.exclude):
        _condition(text, names, f"shapes.exclude[{index}]")
    shapes.expand(experiment)


def kernel(kernel: Kernel, *, dtypes: Collection[str]) -> None:
    """The kernel's own YAML: everything it names exists."""
    if not kernel.implementations:
        raise ConfigError(f"kernel.implementations: {kernel.name} has none; give at least one.")
    for name in ("baseline", "yardstick"):
        _one_of(f"kernel.{name}", getattr(kernel, name), kernel.implementations)
    if not 1 <= kernel.error_multiple <= 1000:
        raise ConfigError(f"kernel.error_multiple: {kernel.error_multiple} is not in 1 to 1000.")
    if kernel.sum_length:
        _condition(kernel.sum_length, {*kernel.axes, "dtype", "layout"}, "kernel.sum_length")
    for name in kernel.arguments:
        _one_of("kernel.arguments", name, kernel.axes)
    layouts: Iterable[str] = LAYOUTS
    for name, axis in kernel.axes.items():
        key = f"kernel.axes.{name}"
        if not name.isidentifier():
            raise ConfigError(f"{key}: an axis is an identifier, since it is passed by name.")
        if axis.min is not None and axis.max is not None and axis.min > axis.max:
            raise ConfigError(f"{key}.min: {axis.min:g} is above max {axis.max:g}.")
        if axis.default is not None:
            axes.value(axis, axis.default, f"{key}.default")
        if name == "layout":
            for choice in axis.choices:
                _one_of(f"{key}.choices", str(choice), LAYOUTS)
            layouts = [str(choice) for choice in axis.choices] or LAYOUTS
    names = {*kernel.axes, "dtype", "layout"}
    for name, implementation in kernel.implementations.items():
        _implementation(f"kernel.implementations.{name}", implementation, dtypes, layouts, names)
    for index, text in enumerate(kernel.shapes.exclude):
        _condition(text, names, f"kernel.shapes.exclude[{index}]")
    for workload, rule in kernel.from_model.items():
        for axis in rule:
            axes.known(kernel, axis, f"kernel.from_model.{workload}")


def _implementation(
    key: str,
    implementation: Implementation,
    dtypes: Collection[str],
    layouts: Iterable[str],
    names: Collection[str],
) -> None:
    if "." not in implementation.target:
        raise ConfigError(
            f"{key}.target: {implementation.target!r} is no dotted path, e.g. package.module.name."
        )
    for dtype in implementation.dtypes:
        _one_of(f"{key}.dtypes", dtype, dtypes)
    for layout in implementation.layouts:
        _one_of(f"{key}.layouts", layout, layouts)
    if implementation.where:
        _condition(implementation.where, names, f"{key}.where")


def _condition(text: str, names: Collection[str], key: str) -> None:
    for name in sorted(expressions.names(text, key)):
        if name not in names:
            raise unknown(f"{key}: {text!r}: name", name, names, next_step="(a name in quotes?)")


def _one_of(key: str, value: str, choices: Iterable[str]) -> None:
    choices = list(choices)
    if value not in choices:
        raise unknown(key, value, choices)


def _protocol(experiment: Experiment) -> None:
    protocol = experiment.protocol
    for name, (low, high) in _PROTOCOL.items():
        given = getattr(protocol, name)
        if not low <= given <= high:
            raise ConfigError(f"protocol.{name}: {given} is not in {low:g} to {high:g}.")
    target = experiment.target
    check_clocks(protocol.clocks, target=target.name, max_mhz=target.max_mhz)
    if protocol.max_rounds < protocol.min_rounds:
        raise ConfigError(
            f"protocol.max_rounds: {protocol.max_rounds} is below "
            f"protocol.min_rounds {protocol.min_rounds}."
        )
    if protocol.budget_s and protocol.max_rounds == protocol.min_rounds:
        raise ConfigError(
            f"protocol.budget_s: {protocol.budget_s:g} s for rounds beyond protocol.min_rounds, "
            f"and protocol.max_rounds={protocol.max_rounds} allows none. Raise max_rounds."
        )
    if protocol.processes > 1 and experiment.worker is WorkerMode.inline:
        raise ConfigError(
            f"protocol.processes: {protocol.processes} fresh processes, and worker=inline has "
            "none. Add protocol.processes=1."
        )


def _trace(experiment: Experiment) -> None:
    trace = experiment.trace
    given = [name for name in ("auto", "none", *TOOLS) if getattr(trace, name) is not None]
    alone = [name for name in given if name in ("auto", "none")]
    if alone and len(given) > 1:
        raise ConfigError(f"trace=[{','.join(given)}]: {alone[0]} goes with no other.")
    if not 1 <= trace.calls <= 1000:
        raise ConfigError(f"trace.calls: {trace.calls} is not in 1 to 1000.")
    if trace.cells != "all" and not re.fullmatch(r"(first|slowest):[1-9]\d*", trace.cells):
        text = trace.cells
        if text.split(":")[0] in ("first", "slowest"):
            raise ConfigError(f"trace.cells: {text}: write first:N or slowest:N with N from 1.")
        _condition(text, {*experiment.kernel.axes, "dtype", "layout"}, "trace.cells")


def _chosen(experiment: Experiment) -> None:
    known = experiment.kernel.implementations
    for name in experiment.implementations:
        _one_of("implementations", name, known)
    repeated = {n for n in experiment.implementations if experiment.implementations.count(n) > 1}
    if repeated:
        raise ConfigError(f"implementations: {sorted(repeated)[0]} stands there twice.")
    claim = experiment.claim
    for key in ("fused", "unfused"):
        if name := getattr(claim, key):
            _one_of(f"claim.{key}", name, known)
    for key, expected in claim.expect.items():
        if key in ("stages", "launches") and not isinstance(expected, dict):
            raise ConfigError(
                f"claim.expect.{key}: {expected} is no map of implementation to count, "
                f"e.g. {{{experiment.kernel.baseline}: 2}}."
            )
        if isinstance(expected, dict):
            for name in expected:
                _one_of(f"claim.expect.{key}", str(name), known)


def _settings(experiment: Experiment) -> None:
    settings, tracking = experiment.settings, experiment.tracking
    _one_of("settings.blas", settings.blas, BLAS)
    if settings.cublas_workspace and not WORKSPACE.fullmatch(settings.cublas_workspace):
        raise ConfigError(
            f"settings.cublas_workspace: {settings.cublas_workspace!r}: write pairs of size in KiB "
            "and count, e.g. ':4096:8'."
        )
    if settings.threads < 0:
        raise ConfigError(f"settings.threads: {settings.threads} is below min 0.")
    if tracking.timeout_s < 1:
        raise ConfigError(f"tracking.timeout_s: {tracking.timeout_s} is below min 1.")
    if tracking.store == Store.none and tracking.on_error == OnError.fail:
        raise ConfigError("tracking.on_error=fail: with tracking=none there is no store to fail.")
    if not re.fullmatch(r"\d+|(GPU|MIG)-[0-9a-fA-F-]+", experiment.device):
        raise ConfigError(
            f"device={experiment.device}: a GPU's index (0) or UUID (GPU-...) is meant; "
            "for the processor say target=cpu."
        )
    if not 0 <= experiment.seed < 2**63:
        raise ConfigError(f"seed: {experiment.seed} is not in 0 to 2^63 - 1.")
