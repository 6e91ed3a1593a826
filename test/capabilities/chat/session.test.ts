/** What one link of a chat lets its peer do. */
import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { ChatSession } from '../../../src/capabilities/chat/session.ts';
import { encodeFrame, type Frame } from '../../../src/capabilities/chat/wire.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

test('a peer that asks and does not read is cut off once 4 MiB wait for it', () => {
  // Nothing that is written goes out.
  const deaf = new Duplex({ read: () => {}, write: () => {} });
  const names = {
    caller: testAid(1),
    called: testAid(2),
    purpose: 'chat',
    accessToken: undefined,
    nodeKey: null,
  } as const;
  const link = asLink(deaf, names, () => ({ kind: 'direct', remote: null, source: null, rttMs: 1 }));
  const nothing = (): void => {};
  const heard = { onFrames: nothing, onFailure: nothing, onDrain: nothing, onClose: nothing };
  const session = new ChatSession(link, false, new TestClock(), heard);
  const content = { id: new Uint8Array(16), at: 1, text: 'x'.repeat(16_000), file: null };
  const frame: Frame = { kind: 'message', stream: new Uint8Array(16), seq: 1, content };
  const fitting = Math.floor((4 * 1024 * 1024 - link.writableLength) / encodeFrame(frame).length);
  for (let i = 0; i < fitting; i++) session.send(frame);
  assert.deepEqual([session.closed, session.isFull], [false, true]);
  session.send(frame);
  assert.ok(link.destroyed);
});
