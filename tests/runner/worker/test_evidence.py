"""Attribution on Chrome traces made by hand, and on a real one where there is a GPU."""

import subprocess
import sys

import pytest
from kernel_lab.runner.records import Launch
from kernel_lab.runner.schema import Language
from kernel_lab.runner.worker.evidence import attribute, busy, own, seen, span


def call(index, start, length, thread=1):
    return {
        "cat": "user_annotation",
        "name": f"klab-call-{index}",
        "ts": start,
        "dur": length,
        "tid": thread,
    }


def runtime(correlation, at, *, cat="cuda_runtime", thread=1, name="cudaLaunchKernel"):
    return {
        "cat": cat,
        "name": name,
        "ts": at,
        "dur": 2,
        "tid": thread,
        "args": {"correlation": correlation},
    }


def work(correlation, at, length, *, name="mul6", cat="kernel", **args):
    return {
        "cat": cat,
        "name": name,
        "ts": at,
        "dur": length,
        "args": {"correlation": correlation, **args},
    }


def names(per_call):
    return [[launch.name for launch in launches] for launches in per_call]


def test_a_profiler_that_saw_nothing_at_all_is_no_evidence():
    """T15: only beside what holds the queue is a call without a kernel a call that did nothing."""
    holding = work(9, 0, 100, name="spin_kernel")
    idle = [call(0, 100, 10), runtime(1, 102), holding]
    assert attribute(seen(idle), 1) == [[]]
    with pytest.raises(RuntimeError, match="no evidence"):
        seen(idle[:-1])


def test_work_belongs_to_the_call_that_launched_it_however_late_it_ran():
    events = [
        call(0, 100, 10),
        call(1, 110, 10),
        runtime(1, 102),
        runtime(2, 105),
        runtime(3, 112),
        # the device runs long after both calls have returned
        work(3, 5030, 5, name="c"),
        work(1, 5000, 10, name="a"),
        work(2, 5010, 20, name="b"),
    ]
    first, second = attribute(events, 2)
    assert names([first, second]) == [["a", "b"], ["c"]]
    assert [launch.start_us for launch in first] == [0, 10]
    assert second[0].start_us == 0


def test_work_outside_the_calls_is_nobodys():
    events = [
        call(0, 100, 10),
        runtime(7, 90),
        runtime(8, 130),
        runtime(1, 101),
        work(7, 200, 1, name="flush"),
        work(8, 210, 1, name="later"),
        work(1, 220, 1, name="a"),
        work(99, 230, 1, name="launched by nobody"),
    ]
    assert names(attribute(events, 1)) == [["a"]]


def test_another_threads_launch_counts():
    events = [call(0, 100, 10), runtime(1, 104, thread=77), work(1, 200, 1, name="backward")]
    assert names(attribute(events, 1)) == [["backward"]]


def test_driver_launches_count():
    events = [
        call(0, 100, 10),
        runtime(1, 104, cat="cuda_driver", name="cuLaunchKernelEx"),
        work(1, 200, 1, name="triton"),
    ]
    assert names(attribute(events, 1)) == [["triton"]]


def test_all_nodes_of_a_graph_launch_share_its_correlation():
    events = [
        call(0, 100, 10),
        call(1, 120, 10),
        runtime(5, 101, name="cudaGraphLaunch"),
        runtime(6, 121, name="cudaGraphLaunch"),
        *(work(5, 200 + k, 1, name=f"node{k}") for k in range(3)),
        *(work(6, 300 + k, 1, name=f"node{k}") for k in range(3)),
    ]
    assert names(attribute(events, 2)) == [["node0", "node1", "node2"]] * 2


def test_memcpys_and_memsets_are_work_with_their_bytes():
    events = [
        call(0, 100, 10),
        runtime(1, 101, name="cudaMemcpyAsync"),
        runtime(2, 102, name="cudaMemsetAsync"),
        work(1, 200, 4, name="Memcpy DtoD (Device -> Device)", cat="gpu_memcpy", bytes=4096),
        work(2, 210, 1, name="Memset (Device)", cat="gpu_memset", bytes=64),
    ]
    (launches,) = attribute(events, 1)
    assert [(launch.kind, launch.bytes) for launch in launches] == [("copy", 4096), ("memset", 64)]


def test_a_launch_carries_what_the_profiler_says_of_it():
    events = [
        call(0, 100, 10),
        runtime(1, 101),
        work(
            1,
            200,
            4.5,
            name="triton_poi_fused_mul_0",
            grid=[132, 1, 1],
            block=[256, 1, 1],
            stream=7,
            **{"registers per thread": 40, "shared memory": 1024},
        ),
    ]
    ((launch,),) = attribute(events, 1)
    assert launch == Launch(
        name="triton_poi_fused_mul_0",
        kind="pointwise",
        family="inductor",
        duration_us=4.5,
        start_us=0.0,
        grid=(132, 1, 1),
        block=(256, 1, 1),
        registers=40,
        shared_bytes=1024,
        stream=7,
    )


def test_a_call_without_work_is_empty_and_keeps_its_place():
    events = [call(0, 100, 10), call(1, 120, 10), runtime(1, 121), work(1, 200, 1)]
    assert names(attribute(events, 2)) == [[], ["mul6"]]
    assert attribute([], 3) == [[], [], []]


def test_events_without_arguments_or_category_are_passed_over():
    events = [
        {"name": "metadata", "ph": "M"},
        {"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "ts": 105, "dur": 1, "args": {}},
        {"cat": "cuda_runtime", "name": "cudaStreamSynchronize", "ts": 105, "dur": 1},
        {"cat": "user_annotation", "name": "PyTorch Profiler (0)", "ts": 0, "dur": 999},
        {"cat": "gpu_user_annotation", "name": "klab-call-0", "ts": 5000, "dur": 10},
        {"cat": "kernel", "name": "unlaunched", "ts": 1, "dur": 1},
        call(0, 100, 10),
        runtime(1, 101),
        work(1, 200, 1),
    ]
    assert names(attribute(events, 1)) == [["mul6"]]


def launch(start, length, family="aten"):
    return Launch(name="k", kind="x", family=family, duration_us=length, start_us=start)


@pytest.mark.parametrize(
    ("launches", "union", "whole"),
    [
        ([(0, 10)], 10, 10),
        ([(0, 10), (15, 5)], 15, 20),
        ([(0, 10), (5, 10)], 15, 15),
        ([(0, 20), (5, 5)], 20, 20),
        ([(0, 20), (5, 5), (10, 20)], 30, 30),
        ([(15, 5), (0, 10)], 15, 20),
        ([(0, 10), (10, 10)], 20, 20),
        ([(0, 3), (0, 3)], 3, 3),
    ],
)
def test_busy_is_the_union_and_span_the_whole(launches, union, whole):
    made = [launch(*interval) for interval in launches]
    assert busy(made) == union
    assert span(made) == whole


def test_nothing_is_busy_for_no_time():
    assert busy([]) == 0


def test_unknown_names_in_a_path_of_ours_are_that_paths():
    launches = [launch(0, 1, "unknown"), launch(1, 1, "aten")]
    assert [k.family for k in own(launches, Language.triton)] == ["triton", "aten"]
    assert [k.family for k in own(launches, Language.cuda)] == ["cuda", "aten"]
    assert [k.family for k in own(launches, Language.torch)] == ["unknown", "aten"]


FIRST_SESSION = """
import torch
from kernel_lab.runner.schema import Language
from kernel_lab.runner.worker.evidence import trace, warm_profiler
warm_profiler()
def chain(x):
    return x * 2 * 3
copies = [(torch.randn(1 << 20, device="cuda"),) for _ in range(3)]
clean = torch.ones(1 << 20, device="cuda")
for _ in range(3):
    chain(*copies[0])
found = trace(chain, copies, cell_id="c0", implementation="eager", own_language=Language.torch,
              flush=clean.sum, host_us=200.0)
print(found.launch_count, found.calls, found.held, [k.kind for k in found.launches],
      found.busy_us <= found.span_us)
"""


@pytest.mark.gpu
def test_the_first_profiler_session_of_a_process_sees_the_right_counts():
    """D05: in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SESSION], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[-2] == "2 3 True ['pointwise', 'pointwise'] True"


@pytest.mark.gpu
def test_a_call_that_does_nothing_is_seen_as_nothing():
    """T15: a result that is only looked up launches no kernel."""
    import torch
    from kernel_lab.runner.worker.evidence import trace, warm_profiler

    warm_profiler()
    copies = [(torch.ones(8, device="cuda"),) for _ in range(2)]
    found = trace(
        lambda x: x,
        copies,
        cell_id="c0",
        implementation="nothing",
        own_language=Language.torch,
        flush=copies[0][0].sum,
        host_us=200.0,
    )
    assert found.launch_count == 0
    assert found.reason
    assert found.busy_us is None


@pytest.mark.gpu
def test_a_hidden_copy_to_dense_memory_is_a_kernel_of_its_own():
    """C13: it is seen beside the kernel under test, for strided inputs only."""
    import torch
    from kernel_lab.runner.worker.evidence import trace, warm_profiler
    from kernel_lab.runner.worker.inputs import restride

    warm_profiler()
    counts = {}
    for layout in ("contiguous", "transposed"):
        copies = [(restride(torch.randn(512, 256, device="cuda"), layout),) for _ in range(3)]
        found = trace(
            lambda x: x.contiguous() * 2,
            copies,
            cell_id="c0",
            implementation="dense",
            own_language=Language.torch,
            flush=torch.ones(1 << 20, device="cuda").sum,
            host_us=200.0,
        )
        counts[layout] = found.launch_count
    assert counts == {"contiguous": 1, "transposed": 2}
