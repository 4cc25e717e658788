import pytest
import torch
from kernel_lab.runner.records import Status
from kernel_lab.runner.schema import Compile, Device, Implementation
from kernel_lab.runner.worker import load
from kernel_lab.runner.worker.failure import classify
from kernel_lab.runner.worker.load import (
    CannotLoad,
    bind,
    kernels_built,
    resolve,
    tuning_of,
    tuning_seconds,
)


def made(target, **values):
    return Implementation(target=target, cost="one", **values)


def cannot(target, **values):
    with pytest.raises(CannotLoad) as raised:
        load.load(made(target, **values))
    return raised.value.status, raised.value.reason


def test_a_dotted_path_is_resolved_down_to_an_attribute():
    assert resolve("math.sqrt")(9) == 3
    assert resolve("torch.nn.functional.gelu") is torch.nn.functional.gelu
    assert resolve("collections.OrderedDict.fromkeys")("ab")


def test_a_missing_library_is_unavailable_and_named():
    status, reason = cannot("math.sqrt", requires=["no_such_library"])
    assert status is Status.unavailable
    assert "no_such_library" in reason
    status, reason = cannot("math.sqrt", requires=["no_such.submodule"])
    assert status is Status.unavailable
    assert "no_such" in reason


def test_a_required_library_that_is_there_is_no_obstacle():
    assert load.load(made("math.sqrt", requires=["torch", "json"]))(4) == 2


def test_an_adapter_whose_library_is_absent_is_unavailable(tmp_path, monkeypatch):
    (tmp_path / "adapter_of_absent.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    status, reason = cannot("adapter_of_absent.run")
    assert status is Status.unavailable
    assert "no_such_library" in reason


def test_an_adapter_that_breaks_as_it_is_imported_is_its_own_fault(tmp_path, monkeypatch):
    (tmp_path / "adapter_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        load.load(made("adapter_broken.run"))


@pytest.mark.parametrize("target", ["math.sqroot", "math.sqrt.nothing", "math.pi"])
def test_a_path_that_is_wrong_crashed(target):
    status, reason = cannot(target)
    assert status is Status.crashed
    assert target in reason


@pytest.mark.parametrize("target", ["kernel_lab.kernels.no_such_kernel.run", "sqrt"])
def test_a_module_of_ours_that_is_not_there_names_the_path(target):
    assert target in cannot(target)[1]


def test_bind_passes_arguments_and_kwargs_by_name(lab):
    seen = []

    def call(x, **given):
        seen.append(given)
        return x

    experiment = lab.experiment({"eager": call})
    experiment.kernel.implementations["eager"].kwargs = {"block": 4}
    bound = bind(experiment, "eager", {"act": "relu"}, Device.cpu)
    assert bound(3) == 3
    assert seen == [{"act": "relu", "block": 4}]


def test_compiled_without_a_host_compiler_is_unavailable(lab, monkeypatch):
    experiment = lab.experiment({"eager": lambda x: x}, compile=Compile.default)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(CannotLoad) as raised:
        bind(experiment, "eager", {}, Device.cpu)
    assert raised.value.status is Status.unavailable
    assert "compiler" in raised.value.reason


def test_tuning_is_what_the_function_tells_of_itself(lab):
    def call(x):
        return x

    lab.define("call", call)
    path = f"{lab.module.__name__}.call"
    assert tuning_of(made(path)) == ""
    assert tuning_seconds(made(path)) is None
    call.tuning_s = lambda: 0.25
    assert tuning_seconds(made(path)) == 0.25
    call.tuning = lambda: "BLOCK=128 warps=4"
    assert tuning_of(made(path)) == "BLOCK=128 warps=4"


@pytest.fixture
def compiler():
    """A fresh dynamo, and a C++ compiler or a skip with the reason."""
    try:
        load.require_host_compiler()
    except CannotLoad as error:
        pytest.skip(error.reason)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.slow
def test_a_compiled_function_over_twelve_sizes_never_runs_eager_unsaid(compiler, lab):
    """D11: sizes up to the limit compile; past it the call raises, and the reason names it."""
    context = lab.context(lab.experiment({"eager": lambda x: x * 2 + 1}, compile=Compile.default))
    call = bind(context.experiment, "eager", {}, Device.cpu)
    limit = torch._dynamo.config.recompile_limit
    seen = []
    for size in range(3, 15):
        graphs = load.graphs_compiled()
        try:
            call(torch.ones(size))
        except Exception as error:
            seen.append(classify(error))
        else:
            load.require_compiled(graphs)
            seen.append("compiled")
    assert seen[:limit] == ["compiled"] * limit
    assert len(seen[limit:]) == 12 - limit > 0
    for status, reason in seen[limit:]:
        assert status is Status.invalid
        assert "recompile limit" in reason


@pytest.mark.slow
def test_twelve_compiled_implementations_of_a_cell_share_no_limit(compiler, lab):
    """D11: each bound function has a limit of its own."""
    names = {f"times{k}": (lambda x, k=k: x * k) for k in range(12)}
    context = lab.context(lab.experiment(names, compile=Compile.default))
    for k, name in enumerate(names):
        call = bind(context.experiment, name, {}, Device.cpu)
        assert torch.equal(call(torch.ones(5)), torch.ones(5) * k)


def test_a_compiled_arm_that_made_no_graph_is_said_to_run_uncompiled():
    """D11: under a switch that turns torch.compile off."""
    with pytest.raises(CannotLoad) as raised:
        load.require_compiled(load.graphs_compiled())
    assert raised.value.status is Status.invalid
    assert "ran uncompiled" in raised.value.reason


def test_kernels_that_triton_has_built_are_counted_in_our_own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("KLAB_TRITON_CACHE", str(tmp_path))
    before = kernels_built()
    (tmp_path / "a-hash").mkdir()
    assert kernels_built() - before == 1
    # a folder of the user's own is shared with who knows whom
    monkeypatch.setenv("KLAB_TRITON_CACHE", "")
    assert kernels_built() == 0
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "not made yet"))
    monkeypatch.setenv("KLAB_TRITON_CACHE", str(tmp_path / "not made yet"))
    assert kernels_built() == 0
