import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { DidDocument } from '../../../src/capabilities/directory/did-document.ts';
import { decodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { verifyDelegationSignature } from '../../../src/foundation/identity/delegation-verifier.ts';
import { encodeMultikey } from '../../../src/foundation/identity/multikey.ts';
import { decodeRecord } from '../../../src/foundation/records/record.ts';
import { HandlerWorld } from '../../support/handler-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { verifyRecord } from '../../support/records.ts';

interface Entries {
  readonly entries: readonly { readonly aid: string; readonly service: string }[];
}
interface Records {
  readonly records: readonly { readonly rec_type: number; readonly record_base64: string; readonly profile?: object }[];
}

describe('operations on the directory', () => {
  let world: HandlerWorld;

  beforeEach(() => {
    world = new HandlerWorld();
  });
  afterEach(() => world.store.close());

  async function add(): Promise<string> {
    const { aid, credentials } = newIdentity();
    await world.agents.register(credentials);
    return aid;
  }

  test('another node resolves a published agent', async () => {
    const aid = await add();
    await assert.rejects(world.call('resolve', { params: { aid } }), { code: 'resolve_failed', status: 404 });
    await world.call('agentPublish', { params: { aid } });
    assert.deepEqual(await world.call('resolve', { params: { aid } }), {
      aid,
      address: aid,
      endpoints: ['quic://192.0.2.1:4122'],
      nat_type: 1,
      seq: 1,
      ttl: 3600,
      timestamp: '2026-01-01T00:00:00.000Z',
      expires_at: '2026-01-01T01:00:00.000Z',
    });
  });

  test('discovery merges the results of all names, newest first, filtered', async () => {
    const [a, b, c] = [await add(), await add(), await add()];
    const offer = async (aid: string, services: string[], protocols: string[], tags: string[]): Promise<void> => {
      await world.call('serviceRegister', {
        params: { aid },
        body: { services, name: 'N', brief: 'B', protocols, tags, meta: { url: 'https://x.example' } },
      });
      world.clock.advance(1000);
    };
    await offer(a, ['lang.translate'], ['http', 'A2A'], ['fast', 'Free']);
    await offer(b, ['lang.translate', 'lang.detect'], ['mcp'], ['fast']);
    await offer(c, ['lang.detect'], ['http'], ['free']);
    const search = async (body: object): Promise<string[]> =>
      (await world.call<Entries>('discover', { body })).entries.map((entry) => `${entry.service} ${entry.aid}`);
    const services = ['lang.translate', 'lang.detect'];
    const everything = await search({ services });
    assert.equal(everything.length, 4);
    assert.equal(everything[0], `lang.detect ${c}`);
    assert.equal(everything[3], `lang.translate ${a}`);
    assert.deepEqual(new Set(everything.slice(1, 3)), new Set([`lang.translate ${b}`, `lang.detect ${b}`]));
    assert.deepEqual(await search({ services, filter: { protocols: ['HTTP', 'none'] } }), [
      `lang.detect ${c}`,
      `lang.translate ${a}`,
    ]);
    assert.deepEqual(await search({ services, filter: { tags: ['FREE', 'fast'] } }), [`lang.translate ${a}`]);
    assert.deepEqual(await search({ services, limit: 1 }), [`lang.detect ${c}`]);
    assert.deepEqual(await search({ services: ['nobody.here'] }), []);
    assert.deepEqual(
      (await world.call<Entries>('discover', { body: { services: ['lang.translate', 'lang.translate'], limit: 1 } }))
        .entries,
      [
        {
          service: 'lang.translate',
          aid: b,
          name: 'N',
          brief: 'B',
          protocols: ['mcp'],
          tags: ['fast'],
          meta: { url: 'https://x.example' },
          seq: 2,
          expires_at: '2026-01-01T01:00:01.000Z',
        },
      ],
    );
    for (const body of [{ services: [] }, { services: ['a'], limit: 1001 }, { services: ['a'], colour: 'red' }])
      await assert.rejects(world.call('discover', { body }), { code: 'invalid_request' });
    await assert.rejects(world.call('discover', { body: { services: ['Bad Name'] } }), { code: 'bad_service_name' });
  });

  test('an agent that starts when it is called says so in its profile, and its services repeat it', async () => {
    const aid = await add();
    const wakes = async () => {
      const { entries } = await world.call<{ entries: { wakes_within_s?: number }[] }>('discover', {
        body: { services: ['nap'] },
      });
      return entries.map((entry) => entry.wakes_within_s);
    };
    await world.call('serviceRegister', { params: { aid }, body: { services: ['nap'] } });
    assert.deepEqual(await wakes(), [undefined]);
    await world.call('profileSet', { params: { aid }, body: { name: 'Nap', wakes_within_s: 3 } });
    const { records } = await world.call<Records>('resolveRecords', { params: { aid }, query: { type: '2' } });
    assert.deepEqual(records[0]?.profile, { name: 'Nap', wakes_within_s: 3 });
    await world.call('serviceRegister', { params: { aid }, body: { services: ['nap'] } });
    assert.deepEqual(await wakes(), [3]);
    await world.call('serviceRegister', { params: { aid }, body: { services: ['nap'], wakes_within_s: 10 } });
    assert.deepEqual(await wakes(), [10]);
    const { services } = await world.call<{ services: { wakes_within_s?: number }[] }>('servicesList', {
      params: { aid },
    });
    assert.equal(services[0]?.wakes_within_s, 10);
    for (const wakes_within_s of [0, 1.5, 3601])
      await assert.rejects(world.call('profileSet', { params: { aid }, body: { wakes_within_s } }), {
        code: 'invalid_request',
      });
  });

  test('records are signed, so that everyone can verify them', async () => {
    const aid = await add();
    await world.call('agentPublish', { params: { aid } });
    await world.call('agentPublishRecord', { params: { aid }, body: { rec_type: 5, payload_base64: 'aGVsbG8=' } });
    await world.call('profileSet', { params: { aid }, body: { name: 'Bob', card_hash: 'ff', meta: { a: [1] } } });
    const all = await world.call<Records>('resolveRecords', { params: { aid } });
    assert.deepEqual(
      all.records.map((record) => record.rec_type),
      [1, 2, 5],
    );
    for (const { record_base64 } of all.records)
      verifyRecord(decodeRecord(Buffer.from(record_base64, 'base64')), world.clock.now() / 1000);
    assert.deepEqual(all.records[1]?.profile, { name: 'Bob', card_hash: 'ff', meta: { a: [1] } });
    const one = await world.call<Records>('resolveRecords', { params: { aid }, query: { type: '5' } });
    assert.equal(one.records.length, 1);
    assert.deepEqual(await world.call('resolveRecords', { params: { aid }, query: { type: '200' } }), { records: [] });
  });

  test('an agent that is not on the network has no records', async () => {
    const aid = await add();
    await assert.rejects(world.call('resolveRecords', { params: { aid } }), { code: 'resolve_failed' });
    assert.deepEqual(await world.call('resolveRecords', { params: { aid }, query: { type: 2 } }), { records: [] });
  });

  test('a DID document contains the keys of an agent, with the proof, and its endpoints', async () => {
    const aid = await add();
    const { did } = await world.call<{ did: string }>('did', { params: { aid } });
    assert.deepEqual(await world.call('did', { params: { aid: did } }), { aid, did });
    await assert.rejects(world.call('didDocument', { params: { aid } }), { code: 'resolve_failed' });
    await world.call('agentPublish', { params: { aid } });
    await world.call('profileSet', { params: { aid }, body: { name: 'Bob' } });
    const document = await world.call<DidDocument>('didDocument', { params: { aid: did } });
    const [master, acting, ...others] = document.verificationMethod;
    assert.ok(master && acting);
    assert.deepEqual(others, []);
    assert.equal(document.id, did);
    assert.equal(`did:key:${master.publicKeyMultibase}`, did);
    assert.deepEqual(document.capabilityDelegation, [master.id]);
    for (const use of [document.authentication, document.assertionMethod, document.capabilityInvocation])
      assert.deepEqual(use, [acting.id]);
    const proof = decodeDelegation(Buffer.from(acting.delegation ?? '', 'base64'));
    verifyDelegationSignature(proof);
    assert.equal(proof.agent, aid);
    assert.equal(acting.publicKeyMultibase, encodeMultikey('ed25519', proof.operationalKey));
    assert.deepEqual(document.service, [
      { id: `${did}#svcd`, type: 'SvcdAgent', serviceEndpoint: ['quic://192.0.2.1:4122'] },
      { id: `${did}#profile`, type: 'SvcdProfile', serviceEndpoint: { name: 'Bob' } },
    ]);
  });

  test('wallet agents have no did:key', async () => {
    const aid = `0x${'ab'.repeat(20)}`;
    for (const operation of ['did', 'didDocument'])
      await assert.rejects(world.call(operation, { params: { aid } }), { code: 'invalid_request' });
  });

  test('a removed profile disappears from the network immediately', async () => {
    const aid = await add();
    await world.call('profileSet', { params: { aid }, body: { name: 'Bob' } });
    await world.call('profileSet', { params: { aid }, body: { brief: 'only this' } });
    const set = await world.call<Records>('resolveRecords', { params: { aid }, query: { type: 2 } });
    assert.deepEqual(set.records[0]?.profile, { brief: 'only this' });
    const removed = await world.call<{ seq: number }>('profileDelete', { params: { aid } });
    assert.equal(removed.seq, 3);
    const gone = await world.call<Records>('resolveRecords', { params: { aid }, query: { type: 2 } });
    assert.equal(gone.records[0]?.profile, undefined);
    assert.deepEqual(await world.call('profileDelete', { params: { aid } }), { ok: true, seq: 3, replicas: 0 });
  });

  test('services and profile are read back unchanged', async () => {
    const aid = await add();
    const card = { name: 'N', brief: 'B', protocols: ['http'], tags: ['free'], meta: { url: 'https://x.example' } };
    await world.call('serviceRegister', { params: { aid }, body: { services: ['b.b', 'a.a'], ...card } });
    await world.call('serviceRegister', { params: { aid }, body: { services: ['c.c'] } });
    interface Offered {
      services: { service: string; expires_at: string | null; replicas: number; ttl: number }[];
    }
    const { services } = await world.call<Offered>('servicesList', { params: { aid } });
    assert.deepEqual(
      services.map(({ expires_at, replicas, ttl, ...output }) => {
        assert.ok(expires_at !== null && replicas > 0 && ttl > 0);
        return output;
      }),
      [
        { service: 'a.a', ...card },
        { service: 'b.b', ...card },
        { service: 'c.c', name: '', brief: '', protocols: [], tags: [], meta: {} },
      ],
    );
    await assert.rejects(world.call('servicesList', { params: { aid: world.nodeAid } }), { code: 'not_found' });
  });

  test('a withdrawn service is not renewed, and cannot be withdrawn again', async () => {
    const aid = await add();
    await world.call('serviceRegister', { params: { aid }, body: { services: ['a.b'] } });
    assert.deepEqual(await world.call('serviceUnregister', { params: { aid, service: 'a.b' } }), { ok: true });
    await assert.rejects(world.call('serviceUnregister', { params: { aid, service: 'a.b' } }), { code: 'not_found' });
    await assert.rejects(world.call('serviceUnregister', { params: { aid, service: 'A B' } }), {
      code: 'bad_service_name',
    });
  });

  test('input over a limit is refused with the limit, and nothing is stored', async () => {
    const aid = await add();
    const cases: [string, object][] = [
      ['serviceRegister', { services: ['a.b'], brief: 'ä'.repeat(129) }],
      ['serviceRegister', { services: ['a.b'], meta: { text: 'x'.repeat(800) } }],
      ['serviceRegister', { services: ['a.b'], name: 'x'.repeat(65) }],
      ['profileSet', { meta: { text: 'x'.repeat(5000) } }],
      ['agentPublishRecord', { rec_type: 3, payload_base64: Buffer.alloc(4097).toString('base64') }],
    ];
    for (const [name, body] of cases)
      await assert.rejects(world.call(name, { params: { aid }, body }), { code: 'too_large', status: 413 }, name);
    const bad: [string, object][] = [
      ['agentPublishRecord', { rec_type: 1, payload_base64: '' }],
      ['agentPublishRecord', { rec_type: 16, payload_base64: '' }],
      ['agentPublishRecord', { rec_type: 3, payload_base64: '%%' }],
      ['agentPublishRecord', { rec_type: 3, payload_base64: '', ttl: 1 }],
      ['profileSet', { skills: ['a', 'b', 'c', 'd'] }],
      ['profileSet', { name: 'red\u001b[31m' }],
      ['serviceRegister', { services: ['a.b'], brief: 'line\nbreak' }],
      ['serviceRegister', { services: ['a.b'], colour: 'red' }],
      ['serviceRegister', { services: [] }],
    ];
    for (const [name, body] of bad)
      await assert.rejects(
        world.call(name, { params: { aid }, body }),
        { code: 'invalid_request' },
        JSON.stringify(body),
      );
    assert.equal(world.network.kept.length, 0);
    assert.deepEqual(world.directory.summary(world.agents.list(1).agents[0]?.aid ?? world.nodeAid).services, []);
  });

  test('an agent has at most 64 services', async () => {
    const aid = await add();
    const names = Array.from({ length: 65 }, (_, i) => `many.s${i}`);
    for (let i = 0; i < 64; i += 16)
      await world.call('serviceRegister', { params: { aid }, body: { services: names.slice(i, i + 16) } });
    await assert.rejects(world.call('serviceRegister', { params: { aid }, body: { services: names.slice(64) } }), {
      code: 'quota_exceeded',
    });
    await world.call('serviceRegister', { params: { aid }, body: { services: names.slice(0, 16) } });
  });
});
