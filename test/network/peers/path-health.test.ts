import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { every } from '../../../src/foundation/repeat.ts';
import { SLEEP_MS } from '../../../src/foundation/stall.ts';
import {
  ASK_AFTER_MS,
  LOOK_MS,
  PathHealth,
  SUSPECT_MS,
  UNANSWERED_MS,
} from '../../../src/network/peers/path-health.ts';
import type { NodeSession } from '../../../src/network/peers/session.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Shorter than what a dead path may be in use for, milliseconds. */
const LONG_MS = 60_000;

/** One connection under watch, whose figures the test moves. */
function world(t: { after(end: () => void): void }, { isKept = false } = {}) {
  const clock = new TestClock();
  const figures = { bytesSent: 0, bytesReceived: 0, packetsSent: 0, packetsLost: 0 };
  const { session } = stubSession(new Uint8Array(32), true, clock, undefined, figures);
  let streamsWanted = 0;
  Object.assign(session.connection, {
    openStream: () => {
      streamsWanted++;
      return Promise.reject(new SvcError('connect_failed'));
    },
  });
  const dead: NodeSession[] = [];
  const health = new PathHealth(session, clock);
  const looks = every(clock, { periodMs: LOOK_MS, onError: () => assert.fail() }, () => {
    if (health.look(health.isUsed || isKept)) dead.push(session);
  });
  t.after(() => looks.stop());
  return {
    clock,
    figures,
    session,
    dead,
    health,
    use: () => {
      const stream = Object.assign(new PassThrough(), {
        connection: session.connection,
        isUpgraded: false,
        watchQueue: () => {},
      });
      session.adopt(stream);
      return stream;
    },
    /** Whether the other node was asked: a stub gives no streams, but counts who wants one. */
    asked: () => streamsWanted,
  };
}

test('a connection in use on which we sent something and hear nothing is named soon, and again while it stays so', (t) => {
  const { clock, figures, dead, session, use } = world(t);
  use();
  clock.advance(LOOK_MS);
  for (let i = 0; i < 3 + UNANSWERED_MS / LOOK_MS; i++) {
    figures.bytesSent += 100;
    clock.advance(LOOK_MS);
  }
  assert.deepEqual(dead, [session]);
  clock.advance(LONG_MS);
  assert.ok(dead.length > 10);
});

test('silence alone names nobody: nothing was asked, or only a receipt was sent', (t) => {
  const { clock, figures, dead, use } = world(t);
  use();
  clock.advance(LOOK_MS);
  figures.bytesReceived += 100;
  clock.advance(LOOK_MS);
  figures.bytesSent += 30;
  clock.advance(LONG_MS);
  assert.equal(dead.length, 0);
});

test('a slow path has as long as its round trips take', (t) => {
  const { clock, figures, dead, session, use } = world(t);
  Object.assign(session.connection, { rtt: () => 500 });
  use();
  clock.advance(LOOK_MS);
  const sendFor = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += LOOK_MS) {
      figures.bytesSent += 100;
      clock.advance(LOOK_MS);
    }
  };
  sendFor(3000);
  assert.equal(dead.length, 0);
  sendFor(1000);
  assert.equal(dead.length, 1);
});

test('every packet that comes begins anew', (t) => {
  const { clock, figures, dead, use } = world(t);
  use();
  for (let i = 0; i < 100; i++) {
    figures.bytesSent += 100;
    if (i % 4 === 0) figures.bytesReceived += 40;
    clock.advance(LOOK_MS);
  }
  assert.equal(dead.length, 0);
});

test('where traffic stops the other node is asked, once, and on a quiet connection not at all', (t) => {
  const { clock, figures, dead, session, use, asked } = world(t);
  use();
  clock.advance(LOOK_MS);
  figures.bytesReceived += 100;
  clock.advance(LONG_MS);
  assert.deepEqual([asked(), dead.length], [0, 0]);
  figures.bytesReceived += 1_000_000;
  clock.advance(LOOK_MS + ASK_AFTER_MS);
  assert.deepEqual([asked(), dead.length], [1, 0]);
  clock.advance(UNANSWERED_MS);
  assert.deepEqual([asked(), dead], [1, [session]]);
  // The answer: what comes now is no more than that.
  figures.bytesReceived += 100;
  clock.advance(LONG_MS);
  assert.deepEqual([asked(), dead.length], [1, 1]);
});

test('what nobody uses is not watched; what is kept is', (t) => {
  for (const isKept of [false, true]) {
    const { clock, figures, dead, asked } = world(t, { isKept });
    for (let i = 0; i < 20; i++) {
      figures.bytesSent += 100;
      clock.advance(LOOK_MS);
    }
    assert.equal(dead.length > 0, isKept);
    assert.equal(asked(), 0);
  }
});

test('while we stalled nobody was silent, and a suspect is asked whether in use or not', async (t) => {
  const { clock, figures, dead, session, health, use, asked } = world(t);
  const stream = use();
  clock.advance(LOOK_MS);
  for (let i = 1; i < UNANSWERED_MS / LOOK_MS; i++) {
    figures.bytesSent += 100;
    clock.jump(SLEEP_MS - LOOK_MS);
    clock.advance(LOOK_MS);
  }
  assert.deepEqual([asked(), dead.length], [0, 0], 'looks of so little time together');
  const closed = once(stream, 'close');
  stream.destroy();
  await closed;
  clock.advance(LONG_MS);
  health.suspect();
  assert.deepEqual([asked(), dead.length], [1, 0]);
  clock.advance(SUSPECT_MS);
  assert.deepEqual(dead, [session], 'a suspect is watched though nobody uses it');
  figures.bytesReceived += 100;
  clock.advance(LOOK_MS);
  clock.advance(LONG_MS);
  assert.deepEqual([asked(), dead.length], [1, 1], 'it was heard, and is idle again');
});

test('a suspect that was asked and has not answered is not asked again', (t) => {
  const { clock, figures, health, use, asked } = world(t);
  use();
  clock.advance(LOOK_MS);
  health.suspect();
  health.suspect();
  assert.equal(asked(), 1);
  figures.bytesReceived += 1;
  clock.advance(LOOK_MS);
  health.suspect();
  assert.equal(asked(), 2);
});
