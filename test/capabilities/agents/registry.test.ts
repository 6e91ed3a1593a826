import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { AgentRegistry, type RegistryDependencies } from '../../../src/capabilities/agents/registry.ts';
import type { TcpCheck } from '../../../src/capabilities/agents/types.ts';
import type { AgentChange } from '../../../src/foundation/agent-change.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { KeyPair, verifySignature } from '../../../src/foundation/identity/keys.ts';
import { signDelegation } from '../../../src/foundation/identity/wallet.ts';
import { generateWalletKey, walletAid, walletPublicKey } from '../../../src/foundation/identity/wallet-keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { MemoryVault } from '../../support/memory-vault.ts';
import { TestClock } from '../../support/test-clock.ts';

const NODE = newIdentity();

function failsWith(code: string, status: number): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === code && error.status === status;
}

/** Fails at each write of an agent. */
class FailingAgentStore extends AgentStore {
  override put(): void {
    throw new Error('crash');
  }
}

describe('the agent registry', () => {
  let clock: TestClock;
  let store: Store;
  let vault: MemoryVault;
  let check: TcpCheck;
  let changes: AgentChange[];
  let registry: AgentRegistry;

  function build(overrides: Partial<RegistryDependencies> = {}): AgentRegistry {
    return new AgentRegistry(
      { nodeAid: NODE.aid },
      {
        agents: new AgentStore(store),
        vault,
        clock,
        log: silentLog,
        own: { api: () => ({ host: '127.0.0.1', port: 2121 }), interfaces: () => [], lookup: async () => [] },
        checkTcp: async () => check,
        ...overrides,
      },
    );
  }

  beforeEach(() => {
    clock = new TestClock();
    store = Store.open(':memory:', MIGRATIONS);
    vault = new MemoryVault();
    check = { ok: true, ms: 1 };
    changes = [];
    registry = build();
    registry.onChange((change) => changes.push(change));
  });

  afterEach(() => store.close());

  test('registers an identity that then signs with its operational key', async () => {
    const agent = newIdentity();
    assert.equal(registry.identity(agent.aid), null);
    assert.equal(registry.identity(agent.aid), null, 'as cached');
    assert.equal(await registry.register(agent.credentials), agent.aid);
    const identity = registry.identity(agent.aid);
    const message = new TextEncoder().encode('hello');
    assert.ok(identity !== null);
    assert.ok(verifySignature(agent.operational.publicKey, message, identity.sign(message)));
    assert.deepEqual(identity.delegation, agent.delegation);
    assert.deepEqual(changes, [{ aid: agent.aid, kind: 'registered' }]);
    assert.deepEqual(registry.get(agent.aid), {
      aid: agent.aid,
      serviceTcp: '',
      serviceBefore: null,
      serviceOk: null,
      heartbeatSecondsAgo: 0,
      window: { issuedAt: agent.delegation.issuedAt, expiresAt: 0 },
    });
  });

  test('a listener that fails neither fails the request nor keeps the change from the other listeners', async () => {
    const agent = newIdentity();
    const other = build();
    other.onChange(() => {
      throw new SvcError('not_writable');
    });
    other.onChange((change) => changes.push(change));
    await other.register(agent.credentials);
    other.delete(agent.aid);
    assert.deepEqual(
      changes.map(({ kind }) => kind),
      ['registered', 'deleted'],
    );
  });

  test('a registration that cannot be stored completely changes nothing', async () => {
    class HalfWritten extends AgentStore {
      override setHeld(): void {
        throw new SvcError('not_writable');
      }
    }
    const agent = newIdentity();
    await registry.register(agent.credentials);
    const before = registry.identity(agent.aid);
    const next = delegateAnew(agent.master, agent.delegation.issuedAt + 1);
    const failing = build({ agents: new HalfWritten(store) });
    await assert.rejects(failing.register(next.credentials), failsWith('not_writable', 500));
    assert.deepEqual(build().identity(agent.aid)?.delegation, before?.delegation);
  });

  test('rejects keys and proofs that do not belong together', async () => {
    const [a, b] = [newIdentity(), newIdentity()];
    const mixed = { ...a.credentials, delegationProofHex: b.credentials.delegationProofHex };
    await assert.rejects(registry.register(mixed), failsWith('bad_delegation', 400));
    await assert.rejects(
      registry.register({ ...a.credentials, operationalPrivateKeyHex: 'abc' }),
      failsWith('bad_key', 400),
    );
    for (const delegationProofHex of ['', 'zz', '00', 'a0'.repeat(5000)])
      await assert.rejects(
        registry.register({ ...a.credentials, delegationProofHex }),
        failsWith('bad_delegation', 400),
      );
    assert.equal(registry.count(), 0);
    assert.equal(vault.seeds.size, 0);
  });

  test('rejects a proof that has expired or is not valid yet', async () => {
    const now = clock.now() / 1000;
    const expired = delegateAnew(KeyPair.generate(), now - 1000, now - 61);
    await assert.rejects(registry.register(expired.credentials), failsWith('bad_delegation', 400));
    const early = delegateAnew(KeyPair.generate(), now + 61);
    await assert.rejects(registry.register(early.credentials), failsWith('bad_delegation', 400));
  });

  test('accepts wallet identities', async () => {
    const wallet = generateWalletKey();
    const operational = KeyPair.generate();
    const issuedAt = clock.now() / 1000;
    for (const scheme of ['ethereum', 'paralism'] as const) {
      const agent = walletAid(scheme, walletPublicKey(wallet));
      const grant = { agent, operationalKey: operational.publicKey, scope: 1, issuedAt, expiresAt: issuedAt + 3600 };
      const proof = signDelegation(scheme, wallet, grant);
      const aid = await registry.register({
        operationalPrivateKeyHex: toHex(operational.seed),
        delegationProofHex: `0x${toHex(encodeDelegation(proof))}`,
      });
      assert.equal(aid, agent);
      assert.equal(registry.get(agent).window.expiresAt, issuedAt + 3600);
      assert.deepEqual(registry.identity(agent)?.delegation, proof);
    }
  });

  test("rejects the node's own identity", async () => {
    await assert.rejects(registry.register(NODE.credentials), failsWith('invalid_request', 400));
  });

  test('registering again with the same key keeps or changes the service', async () => {
    const agent = newIdentity();
    await registry.register({ ...agent.credentials, serviceTcp: '127.0.0.1:9000' });
    await registry.register(agent.credentials);
    assert.equal(registry.get(agent.aid).serviceTcp, '127.0.0.1:9000');
    await registry.register({ ...agent.credentials, serviceTcp: 'http://127.0.0.1:9001/' });
    assert.equal(registry.get(agent.aid).serviceTcp, 'http://127.0.0.1:9001');
    await registry.register({ ...agent.credentials, serviceTcp: '' });
    assert.equal(registry.get(agent.aid).serviceTcp, '');
    assert.equal(registry.count(), 1);
  });

  test('a newer delegation rotates the key in place', async () => {
    const old = newIdentity();
    await registry.register({ ...old.credentials, serviceTcp: '127.0.0.1:9000' });
    registry.identity(old.aid);
    const id = new AgentStore(store).get(old.aid)?.id;
    const fresh = delegateAnew(old.master, old.delegation.issuedAt + 1);
    await registry.register(fresh.credentials);
    assert.deepEqual(registry.identity(old.aid)?.delegation, fresh.delegation);
    assert.equal(registry.get(old.aid).serviceTcp, '127.0.0.1:9000');
    assert.equal(new AgentStore(store).get(old.aid)?.id, id);
    assert.deepEqual([...vault.seeds.values()], [fresh.operational.seed]);
    assert.deepEqual(changes.at(-1), { aid: old.aid, kind: 'rotated' });
  });

  test('an older or equal delegation to another key is a conflict and changes nothing', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    for (const back of [0, 1]) {
      const other = delegateAnew(agent.master, agent.delegation.issuedAt - back);
      await assert.rejects(
        registry.register({ ...other.credentials, serviceTcp: '127.0.0.1:1' }),
        failsWith('operational_key_mismatch', 409),
      );
    }
    assert.deepEqual(registry.identity(agent.aid)?.delegation, agent.delegation);
    assert.equal(registry.get(agent.aid).serviceTcp, '');
    assert.equal(vault.seeds.size, 1);
  });

  test('the same key with an older delegation keeps the newer one', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    const older = delegateAnew(agent.master, agent.delegation.issuedAt - 10, 0, agent.operational);
    await registry.register(older.credentials);
    assert.equal(registry.get(agent.aid).window.issuedAt, agent.delegation.issuedAt);
    const newer = delegateAnew(agent.master, agent.delegation.issuedAt + 10, 0, agent.operational);
    await registry.register(newer.credentials);
    assert.equal(registry.get(agent.aid).window.issuedAt, agent.delegation.issuedAt + 10);
    assert.deepEqual(registry.identity(agent.aid)?.delegation, newer.delegation);
  });

  test('registering again restores a lost key file', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    vault.seeds.clear();
    registry = build();
    assert.equal(registry.identity(agent.aid), null);
    await registry.register(agent.credentials);
    assert.deepEqual(registry.identity(agent.aid)?.delegation, agent.delegation);
  });

  test('after a crash between key file and row, the next start cleans up', async () => {
    const [kept, lost] = [newIdentity(), newIdentity()];
    await registry.register(kept.credentials);
    vault.put('node', KeyPair.generate());
    const failing = build({ agents: new FailingAgentStore(store) });
    await assert.rejects(failing.register(lost.credentials), /crash/);
    assert.equal(vault.seeds.size, 3);
    const restarted = build();
    await restarted.start();
    await restarted.stop();
    assert.equal(vault.seeds.size, 2);
    assert.ok(vault.seeds.has('node'));
    assert.ok(restarted.identity(kept.aid) !== null);
  });

  test('a start with another database deletes no key, and a restored database finds all keys', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    const other = Store.open(':memory:', MIGRATIONS);
    const meanwhile = build({ agents: new AgentStore(other) });
    await meanwhile.start();
    const second = newIdentity();
    await meanwhile.register(second.credentials);
    await meanwhile.stop();
    await registry.start();
    assert.equal(vault.seeds.size, 2);
    assert.ok(build().identity(agent.aid) !== null);
    registry.delete(agent.aid);
    assert.deepEqual([...vault.seeds.values()], [second.operational.seed]);
    await registry.stop();
    other.close();
  });

  test('a key file that could not be deleted with its agent is deleted at the next start', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    const stuck = build({
      vault: {
        put: () => {},
        get: (name) => vault.get(name),
        list: () => vault.list(),
        delete: () => {
          throw new Error('disk failure');
        },
      },
    });
    stuck.delete(agent.aid);
    assert.equal(vault.seeds.size, 1);
    const next = build();
    await next.start();
    assert.equal(vault.seeds.size, 0);
    await next.stop();
  });

  test('a rotation fails if a listener cannot store what depends on the old key', async () => {
    const old = newIdentity();
    await registry.register(old.credentials);
    const heard: boolean[] = [];
    let refuses = true;
    registry.beforeRotation((aid) => {
      heard.push(registry.identity(aid)?.delegation.issuedAt === old.delegation.issuedAt);
      if (refuses) throw new SvcError('not_writable');
    });
    const rotated = delegateAnew(old.master, old.delegation.issuedAt + 10);
    await assert.rejects(registry.register(rotated.credentials), { code: 'not_writable' });
    assert.equal(registry.identity(old.aid)?.delegation.issuedAt, old.delegation.issuedAt);
    refuses = false;
    await registry.register(rotated.credentials);
    assert.equal(registry.identity(old.aid)?.delegation.issuedAt, rotated.delegation.issuedAt);
    await registry.register(rotated.credentials);
    assert.deepEqual(heard, [true, true], 'no notification for the same key');
  });

  test('after a crash during a rotation, the old key is still valid', async () => {
    const old = newIdentity();
    await registry.register(old.credentials);
    const fresh = delegateAnew(old.master, old.delegation.issuedAt + 1);
    const failing = build({ agents: new FailingAgentStore(store) });
    await assert.rejects(failing.register(fresh.credentials), /crash/);
    const restarted = build();
    await restarted.start();
    await restarted.stop();
    assert.deepEqual(restarted.identity(old.aid)?.delegation, old.delegation);
    assert.deepEqual([...vault.seeds.values()], [old.operational.seed]);
  });

  test('a moved agent is adopted with everything else in one transaction, or not at all', async () => {
    const agent = newIdentity();
    const request = { ...agent.credentials, serviceTcp: '127.0.0.1:8080' };
    const adopt = (writeRest: () => void) => registry.adopt(request, writeRest);
    await assert.rejects(
      adopt(() => {
        assert.equal(registry.identity(agent.aid)?.aid, agent.aid, 'the agent is stored first');
        throw new Error('the rest failed');
      }),
      /the rest failed/,
    );
    assert.deepEqual([registry.identity(agent.aid), vault.seeds.size, changes], [null, 0, []]);
    let written = 0;
    assert.equal(await adopt(() => void written++), agent.aid);
    assert.deepEqual([written, changes], [1, [{ aid: agent.aid, kind: 'registered' }]]);
    assert.equal(registry.service(agent.aid), '127.0.0.1:8080');
    assert.deepEqual(registry.agentsBoundTo('127.0.0.1:8080'), [agent.aid]);
    assert.deepEqual(registry.agentsBoundTo('127.0.0.1:8081'), []);
    await assert.rejects(
      adopt(() => {}),
      failsWith('agent_exists', 409),
    );
    assert.equal(vault.seeds.size, 1);
    const { serviceTcp, operationalPrivateKeyHex } = registry.export(agent.aid);
    assert.deepEqual([serviceTcp, operationalPrivateKeyHex], ['127.0.0.1:8080', toHex(agent.operational.seed)]);
    assert.throws(() => registry.export(newIdentity().aid), failsWith('not_found', 404));
  });

  test('a bound service is checked on request', async () => {
    const [bound, loose] = [newIdentity(), newIdentity()];
    await registry.register({ ...bound.credentials, serviceTcp: '127.0.0.1:8080' });
    await registry.register(loose.credentials);
    check = { ok: false, ms: 2, error: 'timeout' };
    await eventually('a new check', async () => (await registry.checkService(bound.aid))?.error === 'timeout');
    assert.equal(await registry.checkService(loose.aid), null);
    await assert.rejects(registry.checkService(newIdentity().aid), failsWith('not_found', 404));
    assert.deepEqual([registry.service(loose.aid), registry.isHeld(loose.aid)], ['', false]);
  });

  test('a change requires the key unless it comes from this machine', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    const remote = { serviceTcp: '10.0.0.1:80', local: false };
    await assert.rejects(registry.patch(agent.aid, remote), failsWith('operational_key_mismatch', 403));
    const wrong = { ...remote, operationalPrivateKeyHex: toHex(KeyPair.generate().seed) };
    await assert.rejects(registry.patch(agent.aid, wrong), failsWith('operational_key_mismatch', 403));
    await assert.rejects(
      registry.patch(agent.aid, { ...wrong, local: true }),
      failsWith('operational_key_mismatch', 403),
    );
    const right = { ...remote, operationalPrivateKeyHex: agent.credentials.operationalPrivateKeyHex };
    assert.equal((await registry.patch(agent.aid, right)).serviceTcp, '10.0.0.1:80');
    const unbound = await registry.patch(agent.aid, { serviceTcp: '', local: true });
    assert.deepEqual([unbound.serviceTcp, unbound.serviceOk], ['', null]);
  });

  test('a changed agent is returned with a fresh check of its service', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    check = { ok: false, ms: 1, error: 'ECONNREFUSED' };
    const patched = await registry.patch(agent.aid, { serviceTcp: '127.0.0.1:9', local: true });
    assert.equal(patched.serviceOk, false);
    assert.deepEqual(await registry.checkService(agent.aid), check);
  });

  test('a service that is bound at registration is checked automatically', async () => {
    const agent = newIdentity();
    await registry.register({ ...agent.credentials, serviceTcp: '127.0.0.1:9' });
    await eventually('service checked', () => registry.get(agent.aid).serviceOk === true);
  });

  test('a deleted agent leaves no key and can be registered again', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    registry.identity(agent.aid);
    registry.delete(agent.aid);
    assert.equal(registry.identity(agent.aid), null);
    assert.equal(vault.seeds.size, 0);
    assert.throws(() => registry.get(agent.aid), failsWith('not_found', 404));
    assert.throws(() => registry.delete(agent.aid), failsWith('not_found', 404));
    assert.throws(() => registry.heartbeat(agent.aid), failsWith('not_found', 404));
    await registry.register(agent.credentials);
    assert.equal(registry.count(), 1);
  });

  test('an export can be registered on another node', async () => {
    const agent = newIdentity();
    await registry.register({ ...agent.credentials, serviceTcp: '127.0.0.1:9000' });
    assert.deepEqual(registry.export(agent.aid), {
      aid: agent.aid,
      ...agent.credentials,
      serviceTcp: '127.0.0.1:9000',
    });
  });

  test('lists agents in the order of registration, with stable pages while agents are added and deleted', async () => {
    const identities = Array.from({ length: 7 }, () => newIdentity());
    for (const { credentials } of identities) await registry.register(credentials);
    const first = registry.list(3);
    assert.deepEqual(
      first.agents.map((agent) => agent.aid),
      identities.slice(0, 3).map((agent) => agent.aid),
    );
    registry.delete(identities[2]?.aid ?? NODE.aid);
    await registry.register(newIdentity().credentials);
    const second = registry.list(3, first.nextCursor ?? '');
    const third = registry.list(3, second.nextCursor ?? '');
    assert.deepEqual(
      second.agents.map((agent) => agent.aid),
      identities.slice(3, 6).map((agent) => agent.aid),
    );
    assert.equal(third.agents.length, 2);
    assert.equal(third.nextCursor, null);
    for (const cursor of ['x', '-1', '1e3', ''])
      assert.throws(() => registry.list(3, cursor), failsWith('invalid_request', 400));
  });

  test('heartbeats survive a restart', async () => {
    const agent = newIdentity();
    await registry.register(agent.credentials);
    clock.advance(30 * 60_000);
    assert.equal(registry.heartbeat(agent.aid), clock.now());
    clock.advance(10_000);
    assert.equal(registry.get(agent.aid).heartbeatSecondsAgo, 10);
    await registry.stop();
    registry = build();
    assert.equal(registry.get(agent.aid).heartbeatSecondsAgo, 10);
  });

  describe('a temporary service', () => {
    const [PERMANENT, TEMPORARY] = ['http://127.0.0.1:8080', 'http+proven://127.0.0.1:9000'];

    async function bound(): Promise<Aid> {
      const agent = newIdentity();
      await registry.register({ ...agent.credentials, serviceTcp: PERMANENT });
      await registry.patch(agent.aid, { serviceTcp: TEMPORARY, isTemporary: true, local: true });
      return agent.aid;
    }

    test('restores the previous service when it is unbound', async () => {
      const aid = await bound();
      assert.equal(registry.get(aid).serviceTcp, TEMPORARY);
      assert.equal(registry.get(aid).serviceBefore, PERMANENT);
      // Two nested temporary services are unbound in reverse order.
      await registry.patch(aid, { serviceTcp: 'http+proven://127.0.0.1:9001', isTemporary: true, local: true });
      const given = await registry.patch(aid, { serviceTcp: '', isTemporary: true, local: true });
      assert.deepEqual([given.serviceTcp, given.serviceBefore], [TEMPORARY, PERMANENT]);
      const ended = await registry.patch(aid, { serviceTcp: '', isTemporary: true, local: true });
      assert.deepEqual([ended.serviceTcp, ended.serviceBefore], [PERMANENT, null]);
    });

    test('is dropped when another service is bound permanently', async () => {
      const aid = await bound();
      await registry.patch(aid, { serviceTcp: '127.0.0.1:7000', local: true });
      const ended = await registry.patch(aid, { serviceTcp: '', isTemporary: true, local: true });
      assert.equal(ended.serviceTcp, '');
    });

    test('is replaced by the previous service after its program was killed, also after a restart', async () => {
      const aid = await bound();
      await registry.stop();
      registry = build();
      registry.onChange((change) => changes.push(change));
      changes.length = 0;
      // A busy program may miss a check.
      check = { ok: false, ms: 2000, error: 'timeout' };
      await registry.checkService(aid);
      assert.equal(registry.get(aid).serviceTcp, TEMPORARY);
      check = { ok: true, ms: 1 };
      await registry.checkService(aid);
      check = { ok: false, ms: 1, error: 'ECONNREFUSED' };
      await registry.checkService(aid);
      assert.deepEqual([registry.get(aid).serviceTcp, registry.get(aid).serviceBefore], [PERMANENT, null]);
      assert.deepEqual(changes, [{ aid, kind: 'bound' }]);
    });
  });

  test('stops without an armed timer', async () => {
    await registry.start();
    const agent = newIdentity();
    await registry.register(agent.credentials);
    await registry.stop();
    assert.equal(clock.timers, 0);
  });
});
