"""What only a GPU can do, refused where a job runs on cpu: by klab run and by klab plan alike."""

from collections.abc import Sequence

from ..clocks import OBSERVE, locked_mhz
from ..errors import ConfigError
from ..schema import Experiment, Mode, Submit


def refuse(experiment: Experiment, overrides: Sequence[str]) -> None:
    """Raises ConfigError that names key, value and what to say instead.

    `overrides` are the words of the command: what a protocol's file says beside them about GPUs is
    of no meaning on a CPU, and no error.
    """
    for tool in ("torch", "ncu"):
        if getattr(experiment.trace, tool) is not None:
            raise ConfigError(
                f"trace={tool} looks at GPU kernels, and this job runs on cpu. "
                "Leave it out (trace=auto), or run on a GPU."
            )
    if experiment.submit is Submit.graph:
        raise ConfigError(
            "submit=graph captures calls in a CUDA graph, and this job runs on cpu. "
            "Say submit=stream, or run on a GPU."
        )
    if experiment.warm_inputs:
        raise ConfigError(
            f"warm_inputs={experiment.warm_inputs}: on cpu every input is warm. Leave it out "
            "(warm_inputs=[]), or run on a GPU."
        )
    protocol = experiment.protocol
    keys = {override.partition("=")[0].lstrip("+") for override in overrides}
    if protocol.sustained_ms and "protocol.sustained_ms" in keys:
        raise ConfigError(
            f"protocol.sustained_ms={protocol.sustained_ms:g} takes the time, clock and power of a "
            "GPU that is kept at it, and this job runs on cpu. Leave it out, or run on a GPU."
        )
    if locked_mhz(protocol.clocks) is not None:
        raise ConfigError(
            f"protocol.clocks={protocol.clocks} locks a GPU's SM clock, and this job runs on "
            f"cpu. Say protocol.clocks={OBSERVE}, or run on a GPU."
        )
    if experiment.mode is Mode.profile:
        raise ConfigError("mode=profile takes only the evidence passes, and this job runs on cpu.")
