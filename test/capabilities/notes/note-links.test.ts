/** Limits for notes that a node opens. All notes here are invalid, so they are refused when they are opened. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteLinks, noteRequest, readAnswer } from '../../../src/capabilities/notes/note-links.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import type { LinkPath, LinkStream } from '../../../src/network/links/types.ts';
import { testAid } from '../../support/agents.ts';
import { keysOfNone } from '../../support/mail-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const [CALLED, FRIEND] = [testAid(1), testAid(2)];

function setUp() {
  const handlers: ((link: LinkStream) => void)[] = [];
  const clock = new TestClock();
  const serving = new NoteLinks({
    links: {
      open: () => assert.fail(),
      accept: (_, handler) => void handlers.push(handler),
      reset: () => {},
    },
    inbox: { accept: async () => [] },
    keys: keysOfNone(clock),
    clock,
    log: silentLog,
    isKnown: (_, peer) => peer === FRIEND,
  });
  assert.ok(serving);
  return async (caller: Aid, source: string) => {
    const [near, far] = localPair();
    const names = {
      caller,
      called: CALLED,
      purpose: 'note',
      accessToken: undefined,
      nodeKey: new Uint8Array(32),
    } as const;
    const path = (): LinkPath => ({ kind: 'direct', remote: null, source, rttMs: 1 });
    for (const handler of handlers) handler(asLink(far, names, path));
    near.end(noteRequest(new Uint8Array(9)));
    const answer = await readAnswer(asLink(near, names, path), new AbortController().signal);
    near.destroy();
    return answer;
  };
}

test('a source that sends many notes is limited, and neither other sources nor agents that the owner knows', async () => {
  const offer = setUp();
  let opened = 0;
  for (let n = 0; n < 600; n++) if ((await offer(testAid(10 + n), '192.0.2.1')) === 'refused') opened++;
  assert.equal(opened, 500);
  assert.equal(await offer(FRIEND, '192.0.2.1'), 'refused');
  assert.equal(await offer(testAid(3), '198.51.100.1'), 'refused');
});

test('all strangers together are limited, and no agent that the owner knows is', async () => {
  const offer = setUp();
  let opened = 0;
  for (let n = 0; n < 2400; n++) if ((await offer(testAid(10 + n), `10.${n % 200}.0.1`)) === 'refused') opened++;
  assert.equal(opened, 2000);
  assert.equal(await offer(FRIEND, '10.0.0.1'), 'refused');
});
