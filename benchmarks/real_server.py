"""real_server.py: an aiohttp server and its client in one process, 400 requests."""

import asyncio

import aiohttp
from aiohttp import web

REQUESTS = 400
AT_ONCE = 20


async def show(request):
    await asyncio.sleep(0)
    return web.json_response({"name": request.match_info["name"], "items": list(range(50))})


async def get(session, url):
    async with session.get(url) as response:
        return len((await response.json())["items"])


async def main():
    application = web.Application()
    application.add_routes([web.get("/items/{name}", show)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    total = 0
    async with aiohttp.ClientSession() as session:
        for first in range(0, REQUESTS, AT_ONCE):
            urls = [f"http://{host}:{port}/items/{i}" for i in range(first, first + AT_ONCE)]
            total += sum(await asyncio.gather(*(get(session, url) for url in urls)))
    await runner.cleanup()
    assert total == REQUESTS * 50


asyncio.run(main())
