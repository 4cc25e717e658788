"""The facts under conf/ against arithmetic and against the published GEMM list."""

from pathlib import Path

import pytest
import torch
from kernel_lab.runner import schema
from omegaconf import OmegaConf

CONF = Path(__file__).resolve().parents[1] / "conf"


def words(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def read(group, word, node):
    """The YAML against its schema: an unknown key or a wrong type fails here."""
    values = OmegaConf.load(CONF / group / f"{word}.yaml")
    return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(node), values))


TARGETS = {word: read("target", word, schema.Target) for word in words("target")}
GPUS = {word: target for word, target in TARGETS.items() if target.kind == schema.Device.cuda}
DTYPES = {word: read("dtype", word, schema.Dtype) for word in words("dtype")}
MODELS = {word: read("model", word, schema.Model) for word in words("model")}

# Dense bf16 FLOP a clock and SM, threads, blocks, shared KB of an SM and of a block, by capability.
ARCHITECTURES = {
    "8.0": (2048, 2048, 32, 164, 163),
    "9.0": (4096, 2048, 32, 228, 227),
    "10.0": (8192, 2048, 32, 228, 227),
}


@pytest.mark.parametrize("group", ["model", "target", "dtype"])
def test_each_word_is_described_by_its_first_line_and_bears_its_file_name(group):
    assert words(group)
    for word in words(group):
        path = CONF / group / f"{word}.yaml"
        first = path.read_text().splitlines()[0]
        assert first.startswith("# "), path
        assert len(first) > 12, path
        assert OmegaConf.load(path).name == word


def test_the_words_that_ship():
    assert {"auto", "cpu", "a100_80_sxm", "h100_sxm", "h200_sxm", "b200"} <= TARGETS.keys()
    assert {"llama3_8b", "llama3_70b"} <= MODELS.keys()
    assert {"fp32", "tf32", "bf16", "fp16", "fp8"} <= DTYPES.keys()


def test_auto_is_undecided_and_cpu_has_no_datasheet():
    assert TARGETS["auto"].kind is None
    assert TARGETS["cpu"].kind == schema.Device.cpu
    for word in ("auto", "cpu"):
        assert not TARGETS[word].peak_tflops
        assert TARGETS[word].bandwidth_gbps is None


@pytest.mark.parametrize("word", GPUS)
def test_a_gpu_has_every_figure_or_says_why_not(word):
    target = GPUS[word]
    absent = [
        name
        for name, value in vars(target).items()
        if value in (None, "", {}) and name not in ("uncertain", "max_mhz")
    ]
    assert not absent
    assert target.product.startswith("NVIDIA ")


def test_products_are_told_apart():
    products = [target.product for target in GPUS.values()]
    assert len(set(products)) == len(products)


@pytest.mark.parametrize("word", GPUS)
def test_the_bf16_peak_is_sms_times_flop_a_clock_times_boost(word):
    target = GPUS[word]
    flop_a_clock = ARCHITECTURES[target.capability][0]
    product = target.sms * flop_a_clock * target.boost_mhz * 1e6 / 1e12
    if "boost_mhz" in target.uncertain:
        assert product > target.peak_tflops["bf16"], "the sheet assumes a lower clock"
    else:
        assert product == pytest.approx(target.peak_tflops["bf16"], rel=0.005)


@pytest.mark.parametrize("word", GPUS)
def test_the_peaks_keep_their_ratios(word):
    peaks = GPUS[word].peak_tflops
    assert peaks["fp16"] == peaks["bf16"]
    assert peaks["tf32"] == pytest.approx(peaks["bf16"] / 2, rel=0.01)
    assert peaks["int8"] == pytest.approx(2 * peaks["bf16"], rel=0.01)
    assert peaks["fp32"] < peaks["tf32"]
    has_fp8 = tuple(map(int, GPUS[word].capability.split("."))) >= (8, 9)
    assert ("fp8" in peaks) == has_fp8
    if has_fp8:
        assert peaks["fp8"] == pytest.approx(2 * peaks["bf16"], rel=0.01)


@pytest.mark.parametrize("word", GPUS)
def test_an_architecture_has_the_limits_of_its_capability(word):
    target = GPUS[word]
    seen = (
        target.threads_per_sm,
        target.blocks_per_sm,
        target.shared_per_sm_kb,
        target.shared_per_block_kb,
    )
    assert seen == ARCHITECTURES[target.capability][1:]
    assert target.registers_per_sm == 65536


@pytest.mark.parametrize("word", GPUS)
def test_units_are_those_of_their_names(word):
    target = GPUS[word]
    assert 16 <= target.memory_gb <= 300  # decimal gigabytes, not bytes or MiB
    assert 300 <= target.bandwidth_gbps <= 10_000  # 1e9 bytes a second, not TB/s
    assert 4 <= target.l2_mb <= 256
    assert 1000 <= target.boost_mhz <= 2600  # megahertz
    assert target.max_mhz is None or target.boost_mhz <= target.max_mhz <= 2600
    assert 70 <= target.watts <= 1500
    assert all(1 <= peak <= 20_000 for peak in target.peak_tflops.values())  # 1e12, not 1e9


@pytest.mark.parametrize("word", GPUS)
def test_uncertain_names_fields_that_exist(word):
    for name in GPUS[word].uncertain:
        assert OmegaConf.select(OmegaConf.structured(GPUS[word]), name) is not None, name


def test_ridge_points():
    """Peak over bandwidth, FLOP a byte."""

    def ridge(word, peak):
        return GPUS[word].peak_tflops[peak] * 1e3 / GPUS[word].bandwidth_gbps

    assert round(ridge("h100_sxm", "fp8")) == 591
    assert round(ridge("h100_sxm", "bf16")) == 295
    assert round(ridge("h200_sxm", "bf16")) == 206
    assert round(ridge("h200_sxm", "fp8")) == 412
    assert round(ridge("b200", "bf16")) == 281


@pytest.mark.parametrize("word", DTYPES)
def test_a_dtype_is_torch_s(word):
    dtype = DTYPES[word]
    assert getattr(torch, dtype.storage).itemsize == dtype.itemsize
    assert getattr(torch, dtype.output).itemsize == dtype.output_itemsize
    assert getattr(torch, dtype.accumulate).itemsize >= dtype.output_itemsize


@pytest.mark.parametrize("word", DTYPES)
def test_a_dtype_s_peak_is_known_wherever_it_has_tensor_cores(word):
    known = [gpu for gpu, target in GPUS.items() if DTYPES[word].peak in target.peak_tflops]
    assert set(known) == set(GPUS) - ({"a100_80_sxm"} if word == "fp8" else set())


def test_tf32_is_a_math_mode_of_fp32_storage():
    assert [word for word, dtype in DTYPES.items() if dtype.tf32] == ["tf32"]
    assert DTYPES["tf32"].storage == DTYPES["fp32"].storage == "float32"


def test_sanity_bounds_are_above_the_rounding_of_the_output():
    for dtype in DTYPES.values():
        assert torch.finfo(getattr(torch, dtype.output)).eps < dtype.sane_rms < 0.1


# (N, K) at TP=1, as published for each model.
GEMMS = {
    "llama3_8b": {
        "qkv": (6144, 4096),
        "o": (4096, 4096),
        "gate_up": (28672, 4096),
        "down": (4096, 14336),
        "lm_head": (128256, 4096),
    },
    "llama3_70b": {
        "qkv": (10240, 8192),
        "o": (8192, 8192),
        "gate_up": (57344, 8192),
        "down": (8192, 28672),
        "lm_head": (128256, 8192),
    },
}


@pytest.mark.parametrize("word", MODELS)
def test_a_model_s_fields_give_its_published_gemms(word):
    model = MODELS[word]
    assert GEMMS[word] == {
        "qkv": ((model.heads + 2 * model.kv_heads) * model.head_dim, model.hidden),
        "o": (model.hidden, model.heads * model.head_dim),
        "gate_up": (2 * model.intermediate, model.hidden),
        "down": (model.hidden, model.intermediate),
        "lm_head": (model.vocab, model.hidden),
    }
    assert model.heads % model.kv_heads == 0
    assert model.layers == {"llama3_8b": 32, "llama3_70b": 80}[word]
    assert model.source
