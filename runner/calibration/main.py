"""The measuring process of `klab doctor`: one section, in a process of its own.

`python -m kernel_lab.runner.calibration.main REQUEST.json RESULT.json`. Sections: ladder, cold,
pairs, repeat, calls. Exit codes: 0 when the section is done, 1 when an error ended it, which the
result then holds beside the rows measured so far.
"""

import os
import sys
import traceback
from pathlib import Path

from ..errors import unknown
from ..schema import Device
from .request import Report, Request, read

SECTIONS = ("ladder", "cold", "pairs", "repeat", "calls")


def measure(request: Request, report: Report) -> None:
    """Runs the section that is asked for. Raises ConfigError for one that is none."""
    if request.section not in SECTIONS:
        raise unknown("section", request.section, SECTIONS)
    import torch

    from . import calls, cold, ladder, pairs, repeat

    with torch.no_grad():
        match request.section:
            case "ladder":
                ladder.run(request, report)
            case "cold":
                cold.run(request, report)
            case "pairs":
                pairs.run(request, report)
            case "repeat":
                repeat.run(request, report)
            case _:
                calls.run(request, report)


def main(argv: list[str]) -> int:
    """Reads the request, measures, and writes the result after every row."""
    request = read(Path(argv[0]))
    # before anything imports triton: it looks at the variable when kernels are decorated
    if request.kind is Device.cpu:
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        os.environ.pop("TRITON_INTERPRET", None)
    for folder in request.python_path:
        if folder not in sys.path:
            sys.path.append(folder)
    report = Report(Path(argv[1]), request.section)
    try:
        measure(request, report)
    except Exception:
        report.finish(traceback.format_exc())
        return 1
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
