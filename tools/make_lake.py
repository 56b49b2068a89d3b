#!/usr/bin/env python3
"""make_lake.py LAKE: simulates a training job on many ranks and writes its runs as a lake, for tests and for planning.

Every step of a rank has four segments. In each, the host launches operators, the device runs their kernels, and a
collective waits for the last rank. A straggler takes longer in one kernel; a regression makes one kernel slower on all
ranks. The files have the columns and encodings of `marey export --to parquet`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

from marey.sql import export
from marey.sql.runs import RUNS, encoded, run_row
from marey.sql.tables import table_schema

SEGMENTS = ("forward", "backward", "reduce", "optimizer")
OPERATORS = 40  # names of operators; each launches a kernel of its own
COLLECTIVE_NS = 80_000
OVERLAP_US = 10  # of a collective with computation, in Chrome traces
RANKS_PER_HOST = 8
HOST, COMPUTE, COMMUNICATION = 0, 1, 2  # tracks


@dataclass
class Job:
    """A simulated run. Times are nanoseconds."""

    ranks: int = 8
    steps: int = 20
    ranges_per_step: int = 500
    seed: int = 0
    jitter: float = 0.05  # of one kernel
    run: str = "run-0"
    stragglers: dict[int, tuple[int, int]] = field(default_factory=dict)  # rank -> first and last step
    delay: float = 0.3  # of a step, in which a straggler is late
    slower: dict[int, float] = field(default_factory=dict)  # operator -> factor

    @property
    def launches(self) -> int:
        """Operators in a segment: each is a range of the host and one of the device."""
        return max(1, ((self.ranges_per_step - 1) // len(SEGMENTS) - 2) // 2)


def kernel_name(operator: int) -> str:
    return f"kernel_{operator:02d}"


STRAGGLER_OPERATOR = 7  # its kernel takes a straggler's time


class Simulation:
    """The arrivals of all ranks; then the ranges of one rank at a time."""

    def __init__(self, job: Job) -> None:
        self.job = job
        shape = numpy.random.default_rng(4711)  # equal for all seeds: the program
        self.operators = shape.integers(0, OPERATORS, (len(SEGMENTS), job.launches))
        self.operators[0, 0] = STRAGGLER_OPERATOR
        self.usual = shape.lognormal(numpy.log(20_000), 0.8, OPERATORS)
        for operator, factor in job.slower.items():
            self.usual[operator] *= factor
        typical = self.usual[self.operators].sum()
        self.late_ns = job.delay * typical
        busy = numpy.stack([self.kernels(rank).sum(axis=2) for rank in range(job.ranks)])  # rank, step, segment
        last = busy.max(axis=0)  # all ranks begin a segment together
        ends = (last + COLLECTIVE_NS).reshape(-1).cumsum().reshape(last.shape)
        self.ends = ends.astype(numpy.int64)
        self.starts = numpy.concatenate([[0], self.ends.reshape(-1)[:-1]]).reshape(last.shape)

    def kernels(self, rank: int) -> numpy.ndarray:
        """The durations of a rank's kernels, by step, segment and launch."""
        job = self.job
        random = numpy.random.default_rng((job.seed, rank))
        times = self.usual[self.operators] * random.lognormal(0, job.jitter, (job.steps, *self.operators.shape))
        if rank in job.stragglers:
            first, last = job.stragglers[rank]
            times[first : last + 1, 0, 0] += self.late_ns
        return times

    def ranges(self, rank: int) -> dict[str, numpy.ndarray]:
        """The columns of a rank's ranges: the host's track, then the two of the device, each in order of time."""
        times = self.kernels(rank).astype(numpy.int64)
        steps, segments, launches = times.shape
        kernel_end = self.starts[:, :, None] + times.cumsum(axis=2)
        kernel_start = kernel_end - times
        arrival = kernel_end[:, :, -1]
        launch_ns = numpy.maximum(times * 3 // 5, 1)  # within the time of the kernel, so that launches do not overlap
        step_start, step_end = self.starts[:, 0], self.ends[:, -1]
        numbers = numpy.arange(steps)

        # The host: step, then for each segment the segment and its launches.
        per_segment = 1 + launches
        per_step = 1 + segments * per_segment
        host = {
            name: numpy.zeros((steps, per_step), numpy.int64)
            for name in ("start", "duration", "self", "depth", "parent", "code")
        }
        rows = numpy.arange(steps)[:, None] * per_step
        host["start"][:, 0], host["duration"][:, 0] = step_start, step_end - step_start
        host["parent"][:, 0], host["code"][:, 0] = -1, numbers + 1000
        for index in range(segments):
            at = 1 + index * per_segment
            inside = slice(at + 1, at + per_segment)
            host["start"][:, at] = self.starts[:, index]
            host["duration"][:, at] = arrival[:, index] - self.starts[:, index]
            host["self"][:, at] = host["duration"][:, at] - launch_ns[:, index].sum(axis=1)
            host["depth"][:, at], host["parent"][:, at], host["code"][:, at] = 1, rows[:, 0], 900 + index
            host["start"][:, inside] = kernel_start[:, index]
            host["duration"][:, inside] = host["self"][:, inside] = launch_ns[:, index]
            host["depth"][:, inside], host["parent"][:, inside] = 2, rows + at
            host["code"][:, inside] = self.operators[index]
        host["self"][:, 0] = host["duration"][:, 0] - (arrival - self.starts).sum(axis=1)

        kernels = steps * segments * launches
        collectives = steps * segments
        zeros = numpy.zeros
        code = numpy.broadcast_to(100 + self.operators, times.shape)

        def joined(name: str, compute: numpy.ndarray, communication: numpy.ndarray) -> numpy.ndarray:
            return numpy.concatenate([host[name].reshape(-1), compute.reshape(-1), communication.reshape(-1)])

        waits = self.ends - arrival
        outside = numpy.full(kernels, -1), numpy.full(collectives, -1)
        hosts = host["start"].size
        step = numpy.concatenate(
            [
                numpy.repeat(numbers, per_step),
                numpy.repeat(numbers, segments * launches),
                numpy.repeat(numbers, segments),
            ]
        )
        sequence = numpy.concatenate([numpy.full(hosts, -1), outside[0], numpy.arange(collectives)])
        return {
            "start": joined("start", kernel_start, arrival),
            "duration": joined("duration", times, waits),
            "self": joined("self", times, waits),
            "depth": joined("depth", zeros(kernels, numpy.int64), zeros(collectives, numpy.int64)),
            "parent": joined("parent", *outside),
            "code": joined("code", code, numpy.full(collectives, 800)),
            "track": numpy.repeat([HOST, COMPUTE, COMMUNICATION], [hosts, kernels, collectives]),
            "step": step,
            "sequence": sequence,
        }


def _texts(indexes: numpy.ndarray, texts: list[str | None]) -> pyarrow.Array:
    """A dictionary column; texts that are None are null."""
    known = [text for text in texts if text is not None]
    places = numpy.array([-1 if text is None else known.index(text) for text in texts], numpy.int32)[indexes]
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(places, pyarrow.int32(), mask=places < 0), pyarrow.array(known, pyarrow.large_utf8())
    )


def range_table(simulation: Simulation, rank: int) -> pyarrow.Table:
    """The file of a rank, with the columns that marey.sql.export writes."""
    job = simulation.job
    made = simulation.ranges(rank)
    rows = len(made["start"])
    track, code, sequence = made["track"], made["code"], made["sequence"]
    names = [f"aten::op_{operator:02d}" for operator in range(OPERATORS)]
    names += [""] * (100 - OPERATORS) + [kernel_name(operator) for operator in range(OPERATORS)]
    names += [""] * (800 - len(names)) + ["ncclDevKernel_AllReduce"] + [""] * 99 + list(SEGMENTS)
    names += [""] * (1000 - len(names)) + [f"ProfilerStep#{number}" for number in range(job.steps)]
    used = numpy.unique(code)
    is_step = code >= 1000
    constant = numpy.zeros(rows, numpy.int64)
    columns = {
        "name": _texts(numpy.searchsorted(used, code), [names[number] for number in used]),
        "category": _texts(numpy.where(track == HOST, 0, 1), [None, "kernel"]),
        "scope": _texts(numpy.where(track != HOST, 2, numpy.where(is_step, 1, 0)), ["function", "step", "device"]),
        "duration_ns": made["duration"],
        "self_ns": made["self"],
        "depth": made["depth"],
        "parent": pyarrow.array(made["parent"], pyarrow.int64(), mask=made["parent"] < 0),
        "track": track,
        "track_name": _texts(track, ["main", "stream 7", "stream 20"]),
        "thread_name": _texts(constant, ["main"]),
        "pid": constant + 1000 + rank,
        "device": _texts(numpy.where(track == HOST, 0, 1), ["cpu", "cuda"]),
        "device_index": pyarrow.array(constant, pyarrow.int64(), mask=track == HOST),
        "stream": pyarrow.array(numpy.array([0, 7, 20])[track], pyarrow.int64(), mask=track == HOST),
        "site": numpy.searchsorted(used, code),
        "step": made["step"],
        "group": _texts(numpy.where(sequence < 0, 0, 1), [None, "world"]),
        "sequence": pyarrow.array(sequence, pyarrow.int64(), mask=sequence < 0),
        "run_ns": made["start"],
        "row": numpy.arange(rows),
        "capture": _texts(constant, [f"{rank}-{1000 + rank}"]),
        "rank": constant + rank,
        "run_offset_ns": constant - 1_000_000,
    }
    schema = export.file_schema(table_schema("ranges"), "ranges")
    arrays = []
    for field_ in schema:
        column = columns.get(field_.name, constant)
        array = column if isinstance(column, pyarrow.Array) else pyarrow.array(column)
        arrays.append(array.cast(field_.type))
    return pyarrow.table(arrays, schema=schema)


@dataclass
class _Capture:
    """A rank, for the row of its run."""

    host: str
    rank: int
    pid: int
    start_ns: int
    end_ns: int
    ranges: int
    program: str = "simulated"
    command: str = "make_lake.py"
    problems: list = field(default_factory=list)
    metadata: dict = field(default_factory=dict)


def host_of(rank: int) -> str:
    return f"node{rank // RANKS_PER_HOST:04d}"


def write_run(lake: str | Path, job: Job) -> int:
    """Write a run and return the number of its ranges."""
    simulation = Simulation(job)
    captures = []
    for rank in range(job.ranks):
        rows = range_table(simulation, rank)
        folder = Path(lake, "ranges", f"run={encoded(job.run)}", f"host={host_of(rank)}")
        folder.mkdir(parents=True, exist_ok=True)
        export.write_table([rows], rows.schema, str(folder / f"{rank}-{1000 + rank}.parquet"), "ranges")
        end = int(simulation.ends[-1, -1])
        captures.append(_Capture(host_of(rank), rank, 1000 + rank, 0, end, rows.num_rows))
    Path(lake, RUNS).mkdir(exist_ok=True)
    row = run_row(job.run, captures)
    export.write_table([row], row.schema, str(Path(lake, RUNS, f"{encoded(job.run)}.parquet")), RUNS)
    return sum(capture.ranges for capture in captures)


def write_chrome(folder: str | Path, job: Job) -> int:
    """Write a run as Chrome traces, a file for each rank, as PyTorch's profiler does; return the number of ranges."""
    simulation = Simulation(job)
    Path(folder).mkdir(parents=True, exist_ok=True)
    count = 0
    for rank in range(job.ranks):
        events = []
        launches = iter(range(1, 1 << 30))
        columns = ["name", "scope", "track", "stream", "run_ns", "duration_ns", "sequence"]
        for row in range_table(simulation, rank).select(columns).to_pylist():
            on_device = row["track"] != HOST
            event = {"ph": "X", "name": row["name"], "ts": row["run_ns"] / 1000, "dur": row["duration_ns"] / 1000}
            if on_device:
                values = {"device": 0, "stream": row["stream"], "correlation": next(launches)}
                event |= {"cat": "kernel", "pid": 0, "tid": row["stream"], "args": values}
                if row["sequence"] is not None:  # here it begins before the last kernel ends
                    values |= {"Process Group Name": "world", "Seq": row["sequence"]}
                    event["ts"] -= OVERLAP_US
                    event["dur"] += OVERLAP_US
            else:
                category = "user_annotation" if row["scope"] == "step" else "cpu_op"
                event |= {"cat": category, "pid": 1000 + rank, "tid": 1000 + rank, "args": {}}
            events.append(event)
        count += len(events)
        info = {"backend": "nccl", "rank": rank, "world_size": job.ranks}
        trace = {"schemaVersion": 1, "host_name": host_of(rank), "distributedInfo": info, "traceEvents": events}
        Path(folder, f"rank{rank}.json").write_text(json.dumps(trace))
    return count


def link_run(lake: str | Path, source: str, run: str) -> None:
    """Add a run with the files of another one, as hard links: as large to read, without space on the disk."""
    folder = Path(lake, "ranges", f"run={encoded(source)}")
    for path in folder.glob("host=*/*.parquet"):
        target = Path(lake, "ranges", f"run={encoded(run)}", *path.parts[-2:])
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, target)
    row = pyarrow.parquet.read_table(Path(lake, RUNS, f"{encoded(source)}.parquet"))
    row = row.set_column(0, "run", pyarrow.array([run], pyarrow.large_utf8()))
    export.write_table([row], row.schema, str(Path(lake, RUNS, f"{encoded(run)}.parquet")), RUNS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lake")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--ranges", type=int, default=500, help="ranges in a step of a rank (500)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", default="run-0", help="id of the run (run-0)")
    parser.add_argument(
        "--straggler", action="append", default=[], metavar="RANK:FIRST-LAST", help="a late rank, in these steps"
    )
    parser.add_argument(
        "--slower", action="append", default=[], metavar="OPERATOR=FACTOR", help="a slower kernel, by number"
    )
    parser.add_argument(
        "--links", type=int, default=0, metavar="N", help="add N more runs with the same files, as hard links"
    )
    parser.add_argument("--chrome", action="store_true", help="write Chrome traces instead, a file for each rank")
    options = parser.parse_args()
    stragglers = {}
    for text in options.straggler:
        rank, _, steps = text.partition(":")
        first, _, last = (steps or f"0-{options.steps - 1}").partition("-")
        stragglers[int(rank)] = int(first), int(last or first)
    slower = {int(operator): float(factor) for operator, _, factor in (text.partition("=") for text in options.slower)}
    job = Job(
        options.ranks,
        options.steps,
        options.ranges,
        options.seed,
        run=options.run,
        stragglers=stragglers,
        slower=slower,
    )
    if options.chrome:
        ranges = write_chrome(options.lake, job)
        print(f"{options.lake}: {ranges:,} ranges on {options.ranks} ranks")
        return 0
    ranges = write_run(options.lake, job)
    for number in range(options.links):
        link_run(options.lake, options.run, f"{options.run}-{number + 1}")
    size = sum(
        path.stat().st_size for path in Path(options.lake, "ranges", f"run={encoded(options.run)}").rglob("*.parquet")
    )
    print(f"{options.lake}: {ranges:,} ranges on {options.ranks} ranks, {size / ranges:.2f} bytes each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
