import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Logger } from '../../src/foundation/logger.ts';
import { MAX_LOG_LINES, RecentLog } from '../../src/foundation/recent-log.ts';
import { TestClock } from '../support/test-clock.ts';

function setUp() {
  const recent = new RecentLog();
  const clock = new TestClock();
  const log = new Logger({ format: 'text', level: 'debug' }, { clock, recent, destination: { write: () => {} } });
  return { recent, log };
}

test('lines come as they were logged, without secrets', () => {
  const { recent, log } = setUp();
  log.info({ peers: 3 }, 'joined');
  log.child('dht').warn({ api_token: 'abc' }, 'odd');
  const at = '2026-01-01T00:00:00.000Z';
  assert.deepEqual(recent.read('debug', 10, 0), [
    { seq: 1, at, level: 'info', component: null, message: 'joined', fields: { peers: 3 } },
    { seq: 2, at, level: 'warn', component: 'dht', message: 'odd', fields: { api_token: '[hidden]' } },
  ]);
  assert.equal(recent.lastSeq, 2);
});

test('the newest ones that are wanted', () => {
  const { recent, log } = setUp();
  for (let i = 1; i <= 10; i++) {
    if (i % 2 === 0) log.error({}, `e${i}`);
    else log.debug({}, `d${i}`);
  }
  const messages = (...args: Parameters<RecentLog['read']>) => recent.read(...args).map(({ message }) => message);
  assert.deepEqual(messages('debug', 3, 0), ['e8', 'd9', 'e10']);
  assert.deepEqual(messages('warn', 2, 0), ['e8', 'e10']);
  assert.deepEqual(messages('debug', 100, 8), ['d9', 'e10']);
  assert.deepEqual(messages('debug', 100, 10), []);
});

test('a bounded number of lines and of characters is kept', () => {
  const { recent, log } = setUp();
  for (let i = 0; i < MAX_LOG_LINES + 10; i++) log.info({}, 'short');
  assert.equal(recent.read('debug', 10 * MAX_LOG_LINES, 0).length, MAX_LOG_LINES);
  for (let i = 0; i < MAX_LOG_LINES; i++) log.info({ text: 'x'.repeat(2000) }, 'long');
  const kept = recent.read('debug', 10 * MAX_LOG_LINES, 0).length;
  assert.ok(kept > 900 && kept < 1100, String(kept));
});
