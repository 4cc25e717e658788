"""Bytes as counted against bytes as stated."""

import dataclasses

import pytest
from kernel_lab.runner.counted import dram_ratio
from kernel_lab.runner.records import Evidence


def counted(job, **metrics):
    """The record of eager with these counters of ncu."""
    record = next(record for record in job.records if record.implementation == "eager")
    evidence = Evidence(tool="ncu", cell_id=record.cell.id, implementation="eager", metrics=metrics)
    return dataclasses.replace(record, evidence=(*record.evidence, evidence))


def test_the_bytes_that_memory_moved_stand_against_those_that_the_cost_states(gemm):
    stated = counted(gemm).cost.bytes
    record = counted(gemm, dram_bytes_read=1.5 * stated, dram_bytes_written=0.5 * stated)
    assert dram_ratio(record) == pytest.approx(2.0)


def test_a_counter_that_is_missing_gives_no_ratio(gemm):
    assert dram_ratio(counted(gemm, dram_bytes_read=1e6)) is None
    assert dram_ratio(counted(gemm)) is None
