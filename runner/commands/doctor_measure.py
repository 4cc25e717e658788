"""`klab doctor --measure`: composes the experiments, measures section by section, judges, files."""

import dataclasses
import json
import shlex
import textwrap
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..doctor import tools
from ..doctor.outcome import failed, outcome, unproved
from ..doctor.sections import (
    NUMBERS,
    PLACE,
    Place,
    Section,
    environment,
    gathered,
    measure_section,
    words,
)
from ..environment import worker_environment
from ..interrupts import Interrupts, Terminated
from ..job import Request
from ..outputs import create_exclusively, new_id, outputs
from ..preparing import Preparer
from ..printable import printable
from ..provenance import code_state, commit_text
from ..question.compose import compose, register
from ..report.console import Console
from ..report.doctor import WIDTH, closing, lines
from ..report.text import number
from ..schema import Device, Experiment

_NO_DEVICE = "a CPU has no device timeline for it to see"


class Measurement:
    """One `klab doctor --measure` from its experiments to its files."""

    def __init__(
        self, sections: Sequence[str], settings: Mapping[str, str], console: Console
    ) -> None:
        self._sections = sections
        self._settings = settings
        self._console = console
        self._found: dict[str, Section] = {}
        self._words = words()
        self._requests = self._composed()
        first = next(iter(self._requests.values()))
        self._kind = Device.cuda if first.gpu is not None else Device.cpu
        now = datetime.now(UTC)
        self._id = new_id("doctor")
        command = ["klab", "doctor", "--measure", *sections]
        command += [f"{key}={value}" for key, value in settings.items()]
        self._head = {
            "id": self._id,
            "command": shlex.join(command),
            "date": now.isoformat(timespec="seconds"),
            "commit": commit_text(code_state()),
            "kind": self._kind.value,
            "target": first.experiment.target.name,
            "settings": {"pairs": self._number("pairs"), "repeats": self._number("repeats")},
        }
        self._place = Place(
            folder=create_exclusively(outputs() / "doctor" / self._id),
            kind=self._kind,
            environment=environment(worker_environment(first.experiment, first.gpu)),
            paths=self._words.paths,
            python_path=first.python_path,
        )

    def _composed(self) -> dict[str, Request]:
        """Every experiment, composed and checked before anything starts. Raises ConfigError."""
        place = [f"{key}={self._settings[key]}" for key in PLACE if key in self._settings]
        requests = {}
        names = dict.fromkeys(n for s in self._sections for n in self._words.experiments[s])
        with Preparer((), register().python_path) as preparer:
            for name in names:
                overrides = [f"experiment={name}", *place]
                requests[name] = preparer.request(
                    compose(overrides), job_id="doctor", overrides=overrides, sweep_id=None
                )
            preparer.confirm()
        return requests

    def _number(self, key: str) -> int:
        return int(self._settings.get(key, NUMBERS[key]))

    def run(self) -> int:
        """The exit code. What was measured before an interrupt is kept and printed."""
        interrupts = Interrupts()
        self._say(f"{self._id}: {', '.join(self._sections)} on {self._kind.value}")
        with interrupts:
            try:
                with interrupts.allowed():
                    for section in self._sections:
                        self._measure(section)
            except KeyboardInterrupt:
                if interrupts.received is None:
                    raise
            code = self._file()
        if interrupts.received is not None:
            self._say("interrupted; what was measured is kept")
            return 143 if isinstance(interrupts.received, Terminated) else 130
        return code

    def _measure(self, section: str) -> None:
        match section:
            case "ladder":
                self._one("ladder", {})
                self._tools()
            case "cold":
                self._one("cold", {})
            case "pairs":
                self._one("pairs", {"pairs": self._number("pairs")})
            case _:
                self._repeats()

    def _experiments(self, section: str) -> list[Experiment]:
        return [self._requests[name].experiment for name in self._words.experiments[section]]

    @contextmanager
    def _kept(self, section: str) -> Generator[None]:
        """Whatever is raised within becomes the section's reason: what it and the others have
        measured is filed all the same."""
        try:
            yield
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            found = self._found.get(section) or Section(name=section)
            self._found[section] = dataclasses.replace(found, reason=printable(reason))
            self._ended(section)

    def _one(self, section: str, options: dict[str, Any]) -> None:
        with self._kept(section):
            self._found[section] = self._watched(section, section, section, options)
            self._ended(section)

    def _repeats(self) -> None:
        runs = []
        with self._kept("repeats"):
            for turn in range(1, self._number("repeats") + 1):
                runs.append(self._watched(f"repeat-{turn}", "repeat", "repeats", {}))
                self._found["repeats"] = gathered(runs)
            self._ended("repeats")

    def _watched(self, name: str, section: str, cells: str, options: dict[str, Any]) -> Section:
        """One process, with what it has measured so far where somebody watches."""
        with self._console.status(f"{name} ...") as status:
            return measure_section(
                self._place,
                name,
                section,
                self._experiments(cells),
                options,
                lambda who, rows: status.update(f"{who}: {rows} measured ..."),
            )

    def _tools(self) -> None:
        """The same subjects under nsys and ncu: only those that the ladder could measure."""
        ladder = self._found["ladder"].rows
        who = [
            (row["cell_id"], row["implementation"])
            for row in ladder
            if row.get("period_us") is not None
        ]
        if self._kind is Device.cpu or not who:
            reason = _NO_DEVICE if self._kind is Device.cpu else "the ladder measured nothing"
            everyone = [(row["cell_id"], row["implementation"]) for row in ladder]
            for tool in ("nsys", "ncu"):
                self._found[tool] = tools.absent(tool, everyone, reason)
            return
        experiments = self._experiments("ladder")
        self._wrapped("nsys", who, lambda: tools.by_nsys(self._place, experiments, who))
        self._wrapped("ncu", who, lambda: tools.by_ncu(self._place, experiments, who))

    def _wrapped(self, tool: str, who: Sequence[tools.Subject], run: Callable[[], Section]) -> None:
        began = time.monotonic()
        with self._console.status(f"{tool} ..."), self._kept(tool):
            self._found[tool] = run()
        if reason := self._found[tool].reason:
            lost = tools.absent(tool, who, reason)
            self._found[tool] = dataclasses.replace(lost, reason=reason)
            return
        rows = self._found[tool].rows
        seen = sum(row["busy_us"] is not None for row in rows)
        reasons = list(dict.fromkeys(row["reason"] for row in rows if row["reason"]))
        self._say(
            f"{tool}: {seen} of {len(rows)} subjects, {number(time.monotonic() - began, 3)} s"
            + (f"; not measured: {reasons[0]}" if reasons else "")
        )

    def _ended(self, section: str) -> None:
        found = self._found[section]
        text = f"{section}: {len(found.rows)} rows, {number(found.seconds, 3)} s"
        self._say(f"{text}; {found.reason}" if found.reason else text)

    def _file(self) -> int:
        """Judges, prints, writes doctor.json and report.txt; the exit code."""
        values = outcome(self._found, self._head, gpu=self._kind is Device.cuda)
        failures = failed(values)
        folder: Path = self._place.folder
        (folder / "doctor.json").write_text(json.dumps(values, indent=1, allow_nan=False) + "\n")
        blind = [line for why in unproved(values) for line in textwrap.wrap(why, WIDTH)]
        report = [*lines(values), "", *blind, *closing(values, folder, failures)]
        text = "\n".join(report) + "\n"
        (folder / "report.txt").write_text(text, encoding="utf-8", errors="backslashreplace")
        self._say("")
        for line in report:
            self._say(line)
        return 1 if failures else 0

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)


def measure(sections: Sequence[str], settings: Mapping[str, str]) -> int:
    """The exit code: 1 where instruments differ or a section failed. Raises ConfigError first."""
    return Measurement(sections, settings, Console(soft_wrap=True)).run()
