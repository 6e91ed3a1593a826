"""The official Python client of MCP at the hub.

`mcp_hub.py <revision> <address>` over Streamable HTTP, `mcp_hub.py <revision> -- <command> <argument …>` over stdio. One
line of JSON for each result.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters

REVISION, *PLACE = sys.argv[1:]
LEGACY = '2025-11-25'


def server():
    if PLACE[0] != '--':
        return PLACE[0]
    return StdioServerParameters(command=PLACE[1], args=PLACE[2:], env=dict(os.environ))


async def ask(check, question):
    try:
        answer = await question
        seen = answer.model_dump(mode='json', by_alias=True, exclude_none=True)
    except Exception as error:
        seen = {'error': type(error).__name__, 'message': str(error)}
    print(json.dumps({'check': check, 'verdict': seen}, sort_keys=True), flush=True)


async def main():
    progress = []

    async def progressed(done, total, message):
        progress.append([done, total, message])

    def call(tool, **arguments):
        return client.call_tool('call_tool', {'tool': tool, 'arguments': arguments})

    mode = 'legacy' if REVISION == LEGACY else REVISION
    async with Client(server(), mode=mode) as client:
        await ask('tools', client.list_tools())
        await ask('find', client.call_tool('find_tools', {'query': 'weather forecast tomorrow'}))
        await ask('describe', client.call_tool('describe_tool', {'tool': 'home/echo'}))
        await ask('echo', call('home/echo', text='ä', n=1.5))
        await ask('fail', call('home/fail'))
        await ask('unknown', call('home/nothing'))
        counting = client.call_tool('call_tool', {'tool': 'home/count'}, progress_callback=progressed)
        await ask('count', counting)
        print(json.dumps({'check': 'progress', 'verdict': progress[:2]}), flush=True)
        await ask('given up', client.call_tool('call_tool', {'tool': 'home/hang'}, read_timeout_seconds=0.2))
        await ask('again', call('home/echo', still='there'))
    print(json.dumps({'done': True}), flush=True)


asyncio.run(main())
