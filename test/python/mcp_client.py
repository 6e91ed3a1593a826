"""What the official Python client of MCP sees of the server that the tests share.

`mcp_client.py <revision> <address>` over Streamable HTTP, `mcp_client.py <revision> -- <command> <argument …>` over stdio:
one line of JSON for each thing that is asked, so that two ways to the server can be compared.
"""

import asyncio
import json
import pathlib
import shutil
import sys
import tempfile

from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, PromptReference, TextContent

REVISION, *PLACE = sys.argv[1:]
LEGACY = '2025-11-25'


def server():
    if PLACE[0] != '--':
        return PLACE[0]
    # What the server is told by its environment: only few variables are handed on by themselves.
    import os

    return StdioServerParameters(command=PLACE[1], args=PLACE[2:], env=dict(os.environ))


async def ask(check, question):
    try:
        answer = await question
        seen = answer.model_dump(mode='json', by_alias=True, exclude_none=True)
    except Exception as error:
        seen = {'error': type(error).__name__, 'message': str(error)}
    print(json.dumps({'check': check, 'verdict': seen}, sort_keys=True), flush=True)


async def elicited(context, params):
    return ElicitResult(action='accept', content={'name': 'Ada'})


async def sampled(context, params):
    return CreateMessageResult(role='assistant', content=TextContent(type='text', text='hi'), model='none')


async def main():
    progress = []
    seen = tempfile.mkdtemp(prefix='svcd-progress-')

    async def progressed(done, total, message):
        progress.append([done, total, message])
        # The tool waits until each word of it was heard.
        pathlib.Path(seen, f'{done:g}').touch()

    mode = 'legacy' if REVISION == LEGACY else REVISION
    async with Client(server(), mode=mode, elicitation_callback=elicited, sampling_callback=sampled) as client:
        capabilities = client.server_capabilities.model_dump(mode='json', by_alias=True, exclude_none=True)
        about = {'revision': client.protocol_version, 'capabilities': capabilities, 'instructions': client.instructions}
        print(json.dumps({'check': 'server', 'verdict': about}, sort_keys=True), flush=True)
        await ask('tools', client.list_tools())
        await ask('resources', client.list_resources())
        await ask('templates', client.list_resource_templates())
        await ask('resource', client.read_resource('note:7'))
        await ask('no such resource', client.read_resource('nothing'))
        await ask('prompts', client.list_prompts())
        await ask('prompt', client.get_prompt('greet', {'who': 'Bob'}))
        await ask('completion', client.complete(PromptReference(type='ref/prompt', name='greet'), {'name': 'who', 'value': ''}))
        await ask('echo', client.call_tool('echo', {'text': 'ä\u2028€', 'n': 1.5, 'deep': [{'a': None}], 'empty': {}}))
        await ask('fail', client.call_tool('fail'))
        await ask('count', client.call_tool('count', {'seen': seen}, progress_callback=progressed))
        shutil.rmtree(seen)
        print(json.dumps({'check': 'progress', 'verdict': progress}), flush=True)
        await ask('given up', client.call_tool('hang', read_timeout_seconds=0.2))
        await ask('ask', client.call_tool('ask'))
        await ask('input', client.call_tool('input'))
        await ask('sample', client.call_tool('sample'))
        await ask('big', client.call_tool('big', {'size': 300_000}))
        await ask('again', client.call_tool('echo', {'still': 'there'}))
    print(json.dumps({'done': True}), flush=True)


asyncio.run(main())
