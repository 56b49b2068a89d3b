"""Programs without a cause of lost time that stands out, for ``marey explain``: name -> text."""

FUNCTIONS = """
def parse():
    for i in range(40_000):
        i * i

def join():
    for i in range(40_000):
        i * i

def count():
    for i in range(40_000):
        i * i

def table():
    for i in range(40_000):
        i * i

for _ in range(60):
    parse()
    join()
    count()
    table()
"""

STEPS = """
import marey

def load():
    for i in range(40_000):
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
    for part in (load, forward, backward, update):
        with marey.record_function(part.__name__):
            part()
"""

THREADS = """
import concurrent.futures

def clean():
    for i in range(30_000):
        i * i

def sort():
    for i in range(30_000):
        i * i

def pack():
    for i in range(30_000):
        i * i

def check():
    for i in range(30_000):
        i * i

def work(number):
    clean()
    sort()
    pack()
    check()

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(40)))
"""

TASKS = """
import asyncio

def parse():
    for i in range(2_000):
        i * i

def answer():
    for i in range(2_000):
        i * i

async def fetch(number):
    for _ in range(10):
        await asyncio.sleep(0.005)
        parse()
        answer()

async def main():
    await asyncio.gather(*(fetch(number) for number in range(20)))

asyncio.run(main())
"""

SERVER = """
import selectors
import socket
import threading

def parse():
    for i in range(10_000):
        i * i

def load():
    for i in range(10_000):
        i * i

def render():
    for i in range(10_000):
        i * i

def log():
    for i in range(10_000):
        i * i

def ask(address):
    for _ in range(60):
        with socket.create_connection(address) as client:
            client.sendall(b"get")
            client.makefile("rb", buffering=0).read(6)

listener = socket.create_server(("127.0.0.1", 0))
client = threading.Thread(target=ask, args=(listener.getsockname(),))
client.start()
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
for _ in range(60):
    selector.select()
    connection, _ = listener.accept()
    parse()
    load()
    render()
    log()
    connection.sendall(b"answer")
    connection.close()
client.join()
"""

GENERATORS = """
def numbers(count):
    for number in range(count):
        for i in range(10_000):
            i * i
        yield number

def halves(items):
    for item in items:
        for i in range(10_000):
            i * i
        yield item / 2

def texts(items):
    for item in items:
        for i in range(10_000):
            i * i
        yield str(item)

def lengths(items):
    for item in items:
        for i in range(10_000):
            i * i
        yield len(item)

for _ in lengths(texts(halves(numbers(200)))):
    pass
"""

EVEN = {
    "functions": FUNCTIONS,
    "steps": STEPS,
    "threads": THREADS,
    "tasks": TASKS,
    "server": SERVER,
    "generators": GENERATORS,
}
