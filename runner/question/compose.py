"""Overrides in, checked Experiments out: what `hydra.main` will compose, composed before.

Everything is given to Hydra through its ConfigStore, conf/ included, so that a folder from outside
and the shipped one are the same thing to it, and so that `off` and `no` in a YAML stay names.
"""

import contextlib
import copy
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from hydra import initialize
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from ..errors import ConfigError
from ..schema import Experiment
from . import checks, keys, refusals, vocabulary
from .vocabulary import Vocabulary

CONFIG_NAME = "config"
"""The primary config of `hydra.main(config_path=None, config_name=..., version_base=...)`."""
VERSION_BASE = "1.3"

Dirs = Iterable[str | Path]

_OPEN = ("shapes.product", "shapes.axes", "claim.expect")
"""Maps that the command line may add keys to without a `+`: `shapes.product.M=[1]`."""


def register(config_dirs: Dirs = ()) -> Vocabulary:
    """Fills Hydra's ConfigStore with the schema, conf/, experiments and the outside folders.

    Raises ConfigError for a folder that is not there or a name given twice.
    """
    found = vocabulary.read(config_dirs)
    store = ConfigStore.instance()
    for group in vocabulary.GROUPS:
        store.repo.pop(group, None)
    store.store(name="schema", node=Experiment)
    schema = store.repo["schema.yaml"].node
    for key in _OPEN:
        OmegaConf.set_struct(OmegaConf.select(schema, key), False)
    primary = vocabulary.load_yaml((vocabulary.ROOT / "conf" / "config.yaml").read_text())
    store.store(name=CONFIG_NAME, node=primary)
    for group, words in found.entries.items():
        for entry in words.values():
            if not entry.error:
                node = _node(found, entry)
                store.store(group=group, name=entry.name, node=node, package=entry.package)
    return found


def _node(found: Vocabulary, entry: vocabulary.Entry) -> dict[str, Any]:
    if entry.group == "kernel":
        return _with_third_party(found, entry)
    return _named(entry) if entry.group in _SELF_NAMED else entry.node


_SELF_NAMED = {
    "kernel": "name",
    "dtype": "name",
    "target": "name",
    "protocol": "name",
    "tracking": "name",
    "model": "name",
    "shapes": "name",
    "experiment": "experiment_name",
}


def _named(entry: vocabulary.Entry) -> dict[str, Any]:
    """The file's name is the word; a `name:` that differs would make two words of one."""
    field = _SELF_NAMED[entry.group]
    given = entry.node.get(field, entry.name)
    if given != entry.name:
        raise ConfigError(
            f"{entry.path}: {field}: {given} differs from the file's name {entry.name}. "
            "Remove the key or rename the file."
        )
    return {**copy.deepcopy(entry.node), field: entry.name}


def _with_third_party(found: Vocabulary, entry: vocabulary.Entry) -> dict[str, Any]:
    """The kernel's YAML; conf/implementation/<kernel>/NAME.yaml becomes its implementation NAME."""
    node = _named(entry)
    words = found.entries.get(f"implementation/{entry.name}", {})
    own = node.get("implementations") or {}
    for name, word in words.items():
        if name in own:
            raise ConfigError(
                f"{word.path}: {entry.name} has an implementation {name} already. Rename the file."
            )
    added = {name: word.node for name, word in words.items() if not word.error}
    return {**node, "implementations": {**own, **added}} if added else node


@contextlib.contextmanager
def _hydra() -> Generator[Hydra]:
    with initialize(config_path=None, version_base=VERSION_BASE):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        yield hydra


def compose(overrides: Sequence[str], config_dirs: Dirs = ()) -> Experiment:
    """The checked Experiment of one job. Raises ConfigError."""
    found = register(config_dirs)
    with _hydra() as hydra:
        return _compose(hydra, found, list(overrides))


def _compose(hydra: Hydra, found: Vocabulary, overrides: list[str]) -> Experiment:
    config = _composed(hydra, found, overrides, RunMode.RUN)
    with open_dict(config):
        del config["hydra"]
    return to_experiment(config, found, overrides)


def _composed(hydra: Hydra, found: Vocabulary, overrides: list[str], mode: RunMode) -> DictConfig:
    _refuse_name(overrides)
    try:
        return hydra.compose_config(
            config_name=CONFIG_NAME,
            overrides=overrides,
            run_mode=mode,
            from_shell=False,
            with_log_configuration=False,
        )
    except refusals.RAISED as error:
        raise refusals.explained(error, found, overrides) from error


def _refuse_name(overrides: Sequence[str]) -> None:
    """What a word is called is its file's name; called otherwise, records would name no file."""
    fixed = {"experiment_name", *(f"{group}.name" for group in _FILES)}
    for override in overrides:
        if override.partition("=")[0].lstrip("+~") in fixed:
            raise ConfigError(f"{override}: it is the file's name and cannot be set.")


_FILES = ("kernel", "dtype", "target", "protocol", "tracking")


def to_experiment(
    config: DictConfig, found: Vocabulary, overrides: Sequence[str] = ()
) -> Experiment:
    """A composed config (without Hydra's own node) as plain, checked dataclasses.

    Raises ConfigError with key, value and choices.
    """
    try:
        experiment = cast(Experiment, OmegaConf.to_object(config))
        keys.refuse_unknown_keys(config, experiment, overrides)
    except refusals.RAISED as error:
        raise refusals.explained(error, found, overrides) from error
    for group in _FILES:
        name = getattr(experiment, group).name
        if name not in found.entries[group]:
            raise ConfigError(f"{group}.name={name}: it is the file's name and cannot be set.")
    group = f"implementation/{experiment.kernel.name}"
    unread = vocabulary.broken(found, group, found.names(group))
    if unread:
        raise unread
    if experiment.experiment_name == Experiment.experiment_name:
        experiment.experiment_name = f"{experiment.kernel.name}-adhoc"
    checks.check(experiment, dtypes=found.names("dtype"))
    return experiment


def compose_jobs(
    overrides: Sequence[str], config_dirs: Dirs = ()
) -> list[tuple[list[str], Experiment]]:
    """Every job of a multirun, as Hydra's sweeper will split it, composed and checked.

    Saved sweeps (`hydra.sweeper.params` of the experiment) are included. Raises ConfigError for
    the first job that cannot run, and for a sweep over experiments that would drop a saved one.
    """
    found = register(config_dirs)
    overrides = list(overrides)
    with _hydra() as hydra:
        parser = OverridesParser.create(config_loader=hydra.config_loader)
        given = _parsed(parser, found, overrides)
        _refuse_lost_sweeps(hydra, found, overrides, given)
        saved = _saved_sweep(_composed(hydra, found, overrides, RunMode.MULTIRUN))
        parts = _parsed(parser, found, [*saved, *overrides])
        try:
            jobs = BasicSweeper.split_arguments(parts, max_batch_size=None)[0]
        except refusals.RAISED as error:
            raise refusals.explained(error, found, overrides) from error
        if not jobs:
            raise ConfigError(f"-m {' '.join(overrides)}: no job; a glob or range matches nothing.")
        experiments = []
        for index, job in enumerate(jobs, 1):
            try:
                experiments.append((job, _compose(hydra, found, job)))
            except ConfigError as error:
                if len(jobs) == 1:
                    raise
                text = f"job {index} of {len(jobs)} ({' '.join(job)}): {error}"
                raise type(error)(text) from error
        return experiments


def _parsed(parser: OverridesParser, found: Vocabulary, overrides: list[str]) -> list[Override]:
    try:
        return parser.parse_overrides(overrides)
    except refusals.RAISED as error:
        raise refusals.explained(error, found, overrides) from error


def _saved_sweep(config: DictConfig) -> list[str]:
    params = OmegaConf.select(config, "hydra.sweeper.params") or {}
    return [f"{key}={value}" for key, value in params.items()]


def _refuse_lost_sweeps(
    hydra: Hydra, found: Vocabulary, overrides: list[str], given: list[Override]
) -> None:
    """A sweep over experiments runs one job each and drops their saved sweeps without a word."""
    swept = [o for o in given if o.get_key_element() == "experiment" and o.is_sweep_override()]
    if not swept:
        return
    others = [text for text, o in zip(overrides, given, strict=True) if o not in swept]
    names = list(swept[-1].sweep_string_iterator())
    for name in names:
        one = [*others, f"experiment={name}"]
        saved = _saved_sweep(_composed(hydra, found, one, RunMode.MULTIRUN))
        if saved:
            commands = "; ".join(
                f"klab run -m {' '.join([f'experiment={n}', *others])}" for n in names
            )
            raise ConfigError(
                f"experiment={','.join(names)}: {name} has a saved sweep ({', '.join(saved)}), "
                f"which a sweep over experiments would drop. Run them one by one: {commands}"
            )
