import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ruleAllows } from '../../../src/foundation/domain/exposures.ts';
import { resetAfterRestore } from '../../../src/foundation/moving/node-restore.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { exposuresOf } from '../../support/public-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const HOST = 'demo.vps.test';
const REQUEST = { method: 'GET', target: '/', isSteered: false, authorization: undefined, address: '192.0.2.1' };

function code(expected: string) {
  return (error: unknown) => {
    assert.equal((error as { code?: string }).code, expected);
    return true;
  };
}

test('a rule allows its method, its path and the paths below it', () => {
  const rules = ['POST /hooks/github', 'GET /files/'];
  const allowed = (method: string, target: string): boolean => ruleAllows(rules, method, target);
  assert.ok(allowed('POST', '/hooks/github'));
  assert.ok(allowed('POST', '/hooks/github/1?x=/../y'));
  assert.ok(allowed('GET', '/files/a'));
  assert.ok(allowed('HEAD', '/files/a'));
  assert.ok(!allowed('GET', '/hooks/github'));
  assert.ok(!allowed('POST', '/hooks/github2'));
  assert.ok(!allowed('GET', '/files'));
  assert.ok(ruleAllows(['* /'], 'DELETE', '/any'));
  for (const path of [
    '/hooks/github/../admin',
    '/hooks/github/%2e%2E/admin',
    '/hooks/github/..%2fadmin',
    '/hooks/github//admin',
    '/hooks/github/..;/admin',
    '/hooks/github/\\..',
    '/hooks/github/.%252e',
    '/hooks/github/..',
  ])
    assert.ok(!allowed('POST', path), path);
});

test('modes and tokens decide about a request', () => {
  const { store, aids } = storeWithAgents(1);
  const exposures = exposuresOf(store);
  const [aid] = aids;
  assert.ok(aid);
  const only = exposures.open(aid, HOST, { mode: 'only', rules: ['POST /hook'] });
  assert.throws(() => exposures.admit(HOST, REQUEST), code('unauthorized'));
  const hook = { ...REQUEST, method: 'POST', target: '/hook' };
  assert.equal(exposures.admit(HOST, hook).token, null);
  assert.throws(() => exposures.admit(HOST, { ...hook, isSteered: true }), code('unauthorized'));
  const limited = exposures.addToken(only.id, 'limited', ['GET /a'], null);
  const authorization = `Bearer ${limited.token}`;
  assert.equal(exposures.admit(HOST, { ...REQUEST, target: '/a', authorization }).token?.label, 'limited');
  assert.throws(() => exposures.admit(HOST, { ...REQUEST, target: '/b', authorization }), code('access_denied'));
  // A request that needs no token passes with any.
  assert.equal(exposures.admit(HOST, { ...hook, authorization }).exposure.id, only.id);
  assert.throws(() => exposures.addToken(only.id, 'limited', [], null), code('wrong_state'));
  exposures.open(aid, HOST, { mode: 'public', rules: [] });
  assert.equal(exposures.admit(HOST, REQUEST).exposure.id, only.id);
  assert.throws(() => exposures.admit('other.vps.test', REQUEST), code('not_found'));
  assert.throws(() => exposures.removeToken(only.id, 'other'), code('not_found'));
  assert.equal(exposures.list().length, 1);
});

test('a token ends at its time, and an admission with it', () => {
  const clock = new TestClock();
  const { store, aids } = storeWithAgents(1);
  const exposures = exposuresOf(store, clock);
  const [aid] = aids;
  assert.ok(aid);
  const { id } = exposures.open(aid, HOST, { mode: 'tokens', rules: [] });
  const { token } = exposures.addToken(id, 'short', [], clock.now() + 1000);
  const authorization = `bearer ${token}`;
  const admission = exposures.admit(HOST, { ...REQUEST, authorization });
  assert.ok(exposures.stillAdmits(admission));
  clock.advance(1000);
  assert.ok(!exposures.stillAdmits(admission));
  assert.throws(() => exposures.admit(HOST, { ...REQUEST, authorization }), code('unauthorized'));
});

test('nothing is exposed by a restored backup, until the owner exposes the agent again', () => {
  const { store, aids } = storeWithAgents(1);
  const [aid] = aids;
  assert.ok(aid);
  const before = exposuresOf(store);
  const { id } = before.open(aid, HOST, { mode: 'tokens', rules: [] });
  const { token } = before.addToken(id, 'laptop', [], null);
  const authorization = `Bearer ${token}`;
  assert.equal(exposuresOf(store).admit(HOST, { ...REQUEST, authorization }).token?.label, 'laptop');
  store.run(
    'INSERT INTO public_names (name, aid, entry, held_at, seen_at, due_at) VALUES (?, ?, ?, 1, 1, 1)',
    HOST,
    aid,
    aid,
  );
  resetAfterRestore(store);
  assert.deepEqual(store.all('SELECT name FROM public_names'), []);
  const after = exposuresOf(store);
  assert.equal(after.served(HOST), null);
  assert.equal(after.list()[0]?.isOn, false);
  assert.throws(() => after.admit(HOST, { ...REQUEST, authorization }), code('not_found'));
  after.open(aid, HOST, { mode: 'tokens', rules: [] });
  assert.equal(after.admit(HOST, { ...REQUEST, authorization }).token?.label, 'laptop');
});

test('the token is stored as a hash only', () => {
  const { store, aids } = storeWithAgents(1);
  const [aid] = aids;
  assert.ok(aid);
  const exposures = exposuresOf(store);
  const { id } = exposures.open(aid, HOST, { mode: 'tokens', rules: [] });
  const { token } = exposures.addToken(id, 'laptop', [], null);
  const rows = store.all('SELECT * FROM exposure_tokens');
  assert.ok(!JSON.stringify(rows).includes(token.slice(5, 20)));
  assert.equal(rows.length, 1);
});

test('an agent that is deleted has no address, and the address of another agent stays', () => {
  const { store, aids } = storeWithAgents(2);
  const [one, other] = aids;
  assert.ok(one && other);
  const exposures = exposuresOf(store);
  const changes: string[] = [];
  exposures.onChange((host) => changes.push(host));
  exposures.open(one, 'a.vps.test', { mode: 'public', rules: [] });
  exposures.open(other, 'b.vps.test', { mode: 'public', rules: [] });
  assert.throws(() => exposures.open(other, 'a.vps.test', { mode: 'public', rules: [] }), code('wrong_state'));
  exposures.forget(one);
  assert.deepEqual(changes, ['a.vps.test', 'b.vps.test', 'a.vps.test']);
  assert.deepEqual(
    exposures.list().map(({ host }) => host),
    ['b.vps.test'],
  );
});
