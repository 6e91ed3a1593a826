import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isReachableFromPeers } from '../../src/daemon/surfaces.ts';
import { VERSION } from '../../src/foundation/version.ts';
import { operations, streams } from '../../src/operations/index.ts';
import type { Declaration } from '../../src/operations/operation.ts';
import { testAid } from '../support/agents.ts';
import { eventually } from '../support/eventually.ts';
import { type InnerAnswer, InnerDaemon } from '../support/inner-daemon.ts';

const ABSENT = testAid(9);
/** A read with a required query. */
const NEEDS_QUERY = 'hubDescribe';
/** A new agent has no card. */
const LACKING = 'cardGet';
const table: readonly Declaration[] = Object.values(operations);

function errorOf({ body }: InnerAnswer): unknown {
  return Reflect.get(Object(body), 'error');
}

describe('the surfaces of a real daemon', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'svcd-test-'));
  let daemon: InnerDaemon;
  let agent: string;

  before(async () => {
    daemon = await InnerDaemon.start({ dataDir });
    agent = await daemon.newAgent();
  });

  after(async () => {
    await daemon.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('the only agent acts in a tool call without one; the error for several agents lists them', async () => {
    const call = (tool: string, args: object) => daemon.ask('POST', '/mcp/call', { tool, args });
    const contacts = await call('chat_contacts', {});
    assert.deepEqual([contacts.status, errorOf(contacts)], [200, undefined]);
    assert.equal((await call('svc_agent_get', { aid: '' })).status, 200);
    const deleted = await call('svc_agent_delete', {});
    assert.deepEqual([deleted.status, errorOf(deleted)], [422, 'invalid_request']);
    const second = await daemon.newAgent();
    await daemon.call('PUT', '/node/address-book', { aliases: { [second]: 'second' }, favorites: [] });
    for (const [tool, args, member] of [
      ['chat_contacts', {}, 'aid'],
      ['svc_fetch', { remote_aid: ABSENT, path: '/' }, 'local_aid'],
    ] as const) {
      const { body } = await call(tool, args);
      const short = (aid: string) => `${aid.slice(0, 12)}…`;
      const listed = [short(agent), `second (${short(second)})`];
      assert.deepEqual(body, {
        error: 'local_aid_required',
        message: `There are several agents: ${listed.join(', ')}. Choose one with ${member}.`,
        details: {
          agents: [
            { aid: agent, label: null },
            { aid: second, label: 'second' },
          ],
        },
      });
    }
    assert.equal((await call('chat_contacts', { aid: 'second' })).status, 200);
    await daemon.call('DELETE', `/agents/${second}`);
  });

  test('every declared operation is served, and nothing else', async () => {
    const { paths, info } = await daemon.call('GET', '/openapi.json');
    // Two operations may use different parameter names for one path.
    const form = (path: string): string => path.replace(/\{[^}]+\}/g, '{}');
    const served = Object.entries(Object(paths)).flatMap(([path, methods]) =>
      Object.keys(Object(methods)).map((method) => `${method.toUpperCase()} ${form(path)}`),
    );
    const ofTable = table.flatMap(({ method, path }) => (path === undefined ? [] : [`${method} ${form(path)}`]));
    assert.deepEqual(
      ofTable.filter((one) => !served.includes(one)),
      [],
    );
    const byHand = Object.values(streams).map(({ path }) => form(path));
    assert.deepEqual(
      served.filter((one) => !ofTable.includes(one) && !byHand.includes(one.replace(/^\w+ /, ''))),
      [],
    );
    assert.equal(Reflect.get(Object(info), 'version'), VERSION);
    assert.equal((await daemon.ask('GET', '/nothing/of/ours')).status, 404);
  });

  test('every read that needs no remote agent succeeds on its path', async () => {
    const asking = table.filter(
      ({ method, path, permission, errors }) =>
        method === 'GET' && path !== undefined && permission === 'read' && !errors.includes('resolve_failed'),
    );
    assert.ok(asking.length > 20);
    for (const { name, path = '' } of asking) {
      const asked = path.replace('{aid}', agent).replace(/\{\w+\}/g, '1');
      const { status, text } = await daemon.ask('GET', asked);
      assert.ok([200, 400, 404].includes(status), `${name} ${asked}: ${status} ${text}`);
      if (name !== NEEDS_QUERY && !/\{(?!aid)/.test(path))
        assert.equal(status, name === LACKING ? 404 : 200, `${name} ${asked}: ${text}`);
    }
  });

  test('the tools match the table, with the same names in both forms', async () => {
    const names = table.flatMap(({ tool }) => (tool === undefined ? [] : [tool.name]));
    assert.deepEqual(
      daemon.tools.list().map(({ name }) => name),
      names,
    );
    const status = await daemon.call('POST', '/mcp/call', { tool: 'svc_status' });
    assert.equal(status['node_aid'], (await daemon.call('GET', '/status'))['node_aid']);
    assert.equal((await daemon.ask('POST', '/mcp/call', { tool: 'svc_nothing' })).status, 404);
    assert.ok(!names.includes('toolCall'), 'no tool calls other tools');
  });

  test('an unknown agent is not found by any operation', async () => {
    for (const path of ['', '/acl', '/mailbox', '/chat/contacts', '/groups', '/cas', '/events', '/bundle']) {
      const answer = await daemon.ask('GET', `/agents/${ABSENT}${path}`);
      assert.deepEqual([answer.status, errorOf(answer)], [404, 'not_found'], path);
    }
    for (const path of ['/heartbeat', '/publish', '/mailbox/poll'])
      assert.equal((await daemon.ask('POST', `/agents/${ABSENT}${path}`, {})).status, 404, path);
  });

  test('operations that count as a heartbeat reset the silence of their agent', async () => {
    const silence = async (): Promise<number> =>
      Number((await daemon.call('GET', `/agents/${agent}`))['heartbeat_seconds_ago']);
    const before = await eventually('a second of silence', async () => (await silence()) || undefined);
    await daemon.call('GET', `/agents/${agent}/mailbox`);
    assert.ok((await silence()) >= before, 'a read does not count');
    await eventually('the heartbeat', async () => {
      await daemon.call('POST', `/agents/${agent}/mailbox/poll`);
      return (await silence()) < before;
    });
  });

  test('operators get metrics of the node and its API', async () => {
    const { text, status } = await daemon.ask('GET', '/metrics');
    assert.equal(status, 200);
    for (const line of ['svcd_agents 1', 'svcd_dht_ready 0', 'svcd_quic_connections 0'])
      assert.ok(text.includes(`\n${line}\n`), line);
    assert.match(text, /http_requests?_/);
  });

  test('a token is required from the moment it is set', async () => {
    const body = { body_base64: 'eA==', aid: agent };
    const put = () => daemon.ask('POST', '/mcp/call', { tool: 'group_object_put', args: body });
    const before = errorOf(await put());
    await daemon.call('PATCH', '/config', { api_token: 'correct-horse-battery' });
    assert.notEqual(before, 'unauthorized');
    assert.equal(errorOf(await put()), 'unauthorized');
    await daemon.call('PATCH', '/config', { api_token: '' });
    assert.equal(errorOf(await put()), before);
  });
});

const FOUND = { ready: true, peers: 3, clients: 0, natType: 1, observed: [], inRoutingTables: true };

test('reachability is reported only if there are peers to confirm it', () => {
  assert.equal(isReachableFromPeers(FOUND), true);
  assert.equal(isReachableFromPeers({ ...FOUND, natType: 3, inRoutingTables: false }), false);
  assert.equal(isReachableFromPeers({ ...FOUND, natType: 0, inRoutingTables: false }), undefined);
  assert.equal(isReachableFromPeers({ ...FOUND, peers: 0 }), undefined);
});
