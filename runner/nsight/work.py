"""What a timeline holds: ranges, and the device work that was launched in them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """One kernel, copy or fill on the device; times in ns from the session's start. What the
    export has no column for is None."""

    kind: str
    name: str
    start_ns: int
    end_ns: int
    device: int | None
    stream: int | None
    graph_node: int | None = None
    bytes: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    static_shared: int | None = None
    dynamic_shared: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """One opened range and the device work launched in it, and in no range inside it."""

    domain: str
    name: str
    payload: int | None
    start_ns: int
    end_ns: int | None
    work: tuple[Activity, ...] = ()

    @property
    def kernels(self) -> int:
        return sum(activity.kind == "kernel" for activity in self.work)

    @property
    def busy_us(self) -> float:
        """The union of the work's intervals; 0 where there is none."""
        total, reached = 0, None
        for activity in sorted(self.work, key=lambda a: a.start_ns):
            begin = activity.start_ns if reached is None else max(activity.start_ns, reached)
            total += max(0, activity.end_ns - begin)
            reached = max(activity.end_ns, begin)
        return total / 1000

    @property
    def span_us(self) -> float:
        """From the first start to the last end; 0 where there is no work."""
        if not self.work:
            return 0.0
        first = min(activity.start_ns for activity in self.work)
        return (max(activity.end_ns for activity in self.work) - first) / 1000
