"""An axis' values, held against what the kernel's YAML declares of the axis."""

import math
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigError, unknown
from ..records import AxisValue
from ..schema import Axis, AxisType, Kernel

_WORDS = {"true": True, "false": False, "on": True, "off": False, "yes": True, "no": False}

_MOST = 2**63 - 1


def value(axis: Axis, given: Any, key: str) -> AxisValue:
    """The value in the axis' type. Raises ConfigError with key, value and what is allowed.

    `1e9` is an integer; True is none; `on` and `off` are booleans only where one is meant.
    """
    typed = _typed(axis.type, given, key)
    if isinstance(typed, float) and not math.isfinite(typed):
        raise ConfigError(f"{key}: {given} is no finite number.")
    if isinstance(typed, int) and abs(typed) > _MOST:
        raise ConfigError(f"{key}: {given} is beyond 2^63 - 1; no tensor has such a size.")
    if isinstance(typed, int | float) and not isinstance(typed, bool):
        if axis.min is not None and typed < axis.min:
            raise ConfigError(f"{key}: {given} is below min {axis.min:g}{_range(axis)}.")
        if axis.max is not None and typed > axis.max:
            raise ConfigError(f"{key}: {given} is above max {axis.max:g}{_range(axis)}.")
    if axis.choices:
        allowed = [_typed(axis.type, choice, f"{key} (choices)") for choice in axis.choices]
        if typed not in allowed:
            raise unknown(key, given, [str(choice) for choice in allowed])
    return typed


def _range(axis: Axis) -> str:
    low = "-inf" if axis.min is None else f"{axis.min:g}"
    high = "inf" if axis.max is None else f"{axis.max:g}"
    return f" (allowed: {low} to {high})"


def _typed(kind: AxisType, given: Any, key: str) -> AxisValue:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    match kind:
        case AxisType.int if is_number and float(given).is_integer():
            return int(given)
        case AxisType.float if is_number:
            return float(given)
        case AxisType.str if isinstance(given, str):
            return given
        case AxisType.bool if isinstance(given, bool):
            return given
        case AxisType.bool if isinstance(given, str) and given.lower() in _WORDS:
            return _WORDS[given.lower()]
        case _:
            raise _not_meant(kind, given, key)


def _not_meant(kind: AxisType, given: Any, key: str) -> ConfigError:
    meant = {
        AxisType.int: "an integer",
        AxisType.float: "a number",
        AxisType.bool: "true or false",
        AxisType.str: "a name",
    }[kind]
    shown = str(given).lower() if isinstance(given, bool) else given
    hint = " Quote it if it is the name of something." if kind == AxisType.str else ""
    return ConfigError(f"{key}: {shown} is {_kind(given)}; {meant} is meant.{hint}")


def _kind(given: Any) -> str:
    match given:
        case None:
            return "no value"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number" if not isinstance(given, float) else "a number with a fraction"
        case str():
            return "text"
    return f"a {type(given).__name__}"


def known(kernel: Kernel, name: str, key: str) -> Axis:
    """The declared axis of that name. Raises ConfigError with the kernel's axes."""
    if name not in kernel.axes:
        raise unknown(f"{key}: axis", name, kernel.axes, next_step=f"(axes of {kernel.name})")
    return kernel.axes[name]


def complete(kernel: Kernel, given: Mapping[str, Any], key: str) -> dict[str, AxisValue]:
    """All axes in the kernel's order: the given ones, else each axis' default.

    Raises ConfigError for an axis that the kernel does not have, a value out of range, and an
    axis without a value.
    """
    for name in given:
        known(kernel, name, key)
    axes: dict[str, AxisValue] = {}
    for name, axis in kernel.axes.items():
        if name in given:
            axes[name] = value(axis, given[name], f"{key}.{name}")
        elif axis.default is not None:
            axes[name] = value(axis, axis.default, f"kernel.axes.{name}.default")
        else:
            raise ConfigError(
                f"{key}: axis {name} of {kernel.name} has no value and no default. "
                f"Say it, e.g. shapes.product.{name}=[...]."
            )
    return axes
