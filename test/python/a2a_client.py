"""What the official Python client says of a toy agent: `a2a_client.py <address>`.

One line of JSON for each verdict, without ids, times and addresses of machines, so that two runs can be compared; what
`test/support/a2a/client.ts` asks too.
"""

import asyncio
import json
import sys
from uuid import uuid4

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict
from masked import masked
from webhook import Webhook

BASE = sys.argv[1]
LIMIT_S = 60
WEBHOOK = Webhook()


def say(check, verdict):
    print(masked({'check': check, 'verdict': verdict}), flush=True)


async def ask(check, question, verdict):
    """Says what comes of a question, or how it fails."""
    try:
        answer = await question
        say(check, verdict(answer))
        return answer
    except Exception as error:
        say(check, {'error': type(error).__name__, 'message': str(error)})
        return None


def text_of(message):
    return '|'.join(part.text for part in message.parts)


def state_of(task):
    return f'{TaskState.Name(task.status.state)} {text_of(task.status.message)}'.strip()


def task_text(task):
    artifacts = [f'{one.name}: {len(one.parts)}' for one in task.artifacts]
    return {'state': state_of(task), 'artifacts': artifacts, 'history': [text_of(one) for one in task.history]}


def event_text(event):
    kind = event.WhichOneof('payload')
    if kind == 'message':
        return f'message {text_of(event.message)}'
    if kind == 'task':
        return f'task {state_of(event.task)}'
    if kind == 'status_update':
        return f'status {state_of(event.status_update)}'
    if kind == 'artifact_update':
        update = event.artifact_update
        return f'artifact {update.artifact.name} {text_of(update.artifact)} {update.append} {update.last_chunk}'
    return 'nothing'


async def events_of(stream, seen=lambda event: None):
    events = []
    async for event in stream:
        events.append(event_text(event))
        seen(event)
    return events


def message_of(text, context_id=None):
    parts = [Part(text=text)]
    ids = {'message_id': str(uuid4()), 'context_id': context_id or str(uuid4())}
    return SendMessageRequest(message=Message(role=Role.ROLE_USER, parts=parts, **ids))


def first_of(future):
    def seen(event):
        if not future.done() and event.WhichOneof('payload') == 'status_update':
            future.set_result(event.status_update.task_id)

    return seen


def begun(future):
    def seen(event):
        if not future.done():
            future.set_result(None)

    return seen


async def held(at, client):
    """A task that is held: who watches it sees what becomes of it, and it ends when it is cancelled."""
    loop = asyncio.get_running_loop()
    context_id, working, first = str(uuid4()), loop.create_future(), loop.create_future()
    stream = asyncio.create_task(events_of(client.send_message(message_of('hold on', context_id)), first_of(working)))
    task_id = await asyncio.wait_for(working, LIMIT_S)
    await ask(f'{at} get', client.get_task(GetTaskRequest(id=task_id)), task_text)
    some = ListTasksRequest(context_id=context_id, history_length=0)
    await ask(f'{at} list', client.list_tasks(some), lambda found: [state_of(one) for one in found.tasks])
    await push(at, client, task_id)
    path = await tell_me(at, client, task_id)
    watched = asyncio.create_task(events_of(client.subscribe(SubscribeToTaskRequest(id=task_id)), begun(first)))
    await ask(f'{at} subscribe', asyncio.wait_for(first, LIMIT_S), lambda _: 'it begins')
    await ask(f'{at} cancel', client.cancel_task(CancelTaskRequest(id=task_id)), state_of)
    if path:
        notified = asyncio.wait_for(WEBHOOK.heard(path, '(?i)cancell?ed'), LIMIT_S)
        await ask(f'{at} push comes', notified, lambda one: told(at, one))
    await ask(f'{at} stream of what was held', asyncio.wait_for(stream, LIMIT_S), lambda events: events)
    await ask(f'{at} stream of who watches', asyncio.wait_for(watched, LIMIT_S), lambda events: events)
    await ask(f'{at} get cancelled', client.get_task(GetTaskRequest(id=task_id)), task_text)
    await ask(f'{at} cancel again', client.cancel_task(CancelTaskRequest(id=task_id)), state_of)
    over = events_of(client.subscribe(SubscribeToTaskRequest(id=task_id)))
    await ask(f'{at} subscribe to what is over', asyncio.wait_for(over, LIMIT_S), lambda events: events)


async def push(at, client, task_id):
    """Where the server is to call back: kept, shown as it was given, and taken out."""
    one = {'task_id': task_id, 'id': 'p1'}
    url = f'{WEBHOOK.url}/never'
    config = TaskPushNotificationConfig(url=url, token='secret', **one)

    def shown(config):
        return f'{config.id} {"as it was given" if config.url == url else config.url} {config.token}'

    async def get():
        return await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**one))

    every = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    await ask(f'{at} push set', client.create_task_push_notification_config(config), shown)
    await ask(f'{at} push get', get(), shown)
    listed = client.list_task_push_notification_configs(every)
    await ask(f'{at} push list', listed, lambda found: [shown(config) for config in found.configs])
    deleted = client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**one))
    await ask(f'{at} push delete', deleted, lambda _: 'deleted')
    await ask(f'{at} push get deleted', get(), shown)


async def tell_me(at, client, task_id):
    """Where the server calls back once the task goes on; the path there, or None where the SDKs do not come to terms."""
    path = f'/{uuid4()}'
    config = TaskPushNotificationConfig(task_id=task_id, id='p2', url=WEBHOOK.url + path, token='mine')
    kept = await ask(f'{at} push wanted', client.create_task_push_notification_config(config), lambda kept: kept.token)
    return path if kept else None


def told(at, one):
    print(json.dumps({'at': at, 'caller': one['caller']}), flush=True)
    return {**one, 'path': '/hook', 'caller': None}


async def everything(at, client, plain):
    """The client streams wherever the agent can; `plain` is one that does not."""
    card = client.get_extended_agent_card(GetExtendedAgentCardRequest())
    await ask(f'{at} extended card', card, MessageToDict)
    for text in ('echo é ✓', 'work', 'fail'):
        await ask(f'{at} send {text}', events_of(plain.send_message(message_of(text))), lambda events: events)
    for text in ('echo', 'work', 'fail'):
        await ask(f'{at} stream {text}', events_of(client.send_message(message_of(text))), lambda events: events)
    try:
        await held(at, client)
    except Exception as error:
        say(f'{at} held', {'error': type(error).__name__, 'message': str(error)})
    await ask(f'{at} get unknown', client.get_task(GetTaskRequest(id='nobody')), task_text)
    await ask(f'{at} cancel unknown', client.cancel_task(CancelTaskRequest(id='nobody')), state_of)
    await ask(f'{at} send nothing', events_of(plain.send_message(SendMessageRequest())), lambda events: events)


async def unknown_over_grpc(target):
    """A method that no service of gRPC has."""
    async with grpc.aio.insecure_channel(target) as channel:
        try:
            return await channel.unary_unary('/lf.a2a.v1.A2AService/NoSuch')(b'')
        except grpc.aio.AioRpcError as error:
            return {'code': error.code().name, 'details': error.details()}


def config_of(binding, http, streaming):
    return ClientConfig(
        streaming=streaming,
        httpx_client=http,
        grpc_channel_factory=grpc.aio.insecure_channel,
        supported_protocol_bindings=[binding],
    )


async def main():
    await WEBHOOK.open()
    async with httpx.AsyncClient(timeout=LIMIT_S) as http:
        card = await A2ACardResolver(http, BASE).get_agent_card()
        print(json.dumps({'addresses': [one.url for one in card.supported_interfaces]}), flush=True)
        say('card', MessageToDict(card))
        for one in card.supported_interfaces:
            at = f'{one.protocol_binding} {one.protocol_version}'
            alone = AgentCard()
            alone.CopyFrom(card)
            del alone.supported_interfaces[:]
            alone.supported_interfaces.append(one)
            client, plain = (
                ClientFactory(config_of(one.protocol_binding, http, streaming)).create(alone) for streaming in (True, False)
            )
            await everything(at, client, plain)
        for one in card.supported_interfaces:
            if one.protocol_binding == 'GRPC':
                await ask('GRPC unknown method', unknown_over_grpc(one.url), lambda answer: answer)
                break
    print(json.dumps({'done': True}), flush=True)


asyncio.run(main())
