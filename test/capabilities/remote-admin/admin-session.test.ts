import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { AdminSession, type RequestObserver } from '../../../src/capabilities/remote-admin/admin-session.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { NEXT_REQUEST_MS } from '../../../src/network/links/http-server.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

function sessionWorld(record: RequestObserver = () => ({ tool: () => {}, answered: () => {} })) {
  const clock = new TestClock();
  const [near, far] = localPair();
  const names = {
    caller: testAid(1),
    called: testAid(2),
    purpose: 'admin',
    accessToken: undefined,
    nodeKey: null,
  } as const;
  const link = asLink(far, names, () => ({ kind: 'local', remote: null, source: null, rttMs: 0 }));
  const served: { stream: Duplex; observer: RequestObserver }[] = [];
  const serve = (stream: Duplex, observer: RequestObserver): void => void served.push({ stream, observer });
  const session = new AdminSession(link, clock, record, serve);
  near.on('error', () => {});
  const [first] = served;
  assert.ok(first);
  return { clock, near, link, session, begin: first.observer };
}

test('an idle session times out, and a session with a running request does not', () => {
  const { clock, link, begin } = sessionWorld();
  clock.advance(NEXT_REQUEST_MS - 1);
  const { answered } = begin('GET', '/status');
  clock.advance(NEXT_REQUEST_MS * 10);
  assert.equal(link.destroyed, false);
  answered(200);
  clock.advance(NEXT_REQUEST_MS - 1);
  assert.equal(link.destroyed, false);
  clock.advance(1);
  assert.equal(link.destroyed, true);
});

test('no timer remains', async () => {
  const { clock, link } = sessionWorld();
  link.destroy();
  await once(link, 'close');
  assert.equal(clock.timers, 0);
});

test('a revoked session rejects further requests and closes the running one', async () => {
  const { link, session, begin } = sessionWorld();
  begin('GET', '/events');
  session.revoke();
  assert.throws(() => begin('POST', '/agents'), { code: 'access_denied' });
  await once(link, 'close');
});

test('a revoked session delivers a complete response and nothing after it', async () => {
  const { clock, near, link, session, begin } = sessionWorld();
  const { answered } = begin('PATCH', '/node/remote-admin');
  session.revoke();
  link.write('the answer');
  answered(200);
  const chunks: string[] = [];
  near.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk));
  await once(near, 'end');
  assert.deepEqual(chunks, ['the answer']);
  clock.advance(2000);
  assert.equal(link.destroyed, true);
});

test('a request that cannot be recorded is rejected and does not count', () => {
  const { clock, link, begin } = sessionWorld(() => {
    throw new SvcError('not_writable');
  });
  assert.throws(() => begin('POST', '/agents'), { code: 'not_writable' });
  clock.advance(NEXT_REQUEST_MS);
  assert.equal(link.destroyed, true);
});
