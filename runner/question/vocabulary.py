"""Where YAML lives: the shipped vocabulary and experiments, and the folders that a user adds.

Reads and names files; composes nothing. A folder from outside mirrors `conf/` (kernel/, shapes/,
dtype/, implementation/<kernel>/, ...) and may hold experiments/; its own .py modules are imported
from the folder itself. A file that cannot be read keeps its place with the reason, so that it
stops only the command that asks for it.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
"""The checkout, or the installed package `kernel_lab`: holds conf/ and experiments/."""

GROUPS = (
    "kernel",
    "shapes",
    "model",
    "dtype",
    "target",
    "protocol",
    "trace",
    "tracking",
    "implementation",
    "experiment",
)
"""The nouns; each is a folder of words."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML with the scalars of YAML 1.2: only true and false are booleans, so that `off`, `on`
    and `no` stay names; no dates, no base-60 numbers; `1e9` is a number; a key twice is an error.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value} stands there twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9_]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(f"^(?:{_pattern})$"),
        [*_first.replace("\0", ""), *([""] if "\0" in _first else [])],
    )


def load_yaml(text: str) -> Any:
    """The value of a YAML text. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Loader)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One word of a group, or why its file cannot be read."""

    group: str
    name: str
    path: Path
    doc: str = ""
    package: str | None = None
    node: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Every word of every group, and the folders from outside."""

    entries: Mapping[str, Mapping[str, Entry]]
    folders: tuple[Path, ...] = ()

    def names(self, group: str) -> list[str]:
        return sorted(self.entries.get(group, {}))

    def groups(self) -> list[str]:
        return sorted(self.entries)

    def get(self, group: str, name: str) -> Entry | None:
        return self.entries.get(group, {}).get(name)

    @property
    def python_path(self) -> list[str]:
        """What sys.path needs at its end, so that a dotted path into an outside folder imports."""
        return [str(folder) for folder in self.folders]


def outside(config_dirs: Iterable[str | Path] = ()) -> tuple[Path, ...]:
    """The folders of `--config-dir` and KLAB_PATH, absolute, each once.

    Raises ConfigError for one that is not there.
    """
    named = [("--config-dir", str(folder)) for folder in config_dirs]
    named += [
        ("KLAB_PATH", part) for part in os.environ.get("KLAB_PATH", "").split(os.pathsep) if part
    ]
    found: dict[Path, None] = {}
    for source, text in named:
        path = Path(text).expanduser().resolve()
        if not path.is_dir():
            raise ConfigError(f"{source}={text}: no such folder. Give a folder that mirrors conf/.")
        found[path] = None
    return tuple(found)


def read(config_dirs: Iterable[str | Path] = ()) -> Vocabulary:
    """Everything that can be named. Raises ConfigError where two files claim one name."""
    folders = outside(config_dirs)
    entries: dict[str, dict[str, Entry]] = {group: {} for group in GROUPS}
    for conf, experiments in [(ROOT / "conf", ROOT), *((folder, folder) for folder in folders)]:
        for file in _files(conf, experiments):
            entry = _entry(*file)
            words = entries.setdefault(entry.group, {})
            if entry.name in words:
                raise ConfigError(
                    f"{entry.group}={entry.name}: two files have this name, "
                    f"{words[entry.name].path} and {entry.path}. Rename one."
                )
            words[entry.name] = entry
    return Vocabulary(entries=entries, folders=folders)


def _files(conf: Path, experiments: Path) -> Iterable[tuple[str, Path]]:
    for group in GROUPS:
        if group not in ("implementation", "experiment"):
            yield from ((group, path) for path in sorted((conf / group).glob("*.yaml")))
    for path in sorted((conf / "implementation").glob("*/*.yaml")):
        yield f"implementation/{path.parent.name}", path
    for path in sorted((conf / "hydra").glob("*/*.yaml")):
        yield f"hydra/{path.parent.name}", path
    for folder in ("experiments", "experiment"):
        yield from (("experiment", path) for path in sorted((experiments / folder).glob("*.yaml")))


def _entry(group: str, path: Path) -> Entry:
    common: dict[str, Any] = {"group": group, "name": path.stem, "path": path}
    try:
        text = path.read_text(encoding="utf-8")
        node = load_yaml(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return Entry(**common, error=_reason(error))
    if node is None:
        node = {}
    if not isinstance(node, dict):
        return Entry(**common, error=f"a mapping is meant, not {type(node).__name__}")
    if group == "experiment" and "experiment_name" in node:
        return Entry(**common, error="experiment_name is the file's name; remove the key")
    return Entry(**common, doc=_doc(group, text, node), package=_package(group, text), node=node)


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())


def _package(group: str, text: str) -> str | None:
    header = re.match(r"\s*#\s*@package\s+(\S+)", text)
    if header:
        return header.group(1)
    if group == "experiment":
        return "_global_"
    return None


def _doc(group: str, text: str, node: Mapping[str, Any]) -> str:
    own = node.get("question" if group == "experiment" else "doc")
    if isinstance(own, str) and own.strip():
        return " ".join(own.split())
    for line in text.lstrip().splitlines():
        if not line.startswith("#"):
            break
        comment = line.lstrip("# ").strip()
        if comment and not comment.startswith(("@package", "klab ")):
            return comment
    return ""


def broken(vocabulary: Vocabulary, group: str, names: Sequence[str]) -> ConfigError | None:
    """The error for the first of the names whose file cannot be read."""
    for name in names:
        entry = vocabulary.get(group, name)
        if entry and entry.error:
            return ConfigError(f"{group}={name}: {entry.path}: {entry.error}")
    return None
