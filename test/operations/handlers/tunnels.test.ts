import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClosedTunnel, TunnelInfo } from '../../../src/capabilities/tunnels/types.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { type TunnelHandlerDependencies, tunnelHandlers } from '../../../src/operations/handlers/tunnels.ts';
import { tunnelOperations } from '../../../src/operations/tunnels.ts';
import { testAid } from '../../support/agents.ts';
import { operationRunner } from '../../support/run-operation.ts';

const [ONLY, NAMED, REMOTE] = [testAid(1), testAid(2), testAid(3)];
const PARAMS = { params: { aid: REMOTE.toUpperCase() } };
const INFO: TunnelInfo = {
  id: 'one',
  localAid: ONLY,
  remoteAid: REMOTE,
  listen: '127.0.0.1:4000',
  path: 'direct',
  remoteAddr: '192.0.2.1:4122',
  rttMs: 12.5,
  openedAt: Date.UTC(2026, 1, 3),
  lastActivityAt: Date.UTC(2026, 1, 4),
  activeConns: 2,
  bytesUp: 10,
  bytesDown: 20,
  idleTimeoutSec: 360,
  noPath: null,
  lastError: null,
};
const CLOSED: ClosedTunnel = {
  ...INFO,
  lastError: { code: 'access_denied', message: 'No.', at: INFO.openedAt },
  closedAt: INFO.lastActivityAt,
  reason: 'idle',
};
const SHOWN = {
  id: 'one',
  local_aid: ONLY,
  remote_aid: REMOTE,
  listen: '127.0.0.1:4000',
  is_relayed: false,
  path: 'direct',
  remote_addr: '192.0.2.1:4122',
  rtt_ms: 12.5,
  opened_at: '2026-02-03T00:00:00.000Z',
  last_activity_at: '2026-02-04T00:00:00.000Z',
  active_conns: 2,
  bytes_up: 10,
  bytes_down: 20,
  idle_timeout_sec: 360,
};

type Tunnels = TunnelHandlerDependencies['tunnels'];

/** Tunnels that record their calls. Only the tunnel `one` exists. */
function setUp(more: Partial<Tunnels> = {}) {
  const asked: unknown[] = [];
  const known = (id: string): void => {
    if (id !== INFO.id) throw new SvcError('not_found');
  };
  const tunnels: Tunnels = {
    connect: async (request) => (asked.push(request), '127.0.0.1:5000'),
    open: async (request) => (asked.push(request), { tunnel: INFO, reused: false }),
    list: () => [INFO, { ...INFO, path: 'turn' }, { ...INFO, path: 'relay' }, { ...INFO, path: 'punched' }],
    closed: () => [CLOSED],
    get: (id) => (known(id), INFO),
    close: async (id) => (known(id), void asked.push(['close', id])),
    reset: (id) => (known(id), void asked.push(['reset', id])),
    ...more,
  };
  const inbound: TunnelHandlerDependencies['inbound'] = {
    session: (port) => (port === 4001 ? { callerAid: REMOTE, localAid: ONLY, since: INFO.openedAt } : null),
  };
  const localAid = (named: Aid | undefined): Aid => {
    if (named === undefined) return ONLY;
    if (named !== NAMED) throw new SvcError('not_found');
    return named;
  };
  return { asked, run: operationRunner(tunnelOperations, tunnelHandlers({ tunnels, inbound, localAid })) };
}

test('tunnels are listed in pages, oldest first, with recently closed ones on the first page', async () => {
  const list = [3, 1, 2].map((n) => ({ ...INFO, id: `t${n}`, openedAt: INFO.openedAt + n }));
  const { run } = setUp({ list: () => list });
  type Answer = { tunnels: { id: string }[]; closed: unknown[]; next_cursor?: string };
  const first = (await run('tunnelList', { query: { limit: 2 } })) as Answer;
  const second = (await run('tunnelList', { query: { limit: 2, cursor: first.next_cursor } })) as Answer;
  assert.deepEqual(
    [first, second].map(({ tunnels, closed }) => [tunnels.map(({ id }) => id), closed.length]),
    [
      [['t1', 't2'], 1],
      [['t3'], 0],
    ],
  );
  assert.equal(second.next_cursor, undefined);
});

test('a connection is opened as the named agent, or the only one', async () => {
  const { run, asked } = setUp();
  assert.deepEqual(await run('connect', PARAMS), { tunnel: '127.0.0.1:5000' });
  const body = { local_aid: NAMED.toUpperCase(), access_token: 'open sesame', disable_relay: true };
  await run('connect', { ...PARAMS, body });
  assert.deepEqual(asked, [
    { localAid: ONLY, remoteAid: REMOTE, accessToken: undefined, disableRelay: false },
    { localAid: NAMED, remoteAid: REMOTE, accessToken: 'open sesame', disableRelay: true },
  ]);
  await assert.rejects(run('connect', { ...PARAMS, body: { local_aid: REMOTE } }), { code: 'not_found' });
  await assert.rejects(run('connect', { ...PARAMS, body: { local_aid: 'me' } }), { code: 'bad_aid' });
  await assert.rejects(run('connect', { params: { aid: 'them' } }), { code: 'bad_aid' });
});

test('a tunnel is opened on a free port and with the default timeout, unless both are given', async () => {
  const { run, asked } = setUp();
  const statuses: number[] = [];
  const setStatus = (status: number): void => void statuses.push(status);
  assert.deepEqual(await run('tunnelOpen', PARAMS, { setStatus }), SHOWN);
  const body = { local_aid: NAMED, local_port: 4000, idle_timeout_sec: -1, disable_relay: true, access_token: 'x' };
  await run('tunnelOpen', { ...PARAMS, body }, { setStatus });
  assert.deepEqual(asked, [
    {
      localAid: ONLY,
      remoteAid: REMOTE,
      accessToken: undefined,
      localPort: 0,
      idleTimeoutSec: undefined,
      disableRelay: false,
    },
    {
      localAid: NAMED,
      remoteAid: REMOTE,
      accessToken: 'x',
      localPort: 4000,
      idleTimeoutSec: -1,
      disableRelay: true,
    },
  ]);
  assert.deepEqual(statuses, [], '201 comes from the table');
});

test('an existing tunnel is returned with status 200', async () => {
  const { run } = setUp({ open: async () => ({ tunnel: INFO, reused: true }) });
  const statuses: number[] = [];
  await run('tunnelOpen', PARAMS, { setStatus: (status) => void statuses.push(status) });
  assert.deepEqual(statuses, [200]);
});

test('invalid ports and timeouts are refused', async () => {
  const { run, asked } = setUp();
  for (const body of [
    { local_port: -1 },
    { local_port: 65_536 },
    { local_port: '4000' },
    { idle_timeout_sec: -2 },
    { idle_timeout_sec: 1e9 },
    { access_token: 'x'.repeat(10_000) },
    { disable_relay: 1 },
    { extra: true },
  ])
    await assert.rejects(run('tunnelOpen', { ...PARAMS, body }), { code: 'invalid_request' }, JSON.stringify(body));
  for (const port of ['0', '65536', 'x'])
    await assert.rejects(run('sessionGet', { params: { port } }), { code: 'invalid_request' });
  assert.deepEqual(asked, []);
});

test('tunnels are listed and shown, and tunnels over a third node are marked as relayed', async () => {
  const { run } = setUp();
  const shown = ['direct', 'turn', 'relay', 'punched'].map((path) => ({
    ...SHOWN,
    path,
    is_relayed: path === 'turn' || path === 'relay',
  }));
  const closed = {
    id: 'one',
    local_aid: ONLY,
    remote_aid: REMOTE,
    listen: '127.0.0.1:4000',
    opened_at: '2026-02-03T00:00:00.000Z',
    closed_at: '2026-02-04T00:00:00.000Z',
    reason: 'idle',
    bytes_up: 10,
    bytes_down: 20,
    idle_timeout_sec: 360,
    last_error: { code: 'access_denied', message: 'No.', at: '2026-02-03T00:00:00.000Z' },
  };
  assert.deepEqual(await run('tunnelList'), { tunnels: shown, closed: [closed] });
  assert.deepEqual(await run('tunnelGet', { params: { id: 'one' } }), SHOWN);
});

test('a tunnel is closed and reset by its id', async () => {
  const { run, asked } = setUp();
  assert.deepEqual(await run('tunnelReset', { params: { id: 'one' } }), { ok: true });
  assert.deepEqual(await run('tunnelClose', { params: { id: 'one' } }), { ok: true });
  assert.deepEqual(asked, [
    ['reset', 'one'],
    ['close', 'one'],
  ]);
  for (const name of ['tunnelGet', 'tunnelClose', 'tunnelReset'] as const) {
    await assert.rejects(run(name, { params: { id: 'two' } }), { code: 'not_found' }, name);
    await assert.rejects(run(name, { params: { id: 'x'.repeat(65) } }), { code: 'invalid_request' }, name);
  }
});

test('a service finds its caller by the source port', async () => {
  const { run } = setUp();
  assert.deepEqual(await run('sessionGet', { params: { port: '4001' } }), {
    caller_aid: REMOTE,
    local_aid: ONLY,
    since: SHOWN.opened_at,
  });
  await assert.rejects(run('sessionGet', { params: { port: '4002' } }), { code: 'not_found' });
});
