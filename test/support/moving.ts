/** An agent with data of every kind, for moves. */
import { once } from 'node:events';
import { createConnection } from 'node:net';
import type { TestDaemon } from './daemon.ts';
import { eventually } from './eventually.ts';
import { quietPort } from './programs.ts';

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** A published agent. */
export async function published(daemon: TestDaemon, service?: string): Promise<string> {
  const aid = await daemon.newAgent(service);
  await daemon.call('POST', `/agents/${aid}/publish`);
  return aid;
}

export function tool<T = Record<string, unknown>>(daemon: TestDaemon, name: string, args: object): Promise<T> {
  return daemon.call<T>('POST', '/mcp/call', { tool: name, args });
}

export async function chatTexts(daemon: TestDaemon, aid: string, peer: string): Promise<string[]> {
  const { entries } = await daemon.call<{ entries: { text?: string }[] }>('GET', `/agents/${aid}/chat/peers/${peer}`);
  return entries.map(({ text }) => text ?? '');
}

export async function groupTexts(daemon: TestDaemon, aid: string, group: string): Promise<string[]> {
  const page = await tool<{ entries: { body?: string }[] }>(daemon, 'group_read', {
    aid,
    group_id: group,
    kind: 'msg',
  });
  return page.entries.map(({ body }) => Buffer.from(body ?? '', 'base64').toString());
}

export async function noteTexts(daemon: TestDaemon, aid: string): Promise<string[]> {
  const { messages } = await daemon.call<{ messages: { body_base64: string }[] }>('GET', `/agents/${aid}/mailbox`);
  return messages.map(({ body_base64 }) => Buffer.from(body_base64, 'base64').toString());
}

export function sendNote(daemon: TestDaemon, from: string, to: string, text: string): Promise<unknown> {
  const body = { recipient: to, msg_type: 3, body_base64: base64(text) };
  return daemon.call('POST', `/agents/${from}/mailbox/send`, body);
}

/** The status of a call, and the request that the service received. */
export async function callService(
  daemon: TestDaemon,
  remote: string,
  request: object,
): Promise<{ status: number; asked?: string }> {
  const answer = await daemon.request('POST', `/fetch/${remote}`, { path: '/hello', ...request });
  const { body } = answer.body as { body?: string };
  return { status: answer.status, ...(body === undefined ? {} : { asked: Buffer.from(body, 'base64').toString() }) };
}

/** The response to an HTTP request through a local port. Empty if nothing listens there. */
export async function throughPort(port: number): Promise<string> {
  const socket = createConnection(port, '127.0.0.1');
  const chunks: string[] = [];
  socket.setEncoding('utf8').on('data', (text: string) => chunks.push(text));
  socket.on('error', () => {});
  socket.end('GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await once(socket, 'close');
  return chunks.join('');
}

export interface FullAgent {
  readonly aid: string;
  /** A friend, whose service is the target of the agent's tunnel. */
  readonly friend: string;
  readonly group: string;
  readonly tunnelPort: number;
  readonly seq: number;
}

export const SECRET = 'open sesame 7';

/** The services of the agent and of its friend: `host:port`. */
export interface Services {
  readonly own: string;
  readonly friend: string;
}

/**
 * Creates on `home` an agent with a service, a profile, an access list, a tunnel, a friend, a group and a pending note.
 */
export async function fullAgent(home: TestDaemon, away: TestDaemon, services: Services): Promise<FullAgent> {
  const [aid, friend] = [await published(home, services.own), await published(away, services.friend)];
  await home.call('POST', `/agents/${aid}/services`, { services: ['test.moving'], name: 'Mover', brief: 'It moves' });
  await home.call('POST', `/agents/${aid}/profile`, { name: 'The mover', skills: ['moving'] });
  await home.call('POST', `/agents/${aid}/records`, { rec_type: 7, payload_base64: base64('custom'), ttl: 3600 });
  await home.call('PATCH', `/agents/${aid}/acl`, { default: 'deny' });
  await home.call('POST', `/agents/${aid}/acl/allow`, { secret: SECRET, label: 'clients' });
  const tunnelPort = await quietPort();
  await home.call('POST', `/tunnel/${friend}`, { local_aid: aid, local_port: tunnelPort, idle_timeout_sec: -1 });

  await home.call('POST', `/agents/${aid}/chat/request`, { peer: friend, note: 'hi' });
  await eventually('the request', async () => {
    const answer = await away.request('POST', `/agents/${friend}/chat/accept`, { peer: aid });
    return answer.status === 200;
  });
  await eventually('friends', async () => {
    const { friends } = await home.call<{ friends: unknown[] }>('GET', `/agents/${aid}/chat/contacts`);
    return friends.length === 1;
  });
  await home.call('POST', `/agents/${aid}/chat/send`, { peer: friend, text: 'one' });
  await away.call('POST', `/agents/${friend}/chat/send`, { peer: aid, text: 'two' });
  await eventually('both texts', async () => (await chatTexts(home, aid, friend)).length === 2);

  const group = await tool<{ group_id: string; link: string }>(home, 'group_create', { aid, title: 'Moving' });
  await tool(home, 'group_append', { aid, group_id: group.group_id, body: base64('first') });
  await tool(away, 'group_join', { aid: friend, link: group.link });
  await eventually('the group', async () =>
    (await groupTexts(away, friend, group.group_id).catch((): string[] => [])).includes('first'),
  );
  await tool(away, 'group_append', { aid: friend, group_id: group.group_id, body: base64('second') });
  await eventually('the second entry', async () => (await groupTexts(home, aid, group.group_id)).length === 2);
  await sendNote(away, friend, aid, 'a note');
  await eventually('the note', async () => (await noteTexts(home, aid)).length === 1);
  const { seq } = await home.call<{ seq: number }>('GET', `/agents/${aid}`);
  return { aid, friend, group: group.group_id, tunnelPort, seq };
}
