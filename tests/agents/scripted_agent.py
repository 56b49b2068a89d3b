"""A scripted agent: it looks for causes with nothing but the tools of ``marey mcp``, and counts what that costs."""

import asyncio
import json
import sys

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from running import environment

BUDGET_BYTES = 16_000  # of an answer


class Agent:
    """A client of one server."""

    def __init__(self, client):
        self.client = client
        self.calls = 0
        self.bytes = 0

    async def text(self, tool, **arguments):
        """Return whether the answer is an error, and its text."""
        answer = await self.client.call_tool(tool, arguments)
        text = answer.content[0].text
        self.calls += 1
        self.bytes += len(text.encode())
        assert len(text.encode()) <= BUDGET_BYTES, f"{tool} {arguments}: {len(text.encode())} bytes"
        return bool(answer.is_error), text

    async def answer(self, tool, **arguments):
        is_error, text = await self.text(tool, **arguments)
        assert not is_error, text
        return json.loads(text)

    async def rows(self, tool, **arguments):
        table = await self.answer(tool, **arguments)
        return [dict(zip(table["columns"], row)) for row in table["rows"]]

    async def causes(self):
        """Return the causes it found, first ones first: (rule, what it read about that), as an agent would do it.

        It gets an overview, lists what stands out with the evidence, and looks at the place of the first cause.
        """
        await self.answer("summary")
        findings = await self.rows("explain")
        evidence = await self.rows("sql", query="select finding, text from finding_evidence")
        read = {each["finding"]: [each["claim"], each["name"] or ""] for each in findings}
        for each in evidence:
            read[each["finding"]].append(each["text"])
        if findings and findings[0]["name"]:
            first = findings[0]
            calls = await self.rows("ranges", name=first["name"])
            read[first["finding"]] += [str(call) for call in calls[:3]]
            read[first["finding"]].append((await self.text("source", name=first["name"]))[1])
        return [(each["id"], "\n".join(read[each["finding"]])) for each in findings]


def with_agent(folder, words, work):
    """Start ``marey mcp WORDS`` in a folder and return what the coroutine function `work` returns for its agent."""

    async def talk():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "marey", "mcp", *words], env=environment(), cwd=folder
        )
        async with Client(server) as client:
            return await work(Agent(client))

    return asyncio.run(talk())
