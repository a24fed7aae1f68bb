"""Connections of asyncio, each with three echoes; names are looked up in threads. Then a wait of half an hour."""

import asyncio
import os
import sys
import time

COUNT = int(sys.argv[1])


async def serve():
    ended = 0
    all_ended = asyncio.Event()

    async def echo(reader, writer):
        nonlocal ended
        while data := await reader.read(1000):
            writer.write(data)
            await writer.drain()
        writer.close()
        await writer.wait_closed()
        ended += 1
        if ended == COUNT:
            all_ended.set()

    async with await asyncio.start_server(echo, "0.0.0.0", 9000, backlog=COUNT):
        await all_ended.wait()
    print("ended:", ended)


async def use():
    async def one(number):
        await asyncio.sleep(0.001 * (number + 1))
        reader, writer = await asyncio.open_connection("node0", 9000)
        sent = str(number).encode() * 10
        for _ in range(3):
            writer.write(sent)
            await writer.drain()
            assert await reader.readexactly(len(sent)) == sent
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(one(number) for number in range(COUNT)))
    print(f"{time.monotonic():.9f}")
    await asyncio.sleep(1800)


asyncio.run(serve() if os.environ["APENET_RANK"] == "0" else use())
