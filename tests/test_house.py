"""The house rules, read from the sources: floors, fences, doors, sizes, names.

Every rule is a function from a tree to its breaches. It is held on this tree, and shown to bite on
a tree with one breach planted.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A file imports lower floors, and its own room. A folder is one room: all its files stand together.
# What is not named here has no place yet: give it one.
FLOORS = {
    "errors": 0,
    "printable": 0,
    "records": 0,
    "schema": 1,
    "channel": 1,
    "asking": 1,
    "spent": 1,
    "outputs": 1,
    "repro": 1,
    "counted": 1,
    "statistics": 1,
    "bands": 1,
    "clocks": 1,
    "interrupts": 1,
    "limited": 1,
    "results": 2,
    "clock_guard": 2,
    "merging": 2,
    "device": 2,
    "process": 2,
    "provenance": 2,
    "question": 2,
    "judge": 2,
    "folder": 3,
    "environment": 3,
    "nsight": 3,
    "clock_lock": 3,
    "traced": 3,
    "worker": 3,
    "inline": 4,
    "calibration": 4,
    "death": 5,
    "starting": 6,
    "supervisor": 7,
    "passes": 8,
    "evidence": 8,
    "tracking": 8,
    "report": 8,
    "job": 9,
    "doctor": 9,
    "preparing": 10,
    "commands": 11,
    "cli": 12,
    "__main__": 13,
}

# Where in runner/ a library may be imported, at any depth of the file.
FENCES = {
    "mlflow": ("runner/tracking/",),
    "hydra": (
        "runner/question/compose.py",
        "runner/question/refusals.py",
        "runner/commands/run.py",
    ),
    "omegaconf": ("runner/schema.py", "runner/question/", "runner/commands/run.py"),
    "nvtx": ("runner/worker/ranges.py",),
    "matplotlib": ("runner/report/",),
    "torch": ("runner/worker/", "runner/calibration/"),  # the supervisor never touches CUDA
    "triton": (),
}

SPEAKERS = ("runner/commands/", "runner/report/", "runner/cli.py")

LINES = {"runner": 250, "kernels": 400}
# Declarations only, one a noun; to be read as a dictionary is.
DICTIONARIES = {"runner/records.py": 550, "runner/schema.py": 450}


@dataclass(frozen=True)
class Import:
    """One imported module: absolute name, line, and whether it runs when the file is imported."""

    name: str
    line: int
    top: bool


@dataclass(frozen=True)
class Source:
    """One Python file; `path` from the root, with slashes."""

    path: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Its name in the package, e.g. kernel_lab.runner.worker.main."""
        parts = self.path.removesuffix(".py").removesuffix("/__init__").split("/")
        return ".".join(["kernel_lab", *parts])

    @property
    def package(self) -> str:
        """What a relative import of one dot starts from."""
        return self.module if self.path.endswith("__init__.py") else self.module.rpartition(".")[0]

    def imports(self) -> Iterator[Import]:
        """All imports, also inside functions; `import_module("x")` counts as one."""
        deferred = {
            inner
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for inner in ast.walk(node)
            if inner is not node
        }
        for node in ast.walk(self.tree):
            for name in self._names(node):
                yield Import(name, node.lineno, node not in deferred)

    def _names(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = self.package.split(".")[: len(self.package.split(".")) - node.level + 1]
                base = ".".join([*up, base]) if base else ".".join(up)
            return [f"{base}.{alias.name}" for alias in node.names]
        if isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            named = isinstance(first, ast.Constant) and isinstance(first.value, str)
            if called in ("import_module", "__import__") and named:
                return [first.value]
        return []


def sources(root: Path, *folders: str) -> list[Source]:
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text()
            found.append(Source(path.relative_to(root).as_posix(), text, ast.parse(text)))
    return found


def room(module: str) -> str:
    """The first name below kernel_lab.runner; empty for the package itself."""
    return ".".join(module.split(".")[2:3])


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def once(breaches: Iterable[str]) -> list[str]:
    """Each breach once: one line may import several names."""
    return list(dict.fromkeys(breaches))


def unplaced(root: Path) -> list[str]:
    """Files and folders of runner/ without a floor."""
    return [
        f"{source.path}: has no floor in FLOORS"
        for source in sources(root, "runner")
        if source.path != "runner/__init__.py" and room(source.module) not in FLOORS
    ]


def upward(root: Path) -> list[str]:
    """Imports of the same or a higher floor, outside the file's own room."""
    found = []
    for source in sources(root, "runner"):
        here = room(source.module)
        for each in source.imports():
            if not within(each.name, "kernel_lab.runner"):
                continue
            there = room(each.name)
            floors = FLOORS.get(here, -1), FLOORS.get(there, 99)
            if there != here and floors[1] >= floors[0]:
                found.append(f"{source.path}:{each.line}: imports {there}, which is not below")
    return once(found)


def cycles(root: Path) -> list[str]:
    """Files that reach themselves through their imports."""
    files = {source.module: source for source in sources(root, "runner", "kernels")}

    def owner(name: str) -> str | None:
        while name and name not in files:
            name = name.rpartition(".")[0]
        return name or None

    edges = {
        module: {owner(each.name) for each in source.imports()} - {None}
        for module, source in files.items()
    }

    def reaches(start: str) -> bool:
        seen, queue = set(), list(edges[start])
        while queue:
            at = queue.pop()
            if at == start:
                return True
            if at not in seen:
                seen.add(at)
                queue += edges[at]
        return False

    return [
        f"{files[module].path}: imports itself in the end" for module in files if reaches(module)
    ]


def fences(root: Path) -> list[str]:
    """Libraries imported in runner/ outside their fence."""
    return once(
        f"{source.path}:{each.line}: imports {library}; allowed: {', '.join(allowed) or 'nowhere'}"
        for source in sources(root, "runner")
        for each in source.imports()
        for library, allowed in FENCES.items()
        if within(each.name, library) and not source.path.startswith(allowed)
    )


def doors(root: Path) -> list[str]:
    """Imports between kernels/ and runner/: the only door is a dotted path in YAML."""
    other = {"runner": "kernel_lab.kernels", "kernels": "kernel_lab.runner"}
    return [
        f"{source.path}:{each.line}: imports {each.name}"
        for source in sources(root, "runner", "kernels")
        for each in source.imports()
        if within(each.name, other[source.path.split("/")[0]])
    ]


def kernel_imports(root: Path) -> list[str]:
    """What a kernel's file imports at its top beside torch, triton and the standard library."""
    return [
        f"{source.path}:{each.line}: imports {each.name} at its top"
        for source in sources(root, "kernels")
        if not source.path.startswith("kernels/adapters/")
        for each in source.imports()
        if each.top and each.name.split(".")[0] not in {"torch", "triton", *sys.stdlib_module_names}
    ]


def bare_names(root: Path) -> list[str]:
    """`kernels` or `runner` by their bare names, in Python and in YAML."""
    found = [
        f"{source.path}:{each.line}: imports {each.name} by its bare name"
        for source in sources(root, "runner", "kernels", "tests")
        for each in source.imports()
        if within(each.name, "kernels") or within(each.name, "runner")
    ]
    for folder in ("conf", "experiments"):
        for path in sorted((root / folder).rglob("*.yaml")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                value = line.partition("#")[0]
                if re.search(r"(?<![\w./])(kernels|runner)\.\w", value):
                    found.append(f"{path.relative_to(root)}:{number}: names a bare module")
    return found


def absolute(root: Path) -> list[str]:
    """Absolute imports of our own inside runner/, which a second copy would not follow."""
    return [
        f"{source.path}:{node.lineno}: imports {node.module} absolutely"
        for source in sources(root, "runner")
        if source.path != "runner/__main__.py"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and not node.level and node.module
        if within(node.module, "kernel_lab")
    ]


def sizes(root: Path) -> list[str]:
    """Files too long to be read in one go."""
    found = []
    for source in sources(root, "runner", "kernels"):
        limit = DICTIONARIES.get(source.path, LINES[source.path.split("/")[0]])
        lines = source.text.count("\n")
        if lines > limit:
            found.append(f"{source.path}: {lines} lines, at most {limit}")
    return found


def misplaced(root: Path) -> list[str]:
    """Python where only YAML lives, and the file that would shadow the package `kernels`."""
    found = [
        f"{path.relative_to(root)}: Python among the words"
        for folder in ("conf", "experiments")
        for path in sorted((root / folder).rglob("*.py"))
    ]
    if (root / "kernels/__init__.py").exists():
        found.append("kernels/__init__.py: shadows the package `kernels`")
    if (root / "runner/__init__.py").exists() and (root / "runner/__init__.py").read_text():
        found.append("runner/__init__.py: not empty, though `python -m runner` loads it twice")
    return found


def kernel_names(root: Path) -> list[str]:
    """Kernels that runner/ knows by name."""
    names = {path.stem for path in (root / "kernels").glob("*.py")} | {
        path.stem for path in (root / "conf/kernel").glob("*.yaml")
    }
    found = []
    for source in sources(root, "runner"):
        for number, line in enumerate(source.text.splitlines(), 1):
            for name in sorted(names):
                if re.search(rf"\b{re.escape(name)}\b", line):
                    found.append(f"{source.path}:{number}: names the kernel {name}")
    return found


def prints(root: Path) -> list[str]:
    """`print` outside the files that speak to the terminal."""
    return [
        f"{source.path}:{node.lineno}: prints"
        for source in sources(root, "runner", "kernels")
        if not source.path.startswith(SPEAKERS)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]


def unpacked(root: Path) -> list[str]:
    """Folders of Python that the wheel would lack."""
    listed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {source.path.rpartition("/")[0] for source in sources(root, "runner", "kernels")}
    return [
        f"{folder}: not among the packages of pyproject.toml"
        for folder in sorted(folders)
        if "kernel_lab." + folder.replace("/", ".") not in listed
    ]


# Each rule with a breach of it: path, content, and what the message must name.
BREACHES = [
    (unplaced, "runner/drawer.py", "", "runner/drawer.py"),
    (unplaced, "runner/attic/box.py", "", "runner/attic/box.py"),
    (upward, "runner/errors.py", "from .schema import Axis", "imports schema"),
    (upward, "runner/records.py", "from . import errors", "imports errors"),
    (upward, "runner/judge/claims.py", "from ..worker.main import go", "imports worker"),
    (upward, "runner/worker/main.py", "def go():\n    from ..job import one", "imports job"),
    (upward, "runner/report/table.py", "from .. import job", "imports job"),
    (cycles, "runner/judge/claims.py", "from . import claims", "runner/judge/claims.py"),
    (fences, "runner/job.py", "import mlflow.tracking", "imports mlflow"),
    (fences, "runner/cli.py", "from hydra import main", "imports hydra"),
    (fences, "runner/folder.py", "from omegaconf import OmegaConf", "imports omegaconf"),
    (fences, "runner/worker/timing.py", "import nvtx", "imports nvtx"),
    (fences, "runner/worker/load.py", "def f():\n    import triton", "allowed: nowhere"),
    (fences, "runner/supervisor.py", "from torch import cuda", "imports torch"),
    (fences, "runner/cli.py", "import importlib\nimportlib.import_module('mlflow')", "mlflow"),
    (doors, "runner/job.py", "import kernel_lab.kernels.gemm", "imports kernel_lab.kernels"),
    (doors, "runner/job.py", "from ..kernels import gemm", "imports kernel_lab.kernels"),
    (doors, "kernels/gemm.py", "from kernel_lab.runner import errors", "kernel_lab.runner"),
    (kernel_imports, "kernels/gemm.py", "import numpy", "imports numpy"),
    (kernel_imports, "kernels/gemm.py", "try:\n    import liger\nexcept ImportError: ...", "liger"),
    (kernel_imports, "kernels/gemm.py", "from . import softmax", "softmax"),
    (bare_names, "runner/job.py", "import runner.errors", "runner.errors"),
    (bare_names, "tests/test_x.py", "from kernels.gemm import cost", "kernels.gemm"),
    (bare_names, "conf/kernel/gemm.yaml", "module: kernels.gemm", "conf/kernel/gemm.yaml:1"),
    (absolute, "runner/job.py", "from kernel_lab.runner.errors import unknown", "runner/job.py:1"),
    (sizes, "runner/job.py", "x = 1\n" * 251, "251 lines"),
    (sizes, "kernels/gemm.py", "x = 1\n" * 401, "401 lines"),
    (misplaced, "conf/kernel/gemm.py", "", "conf/kernel/gemm.py"),
    (misplaced, "experiments/why.py", "", "experiments/why.py"),
    (misplaced, "kernels/__init__.py", "", "kernels/__init__.py"),
    (misplaced, "runner/__init__.py", "x = 1", "runner/__init__.py"),
    (kernel_names, "runner/job.py", 'name = "gemm"', "the kernel gemm"),
    (prints, "runner/worker/main.py", "print(1)", "runner/worker/main.py:1"),
    (prints, "kernels/gemm.py", "def f():\n    print(1)", "kernels/gemm.py:2"),
    (unpacked, "runner/attic/box.py", "", "runner/attic"),
]  # fmt: skip
RULES = sorted({rule for rule, *_ in BREACHES}, key=lambda rule: rule.__name__)

# A small house that keeps every rule, with the nearest allowed neighbours of the breaches.
SOUND = {
    "pyproject.toml": (
        '[tool.setuptools]\npackages = ["kernel_lab.runner", "kernel_lab.runner.commands", '
        '"kernel_lab.runner.judge", "kernel_lab.runner.report", "kernel_lab.runner.tracking", '
        '"kernel_lab.runner.worker", "kernel_lab.kernels", "kernel_lab.kernels.adapters"]'
    ),
    "runner/__init__.py": "",
    "runner/__main__.py": "from kernel_lab.runner.cli import main",
    "runner/errors.py": "import difflib",
    "runner/schema.py": "from omegaconf import MISSING\nfrom .errors import unknown",
    "runner/judge/__init__.py": "",
    "runner/judge/claims.py": "from ..records import Claim\nfrom .verdicts import judge",
    "runner/judge/verdicts.py": "from .. import records",
    "runner/report/table.py": "from ..results import rows\nprint(1)",
    "runner/tracking/store.py": "def f():\n    import mlflow",
    "runner/worker/ranges.py": "import nvtx\nimport torch",
    "runner/commands/show.py": "from ..job import one\nprint(gemmlike)",
    "runner/cli.py": "from .commands import show\nimport runners",
    "kernels/gemm.py": "import math\nimport torch\ndef f():\n    import cuda.core",
    "kernels/adapters/liger.py": "import liger_kernel",
    "conf/kernel/gemm.yaml": "module: kernel_lab.kernels.gemm  # kernels.gemm, kernels/gemm.py",
    "experiments/why.yaml": "question: does it pay?",
    "tests/test_gemm.py": "from kernel_lab.kernels.gemm import cost",
}


def build(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_house_keeps_the_rule(rule):
    found = rule(ROOT)
    assert not found, f"{rule.__doc__}\n" + "\n".join(found)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_house_has_no_breach(rule, tmp_path):
    build(tmp_path, SOUND)
    assert rule(tmp_path) == []


@pytest.mark.parametrize(
    ("rule", "path", "text", "named"),
    BREACHES,
    ids=[f"{rule.__name__}-{number}" for number, (rule, *_) in enumerate(BREACHES)],
)
def test_a_planted_breach_is_seen(rule, path, text, named, tmp_path):
    build(tmp_path, {**SOUND, path: text})
    found = rule(tmp_path)
    assert len(found) == 1, found
    assert named in found[0]


def test_every_floor_is_somebodys():
    """A floor that nothing stands on would hide a misspelt name."""
    here = {room(source.module) for source in sources(ROOT, "runner")}
    assert set(FLOORS) - here == set()
