"""bench.py BUILD_DIR [PAIRS]: print the figures for recording a GPU, one JSON object per line for tools/bench.py.

Programs run alternately, so that other load on the machine affects all of them equally.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def environment_of(build):
    return dict(os.environ, PYTHONPATH=os.pathsep.join([str(build / "python"), os.environ.get("PYTHONPATH", "")]))


def run(command, folder, build):
    done = subprocess.run(command, cwd=folder, env=environment_of(build), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def added(runs):
    return statistics.median(each["during"] - each["before"] for each in runs)


def figure(name, value, unit, target, **more):
    print(json.dumps({"name": name, "value": value, "unit": unit, "target": target, **more}), flush=True)


def compare_launches(build, folder, pairs):
    program = str(build / "gpu_launches")
    least, bare, own = [], [], []
    for _ in range(pairs):
        least.append(run([program, "least"], folder, build))
        bare.append(run([program, "bare"], folder, build))
        own.append(run([program, "marey"], folder, build))
    for each in own:
        if not each["kernels"] == each["links"] == each["launched"]:
            raise SystemExit(f"gpu: a session lost kernels or links: {each}")
    ratio = added(own) / added(bare)
    figure("gpu_launch", added(own), "ns", "<= 1.25", against="bare CUPTI", against_value=added(bare), ratio=ratio)
    figure("gpu_launch_kernels_alone", added(least), "ns", "", against="bare CUPTI", against_value=added(bare))
    middle = {key: statistics.median(each[key] for each in own) for key in own[0] if key != "mode"}
    figure("gpu_stop_to_table", middle["stop_us"] + middle["table_us"], "us", "<= 1 us")
    figure("gpu_export_chrome", middle["export_us"], "us", "<= 0.5 us")
    figure("gpu_bytes", middle["bytes"], "bytes", "<= 128 bytes")


def compare_with_torch(build, folder, pairs):
    script = str(HERE / "torch_launches.py")
    upstream, own = [], []
    for _ in range(pairs):
        upstream.append(run([sys.executable, script, "torch"], folder, build))
        own.append(run([sys.executable, script, "marey"], folder, build))
    ratio = added(own) / added(upstream)
    figure(
        "gpu_launch_vs_torch",
        added(own),
        "ns",
        "<= 0.25",
        against="torch.profiler",
        against_value=added(upstream),
        ratio=ratio,
    )
    for name in ("stop_us", "table_us", "export_us", "kernels", "kernel_us"):
        medians = [statistics.median(each[name] for each in runs) for runs in (own, upstream)]
        figure(
            f"gpu_torch_{name}", medians[0], name.split("_")[-1], "", against="torch.profiler", against_value=medians[1]
        )


def main():
    build = Path(sys.argv[1]).resolve()
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    with tempfile.TemporaryDirectory() as folder:
        compare_launches(build, folder, pairs)
        try:
            import torch  # noqa: F401
        except ImportError:
            print("gpu: comparison with PyTorch skipped: it is not installed", file=sys.stderr)
            return
        compare_with_torch(build, folder, max(pairs // 3, 1))
        training = [sys.executable, str(HERE.parent / "torch" / "training.py"), "cuda"]
        subprocess.run(training, cwd=folder, env=environment_of(build), check=True)


main()
