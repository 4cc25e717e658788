"""The environment variables that a worker starts with."""

import os

from .device import Gpu, slug
from .outputs import outputs
from .schema import Experiment

_PRIVATE = ("MLFLOW_", "AWS_", "AZURE_", "GOOGLE_")
"""Prefixes that are the supervisor's business: the worker files nothing."""


OWN_CACHE = "KLAB_TRITON_CACHE"
"""Names Triton's cache folder once more where it is ours, and nobody else's."""


def worker_environment(experiment: Experiment, gpu: Gpu | None) -> dict[str, str]:
    """The environment of a worker: the user's, less the tracker's, with its one GPU visible."""
    values = {k: v for k, v in os.environ.items() if not k.startswith(_PRIVATE)}
    values["CUDA_VISIBLE_DEVICES"] = gpu.uuid if gpu is not None else ""
    if gpu is not None:
        # what autotuning chose is kept for this very GPU, so that the evidence worker runs the
        # configuration that was timed, and a job on its twin writes elsewhere
        own = outputs() / "cache" / "triton" / f"{slug(gpu.name)}-{gpu.uuid[-12:]}"
        if "TRITON_CACHE_DIR" not in values:
            values["TRITON_CACHE_DIR"] = values[OWN_CACHE] = str(own)
        values.setdefault("TRITON_CACHE_AUTOTUNING", "1")
    if experiment.settings.cublas_workspace:
        values["CUBLAS_WORKSPACE_CONFIG"] = experiment.settings.cublas_workspace
    return values
