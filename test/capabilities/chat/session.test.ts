/** Limits and order of one chat link. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Answer } from '../../../src/capabilities/chat/relationship.ts';
import { ChatSession } from '../../../src/capabilities/chat/session.ts';
import { CHAT_VERSION, encodeFrame, type Frame } from '../../../src/capabilities/chat/wire.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const names = {
  caller: testAid(1),
  called: testAid(2),
  purpose: 'chat',
  accessToken: undefined,
  nodeKey: null,
} as const;
const OURS = new Uint8Array(16).fill(1);
const THEIRS = new Uint8Array(16).fill(2);

/** A session, and its callbacks in order. */
function listening(duplex: Duplex) {
  const heard: string[] = [];
  const link = asLink(duplex, names, () => ({ kind: 'direct', remote: null, source: null, rttMs: 1 }));
  const session = new ChatSession(link, false, new TestClock(), {
    onFrames: (_, frames) => heard.push(...frames.map(({ kind }) => kind)),
    onArrival: (_, upTo) => heard.push(`arrived up to ${upTo}`),
    onFailure: (_, error) => heard.push(String(error)),
    onDrain: () => {},
    onClose: () => heard.push('closed'),
  });
  return { session, link, heard };
}

const MESSAGE: Frame = {
  kind: 'message',
  stream: THEIRS,
  after: null,
  content: { id: new Uint8Array(16), at: 1, text: 'x', file: null },
};

/** A session that has sent three entries, at positions 10, 20 and 30 of its log, and a writer for its peer. */
async function underWay() {
  const duplex = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  const { session, link, heard } = listening(duplex);
  const unacknowledged = [1, 2, 3].map((n) => ({ id: entryId(n), place: 10 * n, bytes: 1 }));
  session.cursor = { stream: OURS, lastId: entryId(3), lastEntry: 30, unacknowledged };
  duplex.push(Uint8Array.of(CHAT_VERSION));
  await turn();
  const says = (...frames: Frame[]): void => void duplex.push(Buffer.concat(frames.map(encodeFrame)));
  return { link, heard, says };
}

function entryId(n: number): Uint8Array {
  return new Uint8Array(16).fill(n);
}

/** A receipt for the `n`th entry. */
function receipt(n: number, answer: Answer = 'ok', stream = OURS): Frame {
  return { kind: 'receipt', stream, last: entryId(n), answer };
}

test('delivery is reported before it is stored', async () => {
  const { heard, says } = await underWay();
  says(receipt(1), receipt(2));
  assert.deepEqual(heard, ['arrived up to 20']);
  await turn();
  assert.deepEqual(heard, ['arrived up to 20', 'receipt', 'receipt']);
  says(receipt(3));
  assert.deepEqual(heard.slice(3), ['arrived up to 30']);
});

test('frames after a receipt are processed after it', async () => {
  const { heard, says } = await underWay();
  says(receipt(1));
  says(MESSAGE);
  says(receipt(2));
  assert.deepEqual(heard, ['arrived up to 10']);
  await turn();
  assert.deepEqual(heard, ['arrived up to 10', 'receipt', 'message', 'receipt']);
  says(MESSAGE);
  assert.equal(heard.at(-1), 'message');
});

test('a receipt is processed before the link closes', async () => {
  const { link, heard, says } = await underWay();
  says(receipt(1));
  link.destroy();
  await once(link, 'close');
  assert.deepEqual(heard, ['arrived up to 10', 'receipt', 'closed']);
  await turn();
  assert.equal(heard.length, 3);
});

test('a receipt that reports more than delivery is not announced before it is processed', async () => {
  for (const frame of [receipt(1, 'busy'), receipt(2, 'unknown'), receipt(1, 'ok', THEIRS), receipt(0), MESSAGE]) {
    const { heard, says } = await underWay();
    says(frame);
    assert.deepEqual(heard, [frame.kind]);
  }
});

test('a peer that sends requests without reading is disconnected at 4 MiB of unsent data', () => {
  // Accepts no bytes.
  const deaf = new Duplex({ read: () => {}, write: () => {} });
  const { session, link } = listening(deaf);
  const content = { id: new Uint8Array(16), at: 1, text: 'x'.repeat(16_000), file: null };
  const frame: Frame = { kind: 'message', stream: new Uint8Array(16), after: null, content };
  const fitting = Math.floor((4 * 1024 * 1024 - link.writableLength) / encodeFrame(frame).length);
  for (let i = 0; i < fitting; i++) session.send(frame);
  assert.deepEqual([session.closed, session.isFull], [false, true]);
  session.send(frame);
  assert.ok(link.destroyed);
});
