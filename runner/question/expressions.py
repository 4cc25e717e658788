"""Arithmetic and conditions written in YAML, evaluated without Python's `eval`.

Numbers, strings, lists, names, + - * / // % **, comparisons with `in` and `not in`, and/or/not,
x if c else y, min and max. Nothing else parses: no attribute, no subscript, no other call.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConfigError, unknown

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max}
_CONSTANTS = {"true": True, "false": False}
_LARGEST_POWER = 64
_SHOWN = "numbers, strings, names, + - * / // % **, comparisons, in, and, or, not, min, max"


def parse(text: str, key: str) -> ast.expr:
    """The expression's tree. Raises ConfigError naming the key where it is no expression."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ConfigError(f"{key}: {text!r} is no expression: {reason}. Use {_SHOWN}.") from None
    return _checked(tree, text, key)


def _checked(tree: ast.expr, text: str, key: str) -> ast.expr:
    allowed = (
        *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.List, ast.Tuple),
        *(ast.Name, ast.Load, ast.boolop, *_BINARY, *_UNARY, *_COMPARE),
    )
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            continue
        if isinstance(node, ast.Call) and not node.keywords and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
            if name not in _FUNCTIONS:
                raise ConfigError(f"{key}: {text!r} calls {name}; only min and max can be called.")
            continue
        if isinstance(node, ast.Name) and node.id in _FUNCTIONS and id(node) not in called:
            raise ConfigError(f"{key}: {text!r}: {node.id} is a function.")
        if not isinstance(node, allowed):
            raise ConfigError(f"{key}: {text!r} holds {type(node).__name__}. Use {_SHOWN}.")
    return tree


def names(text: str, key: str) -> set[str]:
    """The names that an expression uses. Raises ConfigError as `parse` does."""
    return {
        node.id
        for node in ast.walk(parse(text, key))
        if isinstance(node, ast.Name) and node.id not in _FUNCTIONS and node.id not in _CONSTANTS
    }


def evaluate(text: str, values: Mapping[str, Any], key: str) -> Any:
    """The expression's value. Raises ConfigError for an unknown name or a failing operation."""
    tree = parse(text, key)
    for name in sorted(names(text, key)):
        if name not in values:
            raise unknown(f"{key}: {text!r}: name", name, values)
    try:
        return _value(tree, values)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ConfigError(f"{key}: {text!r} with {_bound(text, values, key)}: {error}") from None


def holds(text: str, values: Mapping[str, Any], key: str) -> bool:
    """Whether a condition is true of the values."""
    return bool(evaluate(text, values, key))


def integral(text: str, values: Mapping[str, Any], key: str) -> Any:
    """The value, where a number with a fraction is an error: a dimension is whole."""
    value = evaluate(text, values, key)
    if isinstance(value, float):
        if not value.is_integer():
            raise ConfigError(
                f"{key}: {text!r} with {_bound(text, values, key)} is {value:g}, not a whole number"
            )
        return int(value)
    return value


def _bound(text: str, values: Mapping[str, Any], key: str) -> str:
    return ", ".join(f"{name}={values[name]}" for name in sorted(names(text, key)))


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return values[node.id] if node.id in values else _CONSTANTS[node.id]
        case ast.List() | ast.Tuple():
            return [_value(item, values) for item in node.elts]
        case ast.BinOp():
            return _binary(node.op, _value(node.left, values), _value(node.right, values))
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_value(node.operand, values))
        case ast.BoolOp(op=ast.And()):
            return all(_value(item, values) for item in node.values)
        case ast.BoolOp():
            return any(_value(item, values) for item in node.values)
        case ast.IfExp():
            return _value(node.body if _value(node.test, values) else node.orelse, values)
        case ast.Compare():
            left = _value(node.left, values)
            for op, item in zip(node.ops, node.comparators, strict=True):
                right = _value(item, values)
                if not _COMPARE[type(op)](left, right):
                    return False
                left = right
            return True
        case ast.Call(func=ast.Name(id=name)):
            return _FUNCTIONS[name](*(_value(item, values) for item in node.args))
    raise TypeError(f"{type(node).__name__} has no value")


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(left, str | list) or isinstance(right, str | list):
        raise TypeError(f"arithmetic on {left!r} and {right!r}")
    if isinstance(op, ast.Pow) and abs(right) > _LARGEST_POWER:
        raise ValueError(f"the power {right} is larger than {_LARGEST_POWER}")
    if isinstance(op, ast.Div) and isinstance(left, int) and isinstance(right, int):
        # exact where it divides: 2 * 28672 * 10**12 / 8 must not lose digits in a float
        return left // right if right and left % right == 0 else left / right
    return _BINARY[type(op)](left, right)
