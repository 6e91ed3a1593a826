import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { SvcError } from '../../src/foundation/errors.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { declare } from '../../src/operations/declare.ts';
import { toolHandlers } from '../../src/operations/handlers/tools.ts';
import { operations } from '../../src/operations/index.ts';
import { bind, type CallContext } from '../../src/operations/operation.ts';
import { AidParams, AidText, AnyObject, closed } from '../../src/operations/schemas.ts';
import { ToolTable } from '../../src/operations/tool-call.ts';
import { toolOperations } from '../../src/operations/tools.ts';
import { newIdentity } from '../support/identities.ts';
import { bindAll } from '../surfaces/mcp/world.ts';
import { JSON_HEADERS, startWorld } from '../surfaces/rest/support.ts';

const aid = newIdentity().aid;
const other = newIdentity().aid;
const signal = new AbortController().signal;
const LOCAL: CallContext = { origin: 'local', signal, requireToken: () => {}, setStatus: () => {} };

const COMMON = { tag: 'Test' };
const testOperations = declare(COMMON, {
  greet: {
    summary: 'Greets.',
    route: 'POST /greet/{aid}',
    params: AidParams,
    query: closed({ times: Type.Optional(Type.Integer({ minimum: 1 })), hidden: Type.Optional(Type.String()) }),
    body: closed({ aid: Type.Optional(AidText), text: Type.String(), meta: Type.Optional(AnyObject) }),
    output: AnyObject,
    status: 201,
    tool: {
      name: 'svc_greet',
      description: 'Greets.',
      rename: { remote_aid: 'aid', from: 'body_aid' },
      omit: ['hidden'],
      destructive: true,
    },
  },
  here: {
    summary: 'Only here.',
    route: 'GET',
    output: AnyObject,
    permission: 'local_only',
    tool: { name: 'svc_here', description: 'Only here.' },
  },
  fails: {
    summary: 'Fails.',
    route: 'GET',
    output: AnyObject,
    tool: { name: 'svc_fails', description: 'Fails.' },
  },
  plain: {
    summary: 'No tool.',
    route: 'GET /plain',
    output: AnyObject,
  },
});

const bound = bind(testOperations, {
  greet: (input, context) => {
    context.setStatus(202);
    return { ...input };
  },
  here: () => ({ key: 1 }),
  fails: () => {
    throw new SvcError('not_friends', { details: { peer: other } });
  },
  plain: () => ({}),
});

function table(pending: object = {}): ToolTable {
  return new ToolTable({ operations: bound, pending: () => ({ ...pending }) });
}

async function problemOf(args: object): Promise<unknown[]> {
  try {
    await table().call('svc_greet', { ...args }, LOCAL);
  } catch (error) {
    if (error instanceof SvcError) return [error.code, error.details?.['path']];
    throw error;
  }
  throw new Error('the arguments were accepted');
}

test('the list shows the parameters of a tool, under its own names', () => {
  const views = table().list();
  assert.deepEqual(
    views.map(({ name }) => name),
    ['svc_greet', 'svc_here', 'svc_fails'],
  );
  const [view] = views;
  assert.deepEqual(Object.keys(view?.inputSchema.properties ?? {}), ['remote_aid', 'times', 'from', 'text', 'meta']);
  assert.deepEqual(view?.inputSchema.required, ['remote_aid', 'text']);
  assert.deepEqual([view?.readOnly, view?.destructive, view?.idempotent], [false, true, false]);
});

test('arguments are mapped to their places, checked and in canonical form', async () => {
  const args = { remote_aid: aid.toUpperCase(), from: other, times: 2, text: 'hi', meta: { a: 1 } };
  const output = await table().call('svc_greet', args, LOCAL);
  assert.deepEqual(output, { aid, body_aid: other, times: 2, text: 'hi', meta: { a: 1 } });
});

test('a refused argument has the name that the tool uses', async () => {
  assert.deepEqual(await problemOf({ text: 'hi' }), ['invalid_request', '/remote_aid']);
  assert.deepEqual(await problemOf({ remote_aid: 'aid1x', text: 'hi' }), ['bad_aid', '/remote_aid']);
  assert.deepEqual(await problemOf({ remote_aid: aid, text: 'hi', from: 7 }), ['invalid_request', '/from']);
  assert.deepEqual(await problemOf({ remote_aid: aid, text: 'hi', times: 0 }), ['invalid_request', '/times']);
  for (const key of ['hidden', 'aid', 'body_aid', '__proto__x'])
    assert.deepEqual(await problemOf({ remote_aid: aid, text: 'hi', [key]: 'x' }), ['invalid_request', `/${key}`]);
});

test('pending items are added to a result, if there are any', async () => {
  const pending = { [aid]: { mailbox: 1 } };
  assert.deepEqual(await table(pending).call('svc_here', {}, LOCAL), { key: 1, pending });
  assert.deepEqual(await table().call('svc_here', {}, LOCAL), { key: 1 });
});

test('every tool of the real table can be listed', () => {
  const all = Object.values(operations).map((declaration) => ({ declaration, run: async () => ({}) }));
  const listed = new ToolTable({ operations: all, pending: () => ({}) }).list();
  assert.ok(listed.length >= 20);
  for (const { inputSchema } of listed) JSON.stringify(inputSchema);
});

test('over HTTP: the result unchanged, an error of the tool as 422 with its code', async (t) => {
  const world = await startWorld(t, { operations: bind(toolOperations, toolHandlers({ tools: table() })) });
  const call = (body: unknown) =>
    world.request('POST', '/mcp/call', { headers: JSON_HEADERS, body: JSON.stringify(body) });
  const good = await call({ tool: 'svc_greet', args: { remote_aid: aid, text: 'hi' } });
  assert.deepEqual([good.status, good.json], [200, { aid, text: 'hi' }]);
  const failed = await call({ tool: 'svc_fails' });
  assert.equal(failed.status, 422);
  const { error, message, details } = failed.json as { error: string; message: string; details: unknown };
  assert.deepEqual([error, details], ['not_friends', { peer: other }]);
  assert.match(message, /request/);
  const refused = await call({ tool: 'svc_greet', args: { text: 'hi' } });
  assert.deepEqual([refused.status, (refused.json as { error: string }).error], [422, 'invalid_request']);
  assert.equal((await call({ tool: 'svc_nothing', args: {} })).status, 404);
  assert.equal((await call({ args: {} })).status, 400);
  assert.equal((await call({ tool: 'svc_greet', args: [] })).status, 400);
});

test('operations for local programs are refused to remote callers, also through a tool', async () => {
  for (const origin of ['remote', 'remote_admin'] as const)
    await assert.rejects(table().call('svc_here', {}, { ...LOCAL, origin }), { code: 'local_only' });
});

test('no tool accepts a number or a boolean as text', async () => {
  const table = new ToolTable({ operations: bindAll(), pending: () => ({}) });
  let tried = 0;
  for (const { name, inputSchema } of table.list())
    for (const [key, schema] of Object.entries(inputSchema.properties)) {
      const type: unknown = Reflect.get(schema, 'type');
      if (type !== 'integer' && type !== 'number' && type !== 'boolean') continue;
      tried++;
      const args = { [key]: type === 'boolean' ? 'true' : '1' };
      // Alone: a wrong type is reported before missing members.
      await assert.rejects(
        table.call(name, args, LOCAL),
        (error: unknown) => error instanceof SvcError && error.code === 'invalid_request',
        `${name} ${key}`,
      );
    }
  assert.ok(tried > 10);
  const poll = (after_seq: unknown): Promise<unknown> => table.call('svc_events_poll', { aid, after_seq }, LOCAL);
  await assert.rejects(poll('1'), { message: /\/after_seq must be integer/ });
  await poll(1);
});

test('the only local agent acts if a tool call omits it; a tool with another agent in "aid" requires it', async () => {
  const table = (onlyAgent: () => Aid) =>
    new ToolTable({
      operations: Object.values(operations).map((declaration) => ({ declaration, run: async (input) => input })),
      pending: () => ({}),
      onlyAgent,
    });
  const one = table(() => aid);
  const open = one.list().filter(({ inputSchema }) => inputSchema.required?.includes('aid') === true);
  const remote = ['svc_resolve', 'svc_resolve_records', 'svc_card', 'svc_agent_delete'];
  assert.ok(open.length > 35);
  for (const { name } of open) {
    const attempt = one.call(name, { aid: null }, LOCAL).then(
      (input) => Reflect.get(Object(input), 'aid'),
      (error: SvcError) => `${error.code} ${error.message}`,
    );
    // Other arguments may be missing.
    if (remote.includes(name)) assert.match(String(await attempt), /\/aid /, name);
    else assert.doesNotMatch(String(await attempt), /\/aid |bad_aid/, name);
  }
  for (const args of [{}, { aid: '' }, { aid: null }])
    assert.deepEqual(await one.call('svc_mailbox_poll', args, LOCAL), { aid }, JSON.stringify(args));
  assert.deepEqual(await one.call('svc_mailbox_poll', { aid: other }, LOCAL), { aid: other });
  const several = table(() => {
    throw new SvcError('local_aid_required');
  });
  await assert.rejects(several.call('chat_contacts', {}, LOCAL), { code: 'local_aid_required' });
  assert.deepEqual(await several.call('chat_contacts', { aid }, LOCAL), { aid });
});

test('an argument that is no AID is told with the address book and its tool', async () => {
  await assert.rejects(table().call('svc_greet', { remote_aid: 'bobb', text: 'hi' }, LOCAL), {
    code: 'bad_aid',
    message:
      '/remote_aid is neither an AID nor a label in the address book (svc_address_book). Check it for typing errors.',
  });
});
