import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { parseAid } from '../../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { HandlerWorld } from '../../support/handler-world.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';

interface Generated {
  readonly aid: string;
  readonly master_private_key_hex: string;
  readonly operational_private_key_hex: string;
  readonly delegation_proof_hex: string;
}

describe('operations on agents', () => {
  let world: HandlerWorld;

  beforeEach(() => {
    world = new HandlerWorld();
  });
  afterEach(() => world.store.close());

  async function register(service?: string): Promise<Generated> {
    const identity = await world.call<Generated>('identityGenerate');
    const { operational_private_key_hex, delegation_proof_hex } = identity;
    const body = { operational_private_key_hex, delegation_proof_hex, service_tcp: service };
    const answer = await world.call('agentRegister', { body: JSON.parse(JSON.stringify(body)) });
    assert.deepEqual(answer, { aid: identity.aid, status: 'registered' });
    return identity;
  }

  test('a generated identity registers, and two identities differ', async () => {
    const [a, b] = [await register(), await register()];
    assert.notEqual(a.aid, b.aid);
    assert.match(a.master_private_key_hex, /^[0-9a-f]{64}$/);
    assert.notEqual(a.master_private_key_hex, a.operational_private_key_hex);
  });

  test('an agent may be registered without publication, until it is registered again', async () => {
    const { aid, ...keys } = await world.call<Generated>('identityGenerate');
    const { operational_private_key_hex, delegation_proof_hex } = keys;
    const body = { operational_private_key_hex, delegation_proof_hex };
    await world.call('agentRegister', { body: { ...body, publish: false } });
    assert.equal(world.agents.isHeld(parseAid(aid)), true);
    await world.call('agentRegister', { body });
    assert.equal(world.agents.isHeld(parseAid(aid)), false);
  });

  test('a complete generated identity is refused, and the error names the members to remove', async () => {
    const body = await world.call<Generated>('identityGenerate');
    await assert.rejects(world.call('agentRegister', { body }), {
      code: 'invalid_request',
      message:
        'Invalid body: /aid, /master_private_key_hex, /warning are unknown: remove them (never send a master key: keep it offline).',
      details: {
        in: 'body',
        path: '/aid',
        problem: 'is unknown',
        unknown: ['/aid', '/master_private_key_hex', '/warning'],
      },
    });
  });

  test('an agent is not published after the end of its delegation, which also ends its record', async () => {
    const start = world.clock.now() / 1000;
    const { aid, credentials } = delegateAnew(KeyPair.generate(), start, start + 600);
    const { operationalPrivateKeyHex: operational_private_key_hex, delegationProofHex: delegation_proof_hex } =
      credentials;
    await world.call('agentRegister', { body: { operational_private_key_hex, delegation_proof_hex } });
    await world.call('agentPublish', { params: { aid } });
    const state = async () => {
      const one = await world.call<Record<string, unknown>>('agentGet', { params: { aid } });
      const { agents } = await world.call<{ agents: Record<string, unknown>[] }>('agentsList', {});
      const listed = agents.find((agent) => agent['aid'] === aid) ?? {};
      return [one, listed].map(({ published, record_expires_at }) => [published, record_expires_at]);
    };
    const end = '2026-01-01T00:10:00.000Z';
    assert.deepEqual(await state(), [
      [true, end],
      [true, end],
    ]);
    world.clock.advance(600_000);
    assert.deepEqual(await state(), [
      [false, end],
      [false, end],
    ]);
  });

  test('an agent is pending until its first publication', async () => {
    const { aid } = await register('127.0.0.1:9000');
    const before = await world.call('agentGet', { params: { aid } });
    assert.deepEqual(before, {
      aid,
      scheme: 'native',
      status: 'pending',
      service_tcp: '127.0.0.1:9000',
      service_tcp_ok: true,
      heartbeat_seconds_ago: 0,
      seq: 0,
      published: false,
      last_publish_at: null,
      next_republish_estimate: null,
      record_expires_at: null,
      replicas: 0,
      services: [],
      acl: { default: 'public', allow: [], deny: [] },
      delegation: { issued_at: '2026-01-01T00:00:00.000Z', expires_at: null },
    });
    assert.deepEqual(await world.call('agentPublish', { params: { aid } }), { ok: true, seq: 1, replicas: 8 });
    await world.call('serviceRegister', { params: { aid }, body: { services: ['b.c', 'a.b'], name: 'Shop' } });
    await world.call('profileSet', { params: { aid }, body: { brief: 'I sell', skills: ['sell'] } });
    const after = await world.call<Record<string, unknown>>('agentGet', { params: { aid } });
    const { name, status, seq, published, replicas, services, profile, record_expires_at } = after;
    assert.deepEqual(
      { name, status, seq, published, replicas, services, profile, record_expires_at },
      {
        name: 'Shop',
        status: 'registered',
        seq: 1,
        published: true,
        replicas: 8,
        services: ['a.b', 'b.c'],
        profile: { brief: 'I sell', skills: ['sell'] },
        record_expires_at: '2026-01-01T01:00:00.000Z',
      },
    );
  });

  test('lists agents in pages, with their pending items', async () => {
    const aids = [(await register()).aid, (await register()).aid, (await register()).aid];
    world.pending = { [aids[1] ?? '']: { mailbox: 2, chat_invites: 0, chat_unread: 0 } };
    const first = await world.call<{ agents: { aid: string }[]; next_cursor: string; pending: unknown }>('agentsList', {
      query: { limit: '2' },
    });
    assert.deepEqual(
      first.agents.map((agent) => agent.aid),
      aids.slice(0, 2),
    );
    assert.deepEqual(first.pending, world.pending);
    const second = await world.call<{ agents: { aid: string }[] }>('agentsList', {
      query: { cursor: first.next_cursor },
    });
    assert.deepEqual(second.agents.length, 1);
    assert.ok(!('next_cursor' in second));
    const one = await world.call<{ pending?: unknown }>('agentGet', { params: { aid: aids[1] } });
    assert.deepEqual(one.pending, world.pending);
    assert.ok(!('pending' in (await world.call<object>('agentGet', { params: { aid: aids[0] } }))));
  });

  test('credentials are returned to local callers only', async () => {
    const { aid, operational_private_key_hex, delegation_proof_hex } = await register();
    assert.deepEqual(await world.call('agentExport', { params: { aid } }), {
      aid,
      operational_private_key_hex,
      delegation_proof_hex,
      service_tcp: '',
    });
    for (const origin of ['remote', 'remote_admin'] as const)
      await assert.rejects(world.call('agentExport', { params: { aid } }, origin), { code: 'local_only' });
  });

  test('the key with which a service verifies callers belongs to its agent, and is returned to local callers only', async () => {
    const [one, other] = [await register(), await register()];
    const keyOf = async (aid: string) => {
      const answer = await world.call<{ aid: string; caller_key_hex: string }>('agentCallerKey', { params: { aid } });
      assert.equal(answer.aid, aid);
      return answer.caller_key_hex;
    };
    assert.match(await keyOf(one.aid), /^[0-9a-f]{64}$/);
    assert.equal(await keyOf(one.aid), await keyOf(one.aid));
    assert.notEqual(await keyOf(one.aid), await keyOf(other.aid));
    for (const origin of ['remote', 'remote_admin'] as const)
      await assert.rejects(world.call('agentCallerKey', { params: { aid: one.aid } }, origin), { code: 'local_only' });
  });

  test('remote binding needs the key', async () => {
    const { aid, operational_private_key_hex } = await register();
    const body = { service_tcp: 'http://127.0.0.1:8080' };
    await assert.rejects(world.call('agentPatch', { params: { aid }, body }, 'remote'), {
      code: 'operational_key_mismatch',
      status: 403,
    });
    const patched = await world.call<{ service_tcp: string }>(
      'agentPatch',
      { params: { aid }, body: { ...body, operational_private_key_hex } },
      'remote_admin',
    );
    assert.equal(patched.service_tcp, 'http://127.0.0.1:8080');
    await assert.rejects(world.call('agentPatch', { params: { aid }, body: { service_tcp: 'localhost:2121' } }), {
      code: 'bad_service_address',
    });
    await assert.rejects(world.call('agentPatch', { params: { aid }, body: {} }), { code: 'invalid_request' });
  });

  test('a key without a newer delegation is a conflict', async () => {
    const old = newIdentity();
    const bodyOf = ({ credentials }: typeof old) => ({
      operational_private_key_hex: `0x${credentials.operationalPrivateKeyHex}`,
      delegation_proof_hex: credentials.delegationProofHex,
    });
    await world.call('agentRegister', { body: bodyOf(old) });
    const other = delegateAnew(old.master, old.delegation.issuedAt);
    await assert.rejects(world.call('agentRegister', { body: bodyOf(other) }), {
      code: 'operational_key_mismatch',
      status: 409,
    });
  });

  test('a probe reports the service and the network separately', async () => {
    const { aid } = await register();
    assert.deepEqual(await world.call('agentProbe', { params: { aid } }), {
      service_tcp_ok: null,
      dht_ok: false,
      published_endpoints: [],
      published_nat_type: null,
      published_seq: null,
      reachable_from_peers: true,
    });
    await world.call('agentPatch', { params: { aid }, body: { service_tcp: '127.0.0.1:9000' } });
    await world.call('agentPublish', { params: { aid } });
    assert.deepEqual(await world.call('agentProbe', { params: { aid } }), {
      service_tcp_ok: true,
      tcp_ms: 1.5,
      dht_ok: true,
      published_endpoints: ['quic://192.0.2.1:4122'],
      published_nat_type: 1,
      published_seq: 1,
      reachable_from_peers: true,
    });
    world.tcp = { ok: false, ms: 2, error: 'ECONNREFUSED' };
    const down = await world.call<Record<string, unknown>>('agentProbe', { params: { aid } });
    assert.deepEqual([down['service_tcp_ok'], down['tcp_error'], 'tcp_ms' in down], [false, 'ECONNREFUSED', false]);
  });

  test('a deleted agent is removed with all its data', async () => {
    const { aid } = await register();
    await world.call('serviceRegister', { params: { aid }, body: { services: ['a.b'] } });
    assert.deepEqual(await world.call('agentDelete', { params: { aid } }), { ok: true });
    for (const name of ['agentGet', 'agentDelete', 'agentProbe', 'agentHeartbeat', 'agentPublish', 'agentExport'])
      await assert.rejects(world.call(name, { params: { aid } }), { code: 'not_found' }, name);
    const left = world.store.one('SELECT (SELECT count(*) FROM publishers) + (SELECT count(*) FROM publications) AS n');
    assert.equal(left?.['n'], 0);
  });

  test('heartbeats have a time', async () => {
    const { aid } = await register();
    assert.deepEqual(await world.call('agentHeartbeat', { params: { aid } }), {
      status: 'ok',
      at: '2026-01-01T00:00:00.000Z',
    });
  });

  test("the node's own identity is not an agent", async () => {
    const aid = world.nodeAid;
    for (const name of ['agentGet', 'agentExport', 'agentCallerKey', 'agentDelete', 'agentPublish'])
      await assert.rejects(world.call(name, { params: { aid } }), { code: 'not_found' }, name);
  });
});
