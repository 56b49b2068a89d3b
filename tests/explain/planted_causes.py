"""Programs with one planted cause each, for ``marey explain``: name -> (finding, options of the profile, text)."""

TINY_CALLS = """
def scale(x):
    return x * 3

def total(items):
    sum = 0
    for item in items:
        sum += scale(item)
    return sum

for _ in range(20):
    total(range(20_000))
"""

REPEATED = """
import marey

def parse(path):
    with marey.record_function_fast("parse", [], {"path": path}):
        return sum(range(300_000))

def handle(order):
    return parse("prices.csv") + order + sum(range(20_000))

for order in range(60):
    handle(order)
"""

GARBAGE = """
import gc

class Node:
    def __init__(self, other):
        self.other = other

def build(count):
    nodes = []
    for _ in range(count):
        node = Node(None)
        node.other = Node(node)
        nodes.append(node)
    return nodes

kept = build(150_000)
gc.set_threshold(100, 2, 2)
for _ in range(40):
    build(500)
    gc.collect()
"""

LOCK = """
import threading

lock = threading.Semaphore(1)

def work():
    for _ in range(12):
        with lock:
            for i in range(200_000):
                i * i
        sum(range(30_000))

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

NETWORK = """
import socket
import threading
import time

def serve(listener):
    connection, _ = listener.accept()
    for _ in range(20):
        if not connection.recv(4):
            return
        time.sleep(0.02)
        connection.sendall(b"answer")

def fetch(client):
    client.sendall(b"get ")
    return client.makefile("rb", buffering=0).read(6)

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
with socket.create_connection(listener.getsockname()) as client:
    for _ in range(20):
        fetch(client)
        sum(range(20_000))
"""

BLOCKED_LOOP = """
import asyncio

def compress(data):
    for i in range(2_500_000):
        i * i

async def upload():
    for _ in range(4):
        await asyncio.sleep(0.005)
        compress(b"")

async def heartbeat():
    for _ in range(40):
        await asyncio.sleep(0.01)

async def main():
    await asyncio.gather(upload(), heartbeat(), heartbeat())

asyncio.run(main())
"""

IMPORTS = """
import big_library

def count():
    return sum(range(200_000))

count()
"""

SELF_TIME = """
def smooth(values):
    for _ in range(40):
        values = [(a + b) / 2 for a, b in zip(values, values[1:])]
    return values

def load():
    return list(range(10_000))

def save(values):
    return ",".join(map(str, values))

for _ in range(6):
    save(smooth(load()))
"""

OUTLIER = """
import marey

def forward():
    for i in range(40_000):
        i * i

def backward():
    for i in range(40_000):
        i * i

def update():
    for i in range(40_000):
        i * i

def save_checkpoint():
    for i in range(1_000_000):
        i * i

for step in marey.steps(range(60)):
    forward()
    backward()
    update()
    if step % 20 == 15:
        save_checkpoint()
"""

FIRST_STEP = """
import marey

def compile_model():
    for i in range(2_500_000):
        i * i

def forward():
    for i in range(40_000):
        i * i

def backward():
    for i in range(40_000):
        i * i

def update():
    for i in range(40_000):
        i * i

for step in marey.steps(range(40)):
    if step == 0:
        compile_model()
    forward()
    backward()
    update()
"""

SLEEP = """
import time

ready = []

def poll():
    time.sleep(0.02)
    ready.append(len(ready))

def work():
    return sum(range(40_000))

while len(ready) < 25:
    poll()
    work()
"""

PROCESS = """
import subprocess
import sys

def convert(number):
    subprocess.run(["sleep", "0.05"], check=True)

def work():
    return sum(range(100_000))

for number in range(8):
    convert(number)
    work()
"""

SERIAL_THREADS = """
import concurrent.futures

def fetch(part):
    for i in range(300_000):
        i * i

def merge(parts):
    for i in range(2_000_000):
        i * i

def check(parts):
    for i in range(2_000_000):
        i * i

def rank(parts):
    for i in range(2_000_000):
        i * i

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    parts = list(pool.map(fetch, range(8)))
    merge(parts)
    check(parts)
    rank(parts)
"""

GROWTH = """
import marey

kept = []
total = 0

def train(step):
    global total
    with marey.record_function("activations"):
        address = (step + 1) << 32
        total += 8 << 20
        marey.report_allocation(address, 8 << 20, total, total)
    with marey.record_function("logits"):
        total += 1 << 20
        marey.report_allocation(address + (1 << 30), 1 << 20, total, total)
    with marey.record_function("free"):
        total -= 1 << 20
        marey.report_allocation(address + (1 << 30), -(1 << 20), total, total)

for step in marey.steps(range(20)):
    train(step)
"""

PLANTED = {
    "tiny_calls": ("calls.tiny", {}, TINY_CALLS),
    "repeated": ("calls.repeated", {}, REPEATED),
    "garbage": ("gc.time", {}, GARBAGE),
    "lock": ("waits.lock", {}, LOCK),
    "network": ("waits.network", {}, NETWORK),
    "blocked_loop": ("asyncio.blocked", {}, BLOCKED_LOOP),
    "imports": ("imports.time", {}, IMPORTS),
    "self_time": ("function.self", {}, SELF_TIME),
    "outlier": ("step.outlier", {}, OUTLIER),
    "first_step": ("step.first", {}, FIRST_STEP),
    "sleep": ("waits.sleep", {"c_calls": True}, SLEEP),
    "process": ("waits.process", {}, PROCESS),
    "serial_threads": ("threads.serial", {}, SERIAL_THREADS),
    "growth": ("memory.growth", {"profile_memory": True}, GROWTH),
}
