"""call_workloads.py: workloads for the call tracer benchmarks."""

import asyncio
import json
import re
import threading


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursive():
    """Make 57,313 calls."""
    fibonacci(22)


def numbers(count):
    i = 0
    while i < count:
        yield i
        i += 1


def resume_in_turn(generators, rounds):
    """Resume long-lived generators one after another, as an event loop does."""
    for _ in range(rounds):
        for generator in generators:
            next(generator)


def words_of(text):
    return [match.group(0).lower() for match in re.finditer(r"\w+", text)]


class Record:
    def __init__(self, name, value):
        self.name = name
        self.value = value

    def key(self):
        return self.value, self.name

    def as_dict(self):
        return {"name": self.name, "value": self.value}


def mix():
    """json, re, sorting, generators, methods: about 15,000 Python calls."""
    text = "the quick brown fox jumps over the lazy dog " * 20
    records = [Record(word, i % 17) for i, word in enumerate(words_of(text))]
    for _ in range(10):
        records.sort(key=Record.key)
        document = json.dumps([record.as_dict() for record in records], indent=1)
        total = sum(entry["value"] for entry in json.loads(document))
        total += sum(value for value in numbers(500))
        re.sub(r"[aeiou]", lambda match: match.group(0).upper(), text)


def on_threads(work, count=4):
    """Run the same work on several threads at once."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


TASKS = 10_000


async def leaf():
    return 1


async def body():
    total = 0
    for _ in range(5):
        total += await leaf()
        await asyncio.sleep(0)
    return total


def tasks_at_once():
    """Run the bodies as concurrent tasks."""

    async def main():
        await asyncio.gather(*(body() for _ in range(TASKS)))

    asyncio.run(main())


def tasks_in_turn():
    """Run the same bodies one after another."""

    async def main():
        for _ in range(TASKS):
            await body()

    asyncio.run(main())
