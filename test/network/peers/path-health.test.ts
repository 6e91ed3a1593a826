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

/** Longer than a dead path may stay in use, milliseconds. */
const LONG_MS = 60_000;

/** A watched connection with counters that the test changes. */
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
    /** The number of probes: the stub opens no streams, but counts the requests for one. */
    asked: () => streamsWanted,
  };
}

test('a connection in use that sends data but receives none is reported soon, and repeatedly', (t) => {
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

test('the more packets a path loses, the longer it may be silent', (t) => {
  const { clock, figures, dead, session, use } = world(t);
  use();
  Object.assign(figures, { packetsSent: 500, packetsLost: 100 });
  clock.advance(LOOK_MS);
  const silence = (looks: number): void => {
    for (let i = 0; i < looks; i++) {
      figures.bytesSent += 100;
      clock.advance(LOOK_MS);
    }
  };
  silence((3 * UNANSWERED_MS) / LOOK_MS);
  assert.deepEqual(dead, []);
  silence(UNANSWERED_MS / LOOK_MS + 2);
  assert.equal(dead[0], session);
});

test('silence alone is not reported if nothing was sent, or only acknowledgments', (t) => {
  const { clock, figures, dead, use } = world(t);
  use();
  clock.advance(LOOK_MS);
  figures.bytesReceived += 100;
  clock.advance(LOOK_MS);
  figures.bytesSent += 30;
  clock.advance(LONG_MS);
  assert.equal(dead.length, 0);
});

test('a slow path has a timeout proportional to its round trip', (t) => {
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

test('every received packet restarts the timeout', (t) => {
  const { clock, figures, dead, use } = world(t);
  use();
  for (let i = 0; i < 100; i++) {
    figures.bytesSent += 100;
    if (i % 4 === 0) figures.bytesReceived += 40;
    clock.advance(LOOK_MS);
  }
  assert.equal(dead.length, 0);
});

test('if traffic stops, the other node is probed once, and on a quiet connection not at all', (t) => {
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
  // Only the answer to the probe.
  figures.bytesReceived += 100;
  clock.advance(LONG_MS);
  assert.deepEqual([asked(), dead.length], [1, 1]);
});

test('an unused connection is not watched unless it is kept', (t) => {
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

test('a stall of this process does not count as silence, and a suspect is probed, in use or not', async (t) => {
  const { clock, figures, dead, session, health, use, asked } = world(t);
  const stream = use();
  clock.advance(LOOK_MS);
  for (let i = 1; i < UNANSWERED_MS / LOOK_MS; i++) {
    figures.bytesSent += 100;
    clock.jump(SLEEP_MS - LOOK_MS);
    clock.advance(LOOK_MS);
  }
  assert.deepEqual([asked(), dead.length], [0, 0], 'the checks cover too little time');
  const closed = once(stream, 'close');
  stream.destroy();
  await closed;
  clock.advance(LONG_MS);
  health.suspect();
  assert.deepEqual([asked(), dead.length], [1, 0]);
  clock.advance(SUSPECT_MS);
  assert.deepEqual(dead, [session], 'a suspect is watched even if unused');
  figures.bytesReceived += 100;
  clock.advance(LOOK_MS);
  clock.advance(LONG_MS);
  assert.deepEqual([asked(), dead.length], [1, 1], 'it answered, and is idle again');
});

test('a suspect with a pending probe is not probed again', (t) => {
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
