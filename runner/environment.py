"""The environment variables that a worker starts with."""

import os

from .device import Gpu, slug
from .outputs import outputs
from .schema import Experiment

_PRIVATE = ("MLFLOW_", "AWS_", "AZURE_", "GOOGLE_")
"""Prefixes that are the supervisor's business: the worker files nothing."""


def worker_environment(experiment: Experiment, gpu: Gpu | None) -> dict[str, str]:
    """The environment of a worker: the user's, less the tracker's, with its one GPU visible."""
    values = {k: v for k, v in os.environ.items() if not k.startswith(_PRIVATE)}
    values["CUDA_VISIBLE_DEVICES"] = gpu.uuid if gpu is not None else ""
    if gpu is not None:
        # what autotuning chose is kept for this GPU alone, so that the evidence worker runs the
        # very configuration that was timed
        values.setdefault("TRITON_CACHE_DIR", str(outputs() / "cache" / "triton" / slug(gpu.name)))
        values.setdefault("TRITON_CACHE_AUTOTUNING", "1")
    if experiment.settings.cublas_workspace:
        values["CUBLAS_WORKSPACE_CONFIG"] = experiment.settings.cublas_workspace
    return values
