"""A `doctor.json` made by hand: a GPU on which one check differs and one is explained."""

REASON = "the driver gives GPU counters to the administrator only (ERR_NVGPUCTRPERM)"


def interval(us):
    return {"median": us, "low": us * 0.99, "high": us * 1.01}


def ladder(number, cell, implementation, us, launches=1):
    times = (
        "period_us",
        "stamp_us",
        "graph_us",
        "event_us",
        "event_unheld_us",
        "busy_us",
        "span_us",
    )
    return {
        "experiment": "doctor_ladder_gemm" if cell.startswith("M") else "doctor_ladder_pointwise",
        "cell": cell,
        "cell_id": f"c{number:08d}",
        "implementation": implementation,
        "launches": launches,
        "nodes": launches,
        "host_us": 12.3456789,
        "graph_copies": [[1, us], [2, 2 * us]],
        "sm_mhz": 1980,
        **{key: interval(us) for key in times},
        "reasons": {},
    }


def tool(row, name, us):
    return {
        "cell_id": row["cell_id"],
        "implementation": row["implementation"],
        "tool": name,
        "version": "2025.3.1",
        "busy_us": us and interval(us),
        "span_us": None,
        "launches": row["launches"] if us else None,
        "reason": "" if us else REASON,
    }


def check(name, verdict, seen="100 us against 99 us (+1.01%)", reason="", subject="a eager"):
    return {
        "name": name,
        "compared": "busy_us against nsys",
        "limit": "within 0.02 of it from 2 us up",
        "seen": seen,
        "verdict": verdict,
        "reason": reason,
        "subject": subject,
    }


def gpu():
    """Every section, with the longest labels and numbers that are met."""
    rows = [
        ladder(1, "N1024-factors2-fp32", "folded", 1.234567),
        ladder(2, "N2400000000-factors2-fp32", "eager", 9012.345, launches=24),
        ladder(3, "M1-N16384-K16384-none-bf16", "eager", 145.678),
        ladder(4, "M8192-N8192-K8192-none-bf16", "eager", 1678.91),
    ]
    cold = {
        **{key: rows[2][key] for key in ("experiment", "cell", "cell_id", "implementation")},
        "bytes_read": 537_000_000,
        **{
            key: interval(us)
            for key, us in (
                ("write_flush_us", 160.1),
                ("read_flush_us", 150.2),
                ("rotated_us", 140.3),
                ("warm_us", 130.4),
                ("period_cold_us", 138.5),
                ("period_warm_us", 137.6),
            )
        },
    }
    pair = {"faster": 1, "slower": 0, "equal": 49, "undecided": 0, "width": 0.0034}
    pairs = [
        {**pair, "kind": "same", "case": "x * 2, 268435456 fp32 twice", "us": 300.1, "pairs": 50},
        {
            **pair,
            "kind": "more",
            "case": "x * 2, 26853760 fp32 against 27390835",
            "us": 50.2,
            "pairs": 100,
            "faster": 98,
            "equal": 0,
            "undecided": 2,
            "found": 98,
            "reversed": 0,
        },
    ]
    spread = {"median": 145.6, "low": 145.0, "high": 146.0, "spread": 0.0069, "processes": 10}
    who = {key: rows[2][key] for key in ("cell", "cell_id", "implementation")}
    repeats = [
        {**who, "period_us": spread, "wall_us": None, "do_bench_us": spread, "timer_us": None}
    ]
    return {
        "id": "doctor-20261201-100000-aa11",
        "command": "klab doctor --measure",
        "date": "2026-12-01T10:00:00+00:00",
        "commit": "0123456789abcdef-dirty",
        "kind": "cuda",
        "target": "h200_sxm",
        "settings": {"pairs": 200, "repeats": 10},
        "environment": {
            "gpu": {"name": "NVIDIA H200", "uuid": "GPU-12", "driver": "580.1"},
            "host": {"processor": "Xeon", "executable": "/home/somebody/python"},
            "software": {"python": "3.12", "torch": "2.11.0", "triton": "3.6.0"},
        },
        "sections": {
            name: {"rows": 1, "seconds": 12.5, "reason": ""}
            for name in ("ladder", "nsys", "ncu", "cold", "pairs", "repeats")
        },
        "rows": {
            "ladder": rows,
            "nsys": [tool(row, "nsys", row["busy_us"]["median"]) for row in rows],
            "ncu": [tool(row, "ncu", None) for row in rows],
            "cold": [cold],
            "pairs": pairs,
            "repeats": repeats,
        },
        "notes": ["a launch of the smallest kernel: +0.9 us longer than its graph node"],
        "checks": [
            check("busy vs nsys", "agrees"),
            check("busy vs nsys", "differs", "90 us against 99 us (-9.09%)", subject="b eager"),
            check("period vs graph", "explained", reason="2 launches of +0.9 us each"),
            check("busy vs ncu", "not_measured", "", REASON),
            check("busy vs ncu", "not_measured", "", f"busy_us: {REASON}; span_us: {REASON}"),
        ],
    }  # fmt: skip
