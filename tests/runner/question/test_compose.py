"""What composes, and that what does not ends in one message before anything runs."""

import os
import re
import subprocess
import sys

import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.question.compose import compose, compose_jobs
from kernel_lab.runner.schema import Device, Experiment

NOISE = ("Traceback", "Config search path", "provider=", "hydra.cc", "full_key", "object_type")


def refusal(act) -> str:
    with pytest.raises(ConfigError) as caught:
        act()
    text = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in text
    assert not any(word in text for word in NOISE), text
    return text


def test_an_experiment_composes_to_plain_values(outside):
    experiment = compose(["experiment=tiny_question"], [outside])
    assert type(experiment) is Experiment
    assert experiment.experiment_name == "tiny_question"
    assert experiment.kernel.name == "tiny"
    assert experiment.shapes.name == "square"
    assert experiment.dtype.storage == "float32"
    assert experiment.implementations == ["fused", "eager"]
    assert type(experiment.shapes.product) is dict
    assert type(experiment.claim.expect) is dict
    assert experiment.trace.auto == {}
    assert experiment.trace.none is None


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (["protocol.processes=2", "worker=inline"], "protocol.processes: 2 fresh processes"),
        (["protocol.clocks=lock:0"], "protocol.clocks=lock:0: no such rule. Choices: observe"),
        (
            ["protocol.clocks=lock:1981", "target=h200_sxm"],
            "protocol.clocks=lock:1981: above 1980 MHz",
        ),
        (["protocol=quick", "protocol.budget_s=9"], "protocol.budget_s: 9 s for rounds beyond"),
    ],
)
def test_what_a_protocol_cannot_do_beside_another_key_is_refused(outside, overrides, text):
    said = refusal(lambda: compose(["experiment=tiny_question", *overrides], [outside]))
    assert text in said


def test_a_clock_rule_is_said_on_the_command_line(outside):
    words = ["experiment=tiny_question", "protocol.clocks=lock:1500"]
    assert compose(words, [outside]).protocol.clocks == "lock:1500"


def test_rigorous_repeats_in_five_processes_and_the_others_do_not(outside):
    for name, processes in (("quick", 1), ("standard", 1), ("rigorous", 5)):
        experiment = compose(["experiment=tiny_question", f"protocol={name}"], [outside])
        assert experiment.protocol.processes == processes


def test_the_command_line_overrides_the_experiment(outside):
    experiment = compose(
        ["experiment=tiny_question", "dtype=bf16", "protocol=quick", "seed=3", "trace=[torch]"],
        [outside],
    )
    assert (experiment.dtype.name, experiment.protocol.name, experiment.seed) == (
        "bf16",
        "quick",
        3,
    )
    assert experiment.trace.torch == {}
    assert experiment.trace.auto is None


def test_without_an_experiment_the_name_says_so(outside):
    assert compose(["kernel=tiny"], [outside]).experiment_name == "tiny-adhoc"


def test_a_third_party_implementation_is_one_file(outside):
    experiment = compose(["kernel=tiny", "implementations=[eager,guest]"], [outside])
    assert experiment.kernel.implementations["guest"].target == "guest_library.run"
    assert "eager" in experiment.kernel.implementations


def test_klab_path_is_another_way_in(outside, monkeypatch):
    monkeypatch.setenv("KLAB_PATH", f"{outside}{os.pathsep}")
    assert compose(["experiment=tiny_question"]).kernel.name == "tiny"


def test_a_folder_is_forgotten_by_the_next_command(outside):
    compose(["kernel=tiny"], [outside])
    assert "kernel=tiny: unknown" in refusal(lambda: compose(["kernel=tiny"]))


REFUSED = [
    ("experiment=nope", r"experiment=nope: unknown\. Choices: .*tiny_question"),
    ("dtype=bf61", r"dtype=bf61: unknown\. Choices: bf16, .*Did you mean bf16\?"),
    ("kernel=tinny", r"kernel=tinny: unknown\..*Did you mean tiny\?.*--config-dir"),
    ("shapes=sqare", r"shapes=sqare: unknown\..*Did you mean square\?"),
    ("target=h100", r"target=h100: unknown\..*Did you mean h100_sxm\?"),
    ("trace=[torch,nope]", r"trace=nope: unknown\. Choices: auto, ncu, none, nsys, torch"),
    ("trace=[none,torch]", r"trace=\[none,torch\]: none goes with no other"),
    ("shapes.product.M=[-1]", r"shapes\.product\.M: -1 is below min 0"),
    ("shapes.product.Q=[1]", r"shapes\.product: axis=Q: unknown\. Choices: K, M, N"),
    ("+kernel.nonsense=1", r"kernel\.nonsense: no such key in kernel .*Keys: arguments, axes"),
    ("++kernel.nonsense=1", r"kernel\.nonsense: no such key in kernel"),
    ("+protocol.warmpu_ms=9", r"protocol\.warmpu_ms: no such key.*Did you mean warmup_ms\?"),
    ("+timing.warmpu=100", r"timing: no such key \(\+timing\.warmpu=100\).*protocol\.warmup_ms"),
    ("dtpye=bf16", r"dtpye: no such key\. Keys: .*Did you mean dtype\?"),
    ("protocol.min_round=30", r"protocol\.min_round: no such key.*Did you mean min_rounds\?"),
    ("kernel.axes.Q.min=1", r"kernel\.axes\.Q\.min: no such key"),
    ("mode=on", r"mode=on: unknown\. Choices: check, profile, run"),
    ("mode=off", r"mode=off: unknown\. Choices: check, profile, run"),
    ("mode=false", r"mode=false: unknown\. Choices: check, profile, run"),
    ("distribution=zeroes", r"distribution=zeroes: unknown.*Did you mean zeros\?"),
    ("protocol.min_rounds=3", r"protocol\.min_rounds: 3 is not in 20 to"),
    ("protocol.max_rounds=10", r"protocol\.max_rounds: 10 is not in 20 to"),
    ("protocol.min_rounds=100", r"protocol\.max_rounds: 60 is below protocol\.min_rounds 100"),
    ("protocol.processes=0", r"protocol\.processes: 0 is not in 1 to 100"),
    ("protocol.budget_s=-1", r"protocol\.budget_s: -1.* is not in 0 to"),
    ("protocol.min_rounds=many", r"protocol\.min_rounds=many: an integer is meant"),
    ("protocol.warm=maybe", r"protocol\.warm=maybe: true or false is meant"),
    ("seed=null", r"seed=null: a value is meant"),
    ("seed=-1", r"seed: -1 is not in"),
    ("implementations=[egaer]", r"implementations=egaer: unknown\..*Did you mean eager\?"),
    ("implementations=[eager,eager]", r"implementations: eager stands there twice"),
    ("claim.fused=fusd", r"claim\.fused=fusd: unknown\..*Did you mean fused\?"),
    ("claim.expect.stages={fusd: 1}", r"claim\.expect\.stages=fusd: unknown"),
    ("claim.expect.stages=3", r"claim\.expect\.stages: 3 is no map of implementation to count"),
    ("kernel.baseline=eagre", r"kernel\.baseline=eagre: unknown\..*Did you mean eager\?"),
    ("kernel.yardstick=eagre", r"kernel\.yardstick=eagre: unknown"),
    ("kernel.arguments=[axt]", r"kernel\.arguments=axt: unknown\..*Did you mean act\?"),
    ("cell=17", r"cell=17: no cell's id"),
    ("device=gpu0", r"device=gpu0: a GPU's index"),
    ("trace.cells=first:x", r"trace\.cells: first:x: write first:N"),
    ("trace.cells='Mx > 1'", r"trace\.cells: 'Mx > 1': name=Mx: unknown"),
    ("settings.blas=mkl", r"settings\.blas=mkl: unknown"),
    ("experiment_name=mine", r"experiment_name=mine: it is the file's name"),
    ("kernel.name=mine", r"kernel\.name=mine: it is the file's name"),
    ("implementations=eager", r"implementations=eager: a list is meant"),
    ("shapes.product.M=5", r"shapes\.product\.M=5: a list is meant"),
    ("shapes.cases=[5]", r"shapes\.cases=\[5\]: keys with values are meant"),
    ("settings=3", r"settings=3: keys with values are meant"),
    ("dtype=null", r"dtype=null: a name is meant\. Choices: bf16"),
    ("dtype=fp32,bf16", r"dtype=fp32,bf16: several jobs, so say -m"),
    ("hydra/launcher=nope", r"^hydra/launcher=nope: unknown\. Choices: .*basic"),
    ("hydra.foo=1", r"hydra\.foo: no such key in hydra"),
    ("question=${nope}", r"question: Interpolation key 'nope' not found"),
    ("=3", r"=3: not of the form key=value"),
    ("seed=3.5", r"seed=3\.5: an integer is meant"),
    ("nonsense", r"nonsense: not of the form key=value"),
    ("question=a: {b", r"'question=\"a: \{b\"'"),
    ("target.kind=tpu", r"target\.kind=tpu: unknown\. Choices: cuda, cpu|cpu, cuda"),
]


def test_one_value_where_a_list_is_meant_is_said_alike_in_a_file_and_in_a_command(outside):
    lines = ["# @package _global_", "defaults:", "  - override /kernel: tiny"]
    file = outside / "experiments" / "single.yaml"
    file.write_text("\n".join([*lines, "shapes:", "  product: {M: 5}"]) + "\n")
    in_file = refusal(lambda: compose(["experiment=single"], [outside]))
    in_words = refusal(lambda: compose(["kernel=tiny", "shapes.product.M=5"], [outside]))
    assert in_file == f"{in_words} (in {file})"


@pytest.mark.parametrize("word", ["dtype=fp32,bf16", "shapes.product.M=1,2"])
def test_the_line_that_is_proposed_keeps_the_words_of_the_command(outside, word):
    said = refusal(lambda: compose(["kernel=tiny", word, "target=cpu"], [outside]))
    assert f"klab run -m kernel=tiny {word} target=cpu" in said


def test_a_bare_name_is_told_its_key(outside):
    said = refusal(lambda: compose(["tiny_question"], [outside]))
    assert said.endswith("Did you mean experiment=tiny_question?")


@pytest.mark.parametrize(("override", "message"), REFUSED)
def test_refused_alone(outside, override, message):
    text = refusal(lambda: compose(["kernel=tiny", override], [outside]))
    assert re.search(message, text), text


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("dtype=fp32", "dtype=bf61", "dtype=bf61: unknown"),
        ("kernel=tiny", "kernel=tinny", "kernel=tinny: unknown"),
        ("shapes=square", "shapes=sqare", "shapes=sqare: unknown"),
        ("shapes.product.M=[1]", "shapes.product.M=[-1]", "shapes.product.M: -1 is below min 0"),
        ("mode=check", "mode=on", "mode=on: unknown"),
        ("implementations=[eager]", "implementations=[egaer]", "implementations=egaer: unknown"),
        ("protocol.min_rounds=20", "protocol.min_rounds=3", "protocol.min_rounds: 3 is not in"),
    ],
)
def test_refused_as_the_second_job(outside, good, bad, message):
    key, _, value = bad.partition("=")
    overrides = [f"{good},{value}"]
    if key != "kernel":
        overrides.insert(0, "kernel=tiny")
    text = refusal(lambda: compose_jobs(overrides, [outside]))
    assert text.startswith("job 2 of 2 ("), text
    assert bad in text
    assert message in text


def test_unknown_keys_stop_a_multirun_too(outside):
    overrides = ["kernel=tiny", "dtype=fp32,bf16", "+kernel.nonsense=1"]
    text = refusal(lambda: compose_jobs(overrides, [outside]))
    assert "kernel.nonsense: no such key" in text
    text = refusal(lambda: compose_jobs(["kernel=tiny", "shapes.product.Q=[1],[2]"], [outside]))
    assert "axis=Q: unknown" in text


def test_an_unknown_experiment_as_the_second_job(outside):
    text = refusal(lambda: compose_jobs(["experiment=tiny_question,nope"], [outside]))
    assert "experiment=nope: unknown" in text


def test_neither_kernel_nor_experiment_lists_both(outside):
    text = refusal(lambda: compose([], [outside]))
    assert text.startswith("kernel: not given.")
    assert "tiny" in text
    assert "tiny_question" in text


def test_jobs_in_hydra_s_order(outside):
    jobs = compose_jobs(["kernel=tiny", "dtype=fp32,bf16", "seed=range(0,2)"], [outside])
    assert [(e.dtype.name, e.seed) for _, e in jobs] == [
        ("fp32", 0),
        ("fp32", 1),
        ("bf16", 0),
        ("bf16", 1),
    ]
    assert jobs[1][0] == ["kernel=tiny", "dtype=fp32", "seed=1"]


def test_choice_and_glob(outside):
    jobs = compose_jobs(["kernel=tiny", "dtype=glob(fp*)", "seed=choice(5,7)"], [outside])
    assert {(e.dtype.name, e.seed) for _, e in jobs} == {
        (name, seed) for name in ("fp16", "fp32", "fp8") for seed in (5, 7)
    }
    text = refusal(lambda: compose_jobs(["kernel=tiny", "dtype=glob(zz*)"], [outside]))
    assert "no job" in text


def test_a_saved_sweep_is_part_of_the_multirun(outside):
    jobs = compose_jobs(["experiment=saved"], [outside])
    assert [(e.dtype.name, e.seed) for _, e in jobs] == [
        ("fp32", 0),
        ("fp32", 1),
        ("bf16", 0),
        ("bf16", 1),
    ]
    jobs = compose_jobs(["experiment=saved", "seed=9"], [outside])
    assert [(e.dtype.name, e.seed) for _, e in jobs] == [("fp32", 9), ("bf16", 9)]


def test_a_sweep_over_experiments_may_not_drop_a_saved_one(outside):
    overrides = ["experiment=tiny_question,saved", "target=cpu"]
    text = refusal(lambda: compose_jobs(overrides, [outside]))
    assert "saved has a saved sweep (dtype=fp32,bf16, seed=range(0,2))" in text
    assert "klab run -m experiment=tiny_question target=cpu" in text
    assert "klab run -m experiment=saved target=cpu" in text


def test_a_sweep_over_experiments_without_saved_ones_runs(outside, add):
    add({"experiments/second.yaml": "defaults: [override /kernel: tiny]\nquestion: again?"})
    jobs = compose_jobs(["experiment=tiny_question,second"], [outside])
    assert [e.experiment_name for _, e in jobs] == ["tiny_question", "second"]


@pytest.mark.parametrize(
    "given",
    ['question="a,b"', "question='a,b'", r"question=a\,b"],
)
def test_a_comma_in_a_quoted_text_is_one_job(outside, given):
    jobs = compose_jobs(["kernel=tiny", given], [outside])
    assert [e.question for _, e in jobs] == ["a,b"]
    assert compose(["kernel=tiny", given], [outside]).question == "a,b"


def test_quoted_texts_sweep_as_texts(outside):
    jobs = compose_jobs(["kernel=tiny", "question='1024,512','a=\"b\"'"], [outside])
    assert [e.question for _, e in jobs] == ["1024,512", 'a="b"']
    again = [compose(job, [outside]).question for job, _ in jobs]
    assert again == ["1024,512", 'a="b"']


def test_a_comma_from_the_environment_stays_a_text(outside, monkeypatch):
    monkeypatch.setenv("LABEL", "x,y")
    jobs = compose_jobs(["kernel=tiny", "question=${oc.env:LABEL}", "seed=1,2"], [outside])
    assert [e.question for _, e in jobs] == ["x,y", "x,y"]


def test_an_unquoted_comma_without_a_sweep_shows_the_three_ways(outside):
    text = refusal(lambda: compose(["kernel=tiny", "question=a,b"], [outside]))
    assert "-m kernel=tiny question=a,b" in text
    assert "'question=[a,b]'" in text
    assert "'question=\"a,b\"'" in text


def test_off_and_no_in_a_yaml_stay_names(outside, add):
    add(
        {
            "experiments/names.yaml": """
                defaults: [override /kernel: tiny]
                question: off
                protocol: {warm: off}
                shapes:
                  product: {act: [off, none], causal: [off, on], M: [1], N: [1]}
                claim: {expect: {no: 1}}
            """
        }
    )
    experiment = compose(["experiment=names"], [outside])
    assert experiment.question == "off"
    assert experiment.protocol.warm is False
    assert experiment.shapes.product["act"] == ["off", "none"]
    assert experiment.claim.expect == {"no": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode: on", "mode=on: unknown. Choices: check, profile, run."),
        ("mode: true", "mode=true: unknown. Choices: check, profile, run."),
        ("implementations: [off, cold]", "implementations=off: unknown."),
        ("trace: {cells: off}", "trace.cells: 'off': name=off: unknown."),
        ("no: 1", "no: no such key"),
    ],
)
def test_a_boolean_where_a_name_is_meant_is_refused(outside, add, text, message):
    add({"experiments/wrong.yaml": f"defaults: [override /kernel: tiny]\n{text}\n"})
    said = refusal(lambda: compose(["experiment=wrong"], [outside]))
    assert message in said
    assert "False" not in said


@pytest.mark.parametrize(
    ("file", "text", "asked", "parts"),
    [
        (
            "kernel/typo.yaml",
            "module: m\naxes: {M: {mim: 0}}\nimplementations: {eager: {target: a.b, cost: c}}",
            "kernel=typo",
            ["kernel.axes.M.mim: no such key in kernel.axes.M", "Did you mean min?", "typo.yaml"],
        ),
        (
            "kernel/typo.yaml",
            "module: m\nimplementations: {eager: {tagret: a.b, cost: c}}",
            "kernel=typo",
            ["kernel.implementations.eager.tagret: no such key", "Did you mean target?"],
        ),
        (
            "kernel/typo.yaml",
            "implementations: {eager: {target: a.b, cost: c}}",
            "kernel=typo",
            ["kernel.module: missing"],
        ),
        (
            "experiments/typo.yaml",
            "defaults: [override /kernel: tiny]\nprotocol: {warmpu_ms: 3}",
            "experiment=typo",
            ["protocol.warmpu_ms: no such key", "Did you mean warmup_ms?", "typo.yaml"],
        ),
        (
            "experiments/typo.yaml",
            "defaults: [override /kernel: tiny, override /dtpye: bf16]",
            "experiment=typo",
            ["dtpye", "Did you mean dtype?"],
        ),
        (
            "experiments/typo.yaml",
            "defaults: [override /kernel: tiny, override /dtype: bf61]",
            "experiment=typo",
            ["dtype=bf61: unknown", "Did you mean bf16?"],
        ),
        (
            "experiments/typo.yaml",
            "defaults: [override /kernel: tiny]\ndtype: fp16",
            "experiment=typo",
            ["dtype=fp16: ", "`- override /dtype: fp16`", "typo.yaml"],
        ),
        (
            "experiments/typo.yaml",
            "defaults: [override /kernel: tiny]\nshapes: 4",
            "experiment=typo",
            ["shapes=4: keys with values are meant", "typo.yaml"],
        ),
        (
            "experiments/typo.yaml",
            "kernel: tiny",
            "experiment=typo",
            ["kernel", "override /kernel: "],
        ),
        ("experiments/typo.yaml", "a: [", "experiment=typo", ["typo.yaml: line 2: "]),
        ("experiments/typo.yaml", "- a", "experiment=typo", ["a mapping is meant, not list"]),
        (
            "experiments/typo.yaml",
            "seed: 1\nseed: 2",
            "experiment=typo",
            ["seed stands there tw"],
        ),
        (
            "experiments/typo.yaml",
            "experiment_name: x",
            "experiment=typo",
            ["experiment_name is the file's name"],
        ),
        (
            "implementation/tiny/bad.yaml",
            "target: [",
            "kernel=tiny",
            ["bad.yaml: line 2: "],
        ),
        (
            "implementation/tiny/bad.yaml",
            "target: a.b\ncots: fused",
            "kernel=tiny",
            ["kernel.implementations.bad.cots: no such key", "Did you mean cost?"],
        ),
        (
            "implementation/tiny/bad.yaml",
            "target: a.b\ncost: fused\nwhere: Mx > 1",
            "kernel=tiny",
            ["kernel.implementations.bad.where: 'Mx > 1': name=Mx: unknown"],
        ),
        (
            "implementation/tiny/bad.yaml",
            "target: a.b\ncost: fused\ndtypes: [bf61]",
            "kernel=tiny",
            ["kernel.implementations.bad.dtypes=bf61: unknown", "Did you mean bf16?"],
        ),
        (
            "implementation/tiny/bad.yaml",
            "target: a.b\ncost: fused\ndevices: [tpu]",
            "kernel=tiny",
            ["kernel.implementations.bad.devices", "tpu", "cuda", "cpu"],
        ),
    ],
)
def test_a_wrong_file_is_named_where_it_is_asked_for(outside, add, file, text, asked, parts):
    add({file: text})
    said = refusal(lambda: compose([asked], [outside]))
    assert all(part in said for part in parts), said
    swept = refusal(lambda: compose_jobs([asked, "seed=1,2"], [outside]))
    assert all(part in swept for part in parts), swept


def test_a_broken_file_stops_only_who_asks_for_it(outside, add):
    add({"experiments/broken.yaml": "a: [", "kernel/broken.yaml": "b: ["})
    assert compose(["experiment=tiny_question"], [outside]).kernel.name == "tiny"


def test_one_name_in_two_folders_is_refused(outside, add):
    add({"dtype/bf16.yaml": "name: bf16"})
    said = refusal(lambda: compose(["kernel=tiny"], [outside]))
    assert said.startswith("dtype=bf16: two files have this name")


def test_a_folder_that_is_not_there(tmp_path):
    said = refusal(lambda: compose(["kernel=tiny"], [tmp_path / "nowhere"]))
    assert said.startswith(f"--config-dir={tmp_path / 'nowhere'}: no such folder")


def test_a_word_s_name_is_its_file_s(outside, add):
    add({"dtype/bf17.yaml": "name: bf16"})
    said = refusal(lambda: compose(["kernel=tiny"], [outside]))
    assert "differs from the file's name bf17" in said


def test_hydra_main_composes_the_very_same(outside, tmp_path):
    """A process of its own, as `klab run` hands over: same values from the same words."""
    program = f"""
import dataclasses, json, sys
import hydra
from kernel_lab.runner.question.compose import (
    CONFIG_NAME, VERSION_BASE, compose_jobs, register, to_experiment)
dirs = [{str(outside)!r}]
words = sys.argv[1:]
before = [dataclasses.asdict(e) for _, e in compose_jobs(words, dirs)]
found = register(dirs)
during = []
sys.argv = ["klab", "-m", *words, "hydra.sweep.dir={tmp_path / "sweep"}"]
hydra.main(config_path=None, config_name=CONFIG_NAME, version_base=VERSION_BASE)(
    lambda config: during.append(dataclasses.asdict(to_experiment(config, found))))()
assert during == before, (during, before)
print(len(during))
"""
    words = ["experiment=saved", "question='a,b'", "shapes.product.M=[1,2]"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "4"


def test_kinds_are_enums(outside):
    experiment = compose(["kernel=tiny", "target=h200_sxm"], [outside])
    assert experiment.target.kind is Device.cuda
