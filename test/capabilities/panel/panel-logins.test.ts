import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_PANEL_CODES,
  MAX_PANEL_SESSIONS,
  PANEL_CODE_LIFE_MS,
  PANEL_SESSION_IDLE_MS,
  PANEL_SESSION_LIFE_MS,
  PanelLogins,
} from '../../../src/capabilities/panel/panel-logins.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { TestClock } from '../../support/test-clock.ts';

function setUp() {
  const clock = new TestClock();
  return { clock, logins: new PanelLogins({ clock }) };
}

const fails = (code: string) => (error: unknown) => error instanceof SvcError && error.code === code;

test('a code opens once, and not after its time', () => {
  const { clock, logins } = setUp();
  const { code } = logins.openCode();
  assert.ok(!logins.redeem(`${code}x`));
  assert.ok(logins.redeem(code));
  assert.ok(!logins.redeem(code));
  const late = logins.openCode();
  assert.equal(late.expiresAt, clock.now() + PANEL_CODE_LIFE_MS);
  clock.advance(PANEL_CODE_LIFE_MS);
  assert.ok(!logins.redeem(late.code));
});

test('the number of codes is limited, and expired codes free their slots', () => {
  const { clock, logins } = setUp();
  for (let i = 0; i < MAX_PANEL_CODES; i++) logins.openCode();
  assert.throws(() => logins.openCode(), fails('rate_limited'));
  clock.advance(PANEL_CODE_LIFE_MS);
  logins.openCode();
});

test('a session lasts while it is used, and ends a week after its beginning', () => {
  const { clock, logins } = setUp();
  const { id, token, createdAt } = logins.begin();
  const ended: number[] = [];
  logins.onEnd(id, () => ended.push(clock.now()));
  while (clock.now() + PANEL_SESSION_IDLE_MS <= createdAt + PANEL_SESSION_LIFE_MS) {
    assert.equal(logins.holder(token), id);
    clock.advance(PANEL_SESSION_IDLE_MS - 1);
  }
  assert.equal(logins.holder(token), id);
  clock.advance(PANEL_SESSION_IDLE_MS);
  assert.equal(logins.holder(token), null);
  assert.deepEqual(ended, [createdAt + PANEL_SESSION_LIFE_MS]);
});

test('an unused session expires and aborts its requests', () => {
  const { clock, logins } = setUp();
  const { id, token } = logins.begin();
  let cut = 0;
  logins.onEnd(id, () => cut++);
  const forget = logins.onEnd(id, () => assert.fail('the listener was removed'));
  forget();
  clock.advance(PANEL_SESSION_IDLE_MS - 1);
  assert.equal(cut, 0);
  clock.advance(1);
  assert.equal(cut, 1);
  assert.equal(logins.holder(token), null);
});

test('sessions are listed without their tokens and ended by their ids', () => {
  const { logins } = setUp();
  const [one, two] = [logins.begin(), logins.begin()];
  assert.deepEqual(
    logins.list().map(({ id }) => id),
    [two.id, one.id],
  );
  assert.ok(!JSON.stringify(logins.list()).includes(one.token));
  logins.end(one.id);
  assert.equal(logins.holder(one.token), null);
  assert.equal(logins.holder(two.token), two.id);
  assert.throws(() => logins.end(one.id), fails('not_found'));
  const { code } = logins.openCode();
  logins.endAll();
  assert.equal(logins.holder(two.token), null);
  assert.ok(!logins.redeem(code));
});

test('at the limit of sessions, the least recently used one is evicted', () => {
  const { clock, logins } = setUp();
  const first = logins.begin();
  const second = logins.begin();
  for (let i = 2; i < MAX_PANEL_SESSIONS; i++) logins.begin();
  clock.advance(1000);
  logins.holder(first.token);
  logins.begin();
  assert.equal(logins.holder(second.token), null);
  assert.equal(logins.holder(first.token), first.id);
  assert.equal(logins.list().length, MAX_PANEL_SESSIONS);
});
