"""Where workloads come from: `cases`, `product` or `model`, then `exclude`.

Pure: an Experiment in, axes out. The runner knows no kernel: a model becomes axes by the kernel's
own `from_model` expressions.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError, unknown
from ..records import AxisValue
from ..schema import Experiment, Kernel, Model, Shapes
from . import axes, expressions

LARGEST = 100_000
"""Workloads of one job at most."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Axes of one workload; `name` is that of the model's workload it comes from, if any."""

    axes: dict[str, AxisValue]
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Expanded:
    """The workloads of a job, those left out with the condition, and how many were repeated."""

    shapes: tuple[Shape, ...]
    excluded: tuple[tuple[Shape, str], ...] = ()
    duplicates: int = 0


def expand(experiment: Experiment) -> Expanded:
    """Every workload of the experiment. Raises ConfigError, naming the key."""
    kernel, shapes = experiment.kernel, experiment.shapes
    own = _source(shapes, "shapes")
    default = _source(kernel.shapes, "kernel.shapes")
    used, key = (shapes, "shapes") if own else (kernel.shapes, "kernel.shapes")
    conditions = [(text, f"shapes.exclude[{i}]") for i, text in enumerate(shapes.exclude)]
    match own or default:
        case "cases":
            found = _cases(kernel, used, key)
        case "product":
            found = _product(kernel, used, key)
        case "model":
            found = _model(kernel, used, key)
        case _:
            raise ConfigError(
                f"shapes: no source, and {kernel.name} has no default set. "
                f"Say shapes=NAME, shapes.product.AXIS=[...] or shapes.cases=[{{...}}]."
            )
    if not own:
        conditions += [
            (text, f"kernel.shapes.exclude[{i}]") for i, text in enumerate(kernel.shapes.exclude)
        ]
    return _exclude(found, conditions, experiment)


def _source(shapes: Shapes, key: str) -> str:
    given = [
        name
        for name, here in (
            ("cases", bool(shapes.cases)),
            ("product", bool(shapes.product)),
            ("model", bool(shapes.model.name)),
        )
        if here
    ]
    if len(given) > 1:
        label = f" ({shapes.name})" if shapes.name else ""
        raise ConfigError(
            f"{key}{label}: {' and '.join(f'{key}.{name}' for name in given)} are both given, "
            "but workloads come from one source. Remove one; shapes=default has none."
        )
    if shapes.zip and given != ["product"]:
        raise ConfigError(f"{key}.zip: only goes with {key}.product.")
    for name in ("axes", "workloads"):
        if getattr(shapes, name) and given != ["model"]:
            raise ConfigError(
                f"{key}.{name}: only goes with {key}.model, e.g. shapes=llama3_8b_decode"
            )
    return given[0] if given else ""


def _cases(kernel: Kernel, shapes: Shapes, key: str) -> Iterator[Shape]:
    for index, case in enumerate(shapes.cases):
        yield Shape(axes=axes.complete(kernel, case, f"{key}.cases[{index}]"))


def _product(kernel: Kernel, shapes: Shapes, key: str) -> Iterator[Shape]:
    product = dict(shapes.product)
    zipped = list(shapes.zip)
    if shapes is not kernel.shapes:
        # the default set's zip stays only where none of its axes was replaced
        missing = {n: v for n, v in kernel.shapes.product.items() if n not in product}
        zipped += [group for group in kernel.shapes.zip if all(name in missing for name in group)]
        product |= missing
    yield from (
        Shape(axes=axes.complete(kernel, values, f"{key}.product"))
        for values in _combinations(kernel, product, zipped, f"{key}.product", f"{key}.zip")
    )


def _combinations(
    kernel: Kernel,
    product: Mapping[str, list[Any]],
    zipped: list[list[str]],
    key: str,
    zip_key: str,
) -> Iterator[dict[str, Any]]:
    group_of: dict[str, tuple[str, ...]] = {}
    for group in zipped:
        for name in group:
            if name not in product:
                raise unknown(zip_key, name, product, next_step="It zips axes of the product.")
            if name in group_of:
                raise ConfigError(f"{zip_key}: {name} stands there twice.")
            group_of[name] = tuple(group)
        lengths = {name: len(product[name]) for name in group}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ConfigError(f"{zip_key}: {group} must be equally long, but {shown}.")
    steps: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for name, values in product.items():
        axis = axes.known(kernel, name, key)
        if not values:
            raise ConfigError(f"{key}.{name}: an empty list; give at least one value.")
        # checked here, so that the message comes from the list and not from a combination
        for item in values:
            axes.value(axis, item, f"{key}.{name}")
        group = group_of.get(name, (name,))
        steps.setdefault(
            group,
            [{n: product[n][index] for n in group} for index in range(len(values))],
        )
    _limit(math.prod(len(step) for step in steps.values()), key)
    for parts in itertools.product(*steps.values()):
        yield {name: item for part in parts for name, item in part.items()}


def _limit(count: int, key: str) -> None:
    if count > LARGEST:
        raise ConfigError(f"{key}: {count} workloads; at most {LARGEST} go in one job.")


def _model(kernel: Kernel, shapes: Shapes, key: str) -> Iterator[Shape]:
    if not kernel.from_model:
        raise ConfigError(
            f"{key}.model: {kernel.name} does not say how a model becomes axes "
            "(kernel.from_model). Use shapes.product or shapes.cases."
        )
    for name in shapes.workloads:
        if name not in kernel.from_model:
            raise unknown(f"{key}.workloads", name, kernel.from_model)
    if shapes.tp < 1:
        raise ConfigError(f"{key}.tp: {shapes.tp} is below min 1.")
    for name, least in (("tokens", 0), ("batch", 0), ("kv_len", 0)):
        for item in getattr(shapes, name):
            if item < least:
                raise ConfigError(f"{key}.{name}: {item} is below min {least}.")
    further = list(_combinations(kernel, shapes.axes, [], f"{key}.axes", f"{key}.zip"))
    for workload in shapes.workloads or kernel.from_model:
        rule = kernel.from_model[workload]
        for fields in _fields(workload, rule, shapes, key):
            given = {
                axis: _rule(item, fields, f"kernel.from_model.{workload}.{axis}")
                for axis, item in rule.items()
            }
            for more in further:
                both = sorted(set(given) & set(more))
                if both:
                    raise ConfigError(
                        f"{key}.axes.{both[0]}: the model already gives {both[0]} ({workload})."
                    )
                complete = axes.complete(kernel, given | more, f"{key}.model ({workload})")
                yield Shape(axes=complete, name=workload)


def _fields(
    workload: str, rule: Mapping[str, Any], shapes: Shapes, key: str
) -> Iterator[dict[str, Any]]:
    """The values an expression may name; what the rule does not use does not multiply."""
    used: set[str] = set()
    for axis, text in rule.items():
        if isinstance(text, str):
            used |= expressions.names(text, f"kernel.from_model.{workload}.{axis}")
    model = {
        name: item
        for name, item in dataclasses.asdict(shapes.model).items()
        if isinstance(item, int)
    }
    swept = [name for name in ("tokens", "batch", "kv_len") if name in used]
    for name in swept:
        if not getattr(shapes, name):
            raise ConfigError(
                f"{key}.{name}: empty, but {workload} needs it; e.g. {name}: [1, 16]."
            )
    for parts in itertools.product(*(getattr(shapes, name) for name in swept)):
        yield model | {"tp": shapes.tp} | dict(zip(swept, parts, strict=True))


def _rule(item: Any, fields: Mapping[str, Any], key: str) -> Any:
    """An axis of a model's workload: an expression, or a name that is none (act: silu)."""
    if not isinstance(item, str):
        return item
    known = {*fields, *(field.name for field in dataclasses.fields(Model)), "tokens"}
    if item.isidentifier() and item not in known:
        return item
    return expressions.integral(item, fields, key)


def _exclude(
    found: Iterator[Shape], conditions: list[tuple[str, str]], experiment: Experiment
) -> Expanded:
    kept: list[Shape] = []
    seen: set[tuple[tuple[str, Any, type], ...]] = set()
    excluded: list[tuple[Shape, str]] = []
    duplicates = 0
    for shape in found:
        content = tuple((name, item, type(item)) for name, item in shape.axes.items())
        if content in seen:
            duplicates += 1
            continue
        seen.add(content)
        values = {"layout": "contiguous", "dtype": experiment.dtype.name, **shape.axes}
        why = next(
            (text for text, key in conditions if expressions.holds(text, values, key)),
            None,
        )
        if why is not None:
            excluded.append((shape, why))
            continue
        kept.append(shape)
        _limit(len(kept), "shapes")
    return Expanded(shapes=tuple(kept), excluded=tuple(excluded), duplicates=duplicates)
