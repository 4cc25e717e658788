"""Nsight Systems exports made by hand: the columns that a join reads, rows as the tests need."""

import sqlite3

DOMAIN = "kernel-lab"
PROCESS = 0x0001_00AB_CD00_0000
MAIN, OTHER = PROCESS | 1, PROCESS | 2

RANGE = "start INT, end INT, eventType INT, text TEXT, globalTid INT, endGlobalTid INT, "
RANGE += "textId INT, domainId INT, int64Value INT"
CALL = "start INT, end INT, globalTid INT, correlationId INT"
WORK = "start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT"
KERNEL = ", demangledName INT, shortName INT, registersPerThread INT, gridX INT, gridY INT, "
KERNEL += "gridZ INT, blockX INT, blockY INT, blockZ INT, staticSharedMemory INT, "
KERNEL += "dynamicSharedMemory INT, graphNodeId INT"


class Export:
    """Rows are added one by one; `save` writes only the tables that have some."""

    def __init__(self):
        self.ranges, self.calls, self.kernels = [], [], []
        self.copies, self.fills = [], []
        self.texts = {}
        self.correlation = 100
        self.domain(DOMAIN, 1)

    def text(self, value):
        return self.texts.setdefault(value, len(self.texts) + 1)

    def domain(self, name, number):
        self.ranges.append((-5, None, 75, name, MAIN, None, None, number, None))

    def range(self, name, start, end, *, payload=None, thread=MAIN, kind=59, domain=1, plain=False):
        text, number = (name, None) if plain else (None, self.text(name))
        self.ranges.append((start, end, kind, text, thread, None, number, domain, payload))

    def launch(self, at, *works, thread=MAIN):
        """A call at `at`; each work is (kind, start, end), launched by it."""
        self.correlation += 1
        self.calls.append((at, at + 2, thread, self.correlation))
        for kind, start, end in works:
            row = (start, end, 0, 7, self.correlation, PROCESS)
            if kind == "memset":
                self.fills.append((*row, 64))
            elif kind == "memcpy":
                self.copies.append((*row, 4096))
            else:
                name = self.text(kind)
                self.kernels.append((*row, name, name, 32, 8, 1, 1, 128, 1, 1, 0, 1024, None))

    def save(self, path):
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        entries = [(number, value) for value, number in self.texts.items()]
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", entries)
        tables = {
            "NVTX_EVENTS": (RANGE, self.ranges),
            "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, self.calls),
            "CUPTI_ACTIVITY_KIND_KERNEL": (WORK + KERNEL, self.kernels),
            "CUPTI_ACTIVITY_KIND_MEMCPY": (WORK + ", bytes INT", self.copies),
            "CUPTI_ACTIVITY_KIND_MEMSET": (WORK + ", bytes INT", self.fills),
        }
        for name, (columns, rows) in tables.items():
            if rows:
                connection.execute(f"CREATE TABLE {name} ({columns})")
                marks = ", ".join("?" * (columns.count(",") + 1))
                # newest first: an export promises no order
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows[::-1])
        connection.commit()
        connection.close()
        return path
