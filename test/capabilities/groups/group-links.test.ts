/** Limits of group sessions: silent callers cannot keep members out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupLinks } from '../../../src/capabilities/groups/group-links.ts';
import { send } from '../../../src/capabilities/groups/wire.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import type { LinkPath, LinkStream } from '../../../src/network/links/types.ts';
import { testAid } from '../../support/agents.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { idle } from '../../support/idle.ts';

const MEMBER = testAid(2);

function setUp() {
  const parts = new GroupParts();
  const aid = parts.agent();
  const { groupId } = parts.writer.create(aid, 'Plans');
  parts.groups.setCursor(parts.replicas.row(aid, groupId).rid, MEMBER, new Uint8Array(8), 0);
  const handlers: ((link: LinkStream) => void)[] = [];
  const links = new GroupLinks(
    {
      groups: parts.groups,
      entries: parts.entries,
      delegations: new DelegationVerifier(),
      clock: parts.clock,
      log: silentLog,
      events: { emit: () => 0 },
      links: { open: () => assert.fail(), accept: (_, handler) => void handlers.push(handler), reset: () => {} },
      isKnown: () => false,
    },
    parts.replicas,
    parts.writer,
  );
  const call = (caller: Aid, source: string) => {
    const [near, far] = localPair();
    near.on('error', () => {});
    near.resume();
    const names = {
      caller,
      called: aid,
      purpose: 'group',
      accessToken: undefined,
      nodeKey: new Uint8Array(32),
    } as const;
    const path = (): LinkPath => ({ kind: 'direct', remote: null, source, rttMs: 1 });
    for (const handler of handlers) handler(asLink(far, names, path));
    return { near: asLink(near, names, path), far };
  };
  return { parts, groupId, links, call };
}

test('silent strangers evict neither members nor strangers of another network', async () => {
  const { links, call } = setUp();
  const member = call(MEMBER, '192.0.2.1');
  const first = call(testAid(3), '203.0.113.1');
  const crowd = Array.from({ length: 1000 }, (_, n) => call(testAid(10 + n), `192.0.2.${n % 200}`));
  const others = Array.from({ length: 1000 }, (_, n) => call(testAid(2000 + n), `198.51.100.${n % 200}`));
  await idle();
  assert.equal([...crowd, ...others].filter(({ far }) => !far.destroyed).length, 63);
  const last = call(testAid(4), '203.0.114.1');
  await idle();
  for (const { far } of [member, first, last, call(MEMBER, '198.51.100.1')]) assert.equal(far.destroyed, false);
  links.stop();
});

test('one agent cannot use more than its share of the sessions', async () => {
  const { parts, groupId, links, call } = setUp();
  const [greedy, modest] = [testAid(5), testAid(6)];
  const { aid } = parts.replicas.open(parts.replicas.row([...parts.agents.keys()][0] ?? assert.fail(), groupId));
  parts.writer.appendAny(aid, groupId, { kind: 'invite', to: [greedy] });
  parts.writer.appendAny(aid, groupId, { kind: 'invite', to: [modest] });
  const have = { heads: [], maxSeq: 0, epoch: new Uint8Array(8) };
  const enter = async (caller: Aid, source: string) => {
    const { near, far } = call(caller, source);
    send(near, { type: 'hello', groupId, have });
    await idle();
    return far;
  };
  const talks = [];
  for (let n = 0; n < 40; n++) talks.push(await enter(greedy, '192.0.2.1'));
  assert.equal(talks.filter(({ destroyed }) => !destroyed).length, 32);
  assert.equal((await enter(modest, '198.51.100.1')).destroyed, false);
  for (const talk of talks) talk.destroy();
  await idle();
  assert.equal((await enter(greedy, '192.0.2.1')).destroyed, false);
  links.stop();
});
