"""An agent that has only the tools of ``marey mcp`` finds planted causes. Run by ``make test-explain``.

``make test`` runs those that do not depend on how much of the machine a program gets (AGENT_CAUSES=steady).
"""

import json
import os

import pytest
from planted_causes import PLANTED
from recorded_causes import record

pytest.importorskip("duckdb")
pytest.importorskip("mcp")

from scripted_agent import with_agent

# A function, file or thread that an agent has to come to.
PLANTED_NAMES = {
    "tiny_calls": "scale",
    "repeated": "prices.csv",
    "garbage": "build",
    "lock": "work",
    "network": "fetch",
    "blocked_loop": "compress",
    "imports": "big_library",
    "self_time": "smooth",
    "outlier": "save_checkpoint",
    "first_step": "compile_model",
    "sleep": "poll",
    "process": "convert",
    "serial_threads": "main thread",
    "growth": "activations",
}
STEADY = ("growth", "first_step", "imports")
CHOSEN = STEADY if os.environ.get("AGENT_CAUSES") == "steady" else tuple(PLANTED)


def test_every_planted_cause_has_a_name():
    assert set(PLANTED_NAMES) == set(PLANTED) and len(PLANTED) == 14


@pytest.mark.parametrize("name", CHOSEN)
def test_an_agent_finds_a_planted_cause_in_few_calls(tmp_path, name):
    wanted, options, text = PLANTED[name]
    record(tmp_path, text, json.dumps(options))

    async def work(agent):
        return await agent.causes(), agent.calls, agent.bytes

    causes, calls, size = with_agent(tmp_path, ["it.marey", "--source", "."], work)
    assert calls <= 5 and size <= 48_000
    assert wanted in dict(causes), causes
    assert PLANTED_NAMES[name] in dict(causes)[wanted]
