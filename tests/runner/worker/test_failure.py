import pytest
import torch
from kernel_lab.runner.records import Status
from kernel_lab.runner.worker.failure import classify, is_sticky
from kernel_lab.runner.worker.load import CannotLoad


def raised(kind, message, module, cause=None):
    error = type(kind, (Exception,), {"__module__": module})(message)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CannotLoad(Status.unavailable, "no such package"), Status.unavailable),
        (torch.OutOfMemoryError("CUDA out of memory. Tried 300 GiB"), Status.out_of_memory),
        (MemoryError("too much"), Status.out_of_memory),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 99 bytes"),
            Status.out_of_memory,
        ),
        (NotImplementedError("only for K a multiple of 16"), Status.unsupported),
        (RuntimeError("boom"), Status.crashed),
        (TypeError("takes 1 argument"), Status.crashed),
        (raised("CompilationError", "at 3:4", "triton.compiler.errors"), Status.compile_failed),
        (raised("PTXASError", "ptxas", "triton.runtime.errors"), Status.compile_failed),
        (raised("InductorError", "lowering", "torch._inductor.exc"), Status.compile_failed),
        (raised("Unsupported", "graph break", "torch._dynamo.exc"), Status.compile_failed),
        (raised("NVRTCError", "line 3", "cuda.core"), Status.compile_failed),
        (raised("InvalidCxxCompiler", "no g++", "torch._inductor.exc"), Status.unavailable),
        (
            raised("InductorError", "x", "torch._inductor.exc", torch.OutOfMemoryError("OOM")),
            Status.out_of_memory,
        ),
        (
            raised(
                "InductorError",
                "x",
                "torch._inductor.exc",
                raised("InvalidCxxCompiler", "no g++", "torch._inductor.exc"),
            ),
            Status.unavailable,
        ),
    ],
    ids=lambda value: getattr(value, "value", type(value).__name__),
)
def test_an_exception_becomes_a_status_with_its_reason(error, status):
    found, reason = classify(error)
    assert found is status
    assert reason


def test_triton_out_of_resources_is_a_failed_compilation():
    from triton.runtime.errors import OutOfResources

    status, reason = classify(OutOfResources(300000, 232448, "shared memory"))
    assert status is Status.compile_failed
    assert "shared memory" in reason
    assert "232448" in reason


def test_a_reason_is_one_short_line():
    _, reason = classify(RuntimeError("first\n\nsecond\nthird\n" + "x" * 5000))
    assert reason == "RuntimeError: first second"
    _, reason = classify(RuntimeError("y" * 5000))
    assert len(reason) < 700
    assert "\n" not in reason


def test_an_exception_without_a_message_still_has_a_reason():
    assert classify(KeyError())[1].strip(": ")
    assert classify(NotImplementedError())[1]
    assert classify(torch.OutOfMemoryError())[1]


def test_a_chain_that_bites_its_tail_ends():
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert classify(one)[0] is Status.crashed
    assert not is_sticky(one)


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: misaligned address",
        "CUDA error: unspecified launch failure",
        "CUDA error: device-side assert triggered",
        "CUDA driver error: an illegal instruction was encountered",
        "Triton Error [CUDA]: an illegal memory access was encountered",
    ],
)
def test_errors_that_poison_the_process_are_sticky(message):
    assert is_sticky(RuntimeError(message))
    outer = RuntimeError("later")
    outer.__context__ = RuntimeError(message)
    assert is_sticky(outer)


@pytest.mark.parametrize("message", ["CUDA out of memory", "shape mismatch", "invalid argument"])
def test_other_errors_are_not(message):
    assert not is_sticky(RuntimeError(message))


def test_hitting_the_recompile_limit_is_no_failed_compilation_but_an_invalid_arm():
    """D11: what would run uncompiled from there on is named."""
    from torch._dynamo.exc import FailOnRecompileLimitHit

    status, reason = classify(FailOnRecompileLimitHit("Hard failure due to fullgraph=True"))
    assert status is Status.invalid
    assert "recompile limit" in reason
    assert "uncompiled" in reason


@pytest.mark.parametrize(
    "kind", [RuntimeError, NotImplementedError, MemoryError, torch.OutOfMemoryError]
)
def test_a_reason_with_a_file_name_that_is_no_text_can_be_written(kind):
    """os.fsdecode makes lone surrogates of bytes that are no UTF-8; no file takes them."""
    name = b"/data/\xff.bin".decode(errors="surrogateescape")
    _, reason = classify(kind(f"cannot read {name}"))
    assert "/data/\\udcff.bin" in reason.encode().decode()


def test_the_same_of_what_cannot_be_loaded():
    _, reason = classify(CannotLoad(Status.unavailable, "no \udcff"))
    assert reason == "no \\udcff"
