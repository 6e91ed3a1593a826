"""A small A2A agent as people build one with the official Python SDK.

JSON-RPC and HTTP+JSON at one port, gRPC at another, 1.0 and 0.3: `toy_agent.py <http port> <grpc port>`; it says when it
is there. It does what `test/support/a2a/toy-agent.ts` does: it echoes, works in steps, fails, or holds a task until it is
cancelled.
"""

import asyncio
import sys

import grpc
import httpx
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette
from starlette.routing import Mount

HTTP_PORT, GRPC_PORT = (int(arg) for arg in sys.argv[1:3])


class Toy(AgentExecutor):
    def __init__(self):
        self.held = {}

    async def execute(self, context, event_queue):
        text = context.get_user_input()
        task_id, context_id = context.task_id, context.context_id
        if text.startswith('echo'):
            parts = [Part(text=f'echo: {text}')]
            reply = Message(message_id='reply', role=Role.ROLE_AGENT, parts=parts, context_id=context_id)
            await event_queue.enqueue_event(reply)
            return
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        task = Task(id=task_id, context_id=context_id, status=status, history=[context.message])
        await event_queue.enqueue_event(task)
        telling = TaskUpdater(event_queue, task_id, context_id)

        def said(what):
            return telling.new_agent_message([Part(text=what)])

        await telling.start_work(said('at it'))
        if text.startswith('fail'):
            await telling.failed(said('it failed'))
        elif text.startswith('hold'):
            self.held[task_id] = asyncio.Event()
            await self.held[task_id].wait()
        else:
            await telling.add_artifact([Part(text='one')], artifact_id='a1', name='answer')
            await telling.add_artifact([Part(text='two')], artifact_id='a1', name='answer', append=True, last_chunk=True)
            await telling.complete(said('done'))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        held = self.held.pop(context.task_id, None)
        if held:
            held.set()


def card(name):
    http = f'http://127.0.0.1:{HTTP_PORT}'
    ways = [('JSONRPC', f'{http}/jsonrpc'), ('HTTP+JSON', f'{http}/rest'), ('GRPC', f'127.0.0.1:{GRPC_PORT}')]
    return AgentCard(
        name=name,
        description='Says again what it hears.',
        version='1.0.0',
        supported_interfaces=[
            AgentInterface(protocol_binding=binding, url=url, protocol_version=version)
            for version in ('1.0', '0.3')
            for binding, url in ways
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='echo', name='Echo', description='Says it again', tags=['echo'])],
    )


async def main():
    webhooks = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Toy(),
        task_store=InMemoryTaskStore(),
        agent_card=card('Toy'),
        push_config_store=webhooks,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), webhooks),
        extended_agent_card=card('Toy for friends'),
    )
    rpc = create_jsonrpc_routes(request_handler=handler, rpc_url='/jsonrpc', enable_v0_3_compat=True)
    rest = create_rest_routes(request_handler=handler, enable_v0_3_compat=True)
    cards = create_agent_card_routes(agent_card=card('Toy'))
    app = Starlette(routes=[*cards, *rpc, Mount('/rest', routes=rest)])

    server = grpc.aio.server()
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
    server.add_insecure_port(f'127.0.0.1:{GRPC_PORT}')
    await server.start()

    web = uvicorn.Server(uvicorn.Config(app, host='127.0.0.1', port=HTTP_PORT, log_level='warning'))
    serving = asyncio.create_task(web.serve())
    while not web.started and not serving.done():
        await asyncio.sleep(0.02)
    print('ready', flush=True)
    await serving


asyncio.run(main())
