import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObservedNode } from '../../../src/network/reachability/helper.ts';
import { signalHandler } from '../../../src/network/reachability/signal-handler.ts';
import {
  ATTEMPT_BYTES,
  decodeIntroductionAnswer,
  encodeHelperRequest,
  encodeIntroduction,
} from '../../../src/network/reachability/signals.ts';
import { type Path, plainPath } from '../../../src/network/transport/path.ts';

const REQUESTER = new Uint8Array(32).fill(1);
const AT = { host: '198.51.100.1', port: 4000 };
const HELLO = encodeHelperRequest({ kind: 'hello' });
const INTRODUCTION = encodeIntroduction({
  caller: REQUESTER,
  attempt: new Uint8Array(ATTEMPT_BYTES),
  means: 'punch',
  mapping: 'cone',
  seenAt: AT,
  listensAt: null,
  needsFullHops: false,
  relay: null,
});

function world(helps: boolean) {
  const [helped, called]: [ObservedNode[], ObservedNode[]] = [[], []];
  const helper = {
    answer: async (_body: Uint8Array, from: ObservedNode) => {
      helped.push(from);
      return Uint8Array.of(1);
    },
  };
  const answer = signalHandler(helps ? helper : null, {
    answer: async (_introduction, from) => {
      called.push(from);
      return { outcome: 'noted', mapping: 'cone', listensAt: null, isSprayed: false };
    },
  });
  const ask = (body: Uint8Array, path: Path = plainPath('direct', AT)) => answer(body, { nodeKey: REQUESTER, path });
  return { ask, helped, called };
}

test('a node that requests help gets it, with the source address of its packets', async () => {
  const { ask, helped } = world(true);
  assert.deepEqual(await ask(HELLO), Uint8Array.of(1));
  assert.deepEqual(helped, [{ nodeKey: REQUESTER, address: AT, source: AT.host }]);
});

test('a node that does not help others still accepts introductions', async () => {
  const { ask, helped, called } = world(false);
  await assert.rejects(ask(HELLO), { code: 'access_denied' });
  assert.equal(decodeIntroductionAnswer(await ask(INTRODUCTION))?.outcome, 'noted');
  assert.deepEqual([helped, called], [[], [{ nodeKey: REQUESTER, address: AT, source: AT.host }]]);
});

test('a relayed or punched path does not count as an observed address', async () => {
  const { ask, helped, called } = world(true);
  for (const kind of ['relay', 'turn', 'punched'] as const)
    for (const body of [HELLO, INTRODUCTION])
      await assert.rejects(ask(body, plainPath(kind, AT)), { code: 'access_denied' });
  assert.deepEqual([helped, called], [[], []]);
});
