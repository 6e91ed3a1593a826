import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { LinkWorld, readAll, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const DAY_S = 86_400;

test('a link carries bytes both ways, and each side knows both agents', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox('http');
  const outgoing = await a.links.open(caller.aid, called.aid, 'http', { accessToken: 'sesame' });
  const [incoming] = inbox;
  assert.ok(incoming);
  for (const link of [outgoing, incoming]) {
    assert.equal(link.caller, caller.aid);
    assert.equal(link.called, called.aid);
    assert.equal(link.purpose, 'http');
    assert.equal(link.accessToken, 'sesame');
    assert.equal(link.path().kind, 'lan');
  }
  assert.deepEqual(outgoing.nodeKey, b.key.publicKey);
  assert.deepEqual(incoming.nodeKey, a.key.publicKey);
  assert.deepEqual(outgoing.path().remote, b.endpoint.address);
  incoming.pipe(incoming);
  outgoing.end('hello');
  assert.equal((await readAll(outgoing)).toString(), 'hello');
  assert.deepEqual(b.authorized, [
    {
      caller: caller.aid,
      called: called.aid,
      purpose: 'http',
      accessToken: 'sesame',
      nodeKey: a.key.publicKey,
      source: '127.0.0.1',
    },
  ]);
});

test('the called side may send first, and a caller that ends immediately still gets the whole response', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.links.accept('tcp', (link) => {
    link.write('220 ready\r\n');
    link.on('end', () => link.end('bye'));
    link.resume();
  });
  const link = await a.links.open(caller.aid, called.aid, 'tcp');
  assert.equal(String((await once(link, 'data'))[0]), '220 ready\r\n');
  link.end();
  assert.equal((await readAll(link)).toString(), 'bye');
});

test('the first bytes of a link are sent with its header', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox('tcp');
  let made = 0;
  const first = { bytes: () => Uint8Array.of(++made) };
  const madeBefore: number[] = [];
  b.authorize = async () => {
    await settle();
    madeBefore.push(made);
  };
  const links = [
    await a.links.open(caller.aid, called.aid, 'tcp', { first }),
    await a.links.open(caller.aid, called.aid, 'tcp', { first }),
  ];
  // Permission is requested before the answer, so bytes made earlier did not wait for the answer.
  assert.deepEqual(madeBefore, [1, 2]);
  for (const link of links) link.end();
  const received = await Promise.all(inbox.map((link) => readAll(link)));
  assert.deepEqual(
    received.map((bytes) => [...bytes]),
    [[1], [2]],
  );
});

test('a link with only first bytes ends after them, proven or not, local or remote', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const caller = a.host();
  const first = { bytes: () => Uint8Array.of(7), isAll: true };
  for (const at of [a, b]) {
    const called = at.host();
    const inbox = at.inbox('tcp');
    for (let i = 0; i < 2; i++) {
      const link = await a.links.open(caller.aid, called.aid, 'tcp', { first });
      await eventually('the link arrived', () => inbox.length > i);
      assert.deepEqual([...(await readAll(inbox[i] ?? assert.fail()))], [7]);
      inbox[i]?.end('read');
      assert.equal(String(await readAll(link)), 'read');
    }
  }
});

test('both directions of a pair of nodes, and all their agents, share one connection', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [a1, a2, b1, b2] = [a.host(), a.host(), b.host(), b.host()];
  a.echo();
  b.echo();
  const opened = [
    await a.links.open(a1.aid, b1.aid, 'tcp'),
    await a.links.open(a2.aid, b1.aid, 'tcp'),
    await a.links.open(a1.aid, b2.aid, 'tcp'),
    await b.links.open(b1.aid, a1.aid, 'tcp'),
  ];
  assert.equal(a.pool.stats().connections, 1);
  assert.equal(b.pool.stats().connections, 1);
  assert.equal(a.pool.stats().streams, opened.length);
  for (const link of opened) link.destroy();
});

test('a refusal by the called side arrives as its error, and its handler is not called', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox();
  for (const expected of ['access_denied', 'rate_limited', 'no_inbound'] as const) {
    b.authorize = async () => {
      throw new SvcError(expected);
    };
    await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode(expected));
  }
  b.authorize = () => {
    throw new TypeError('an error of the called side');
  };
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('protocol_error'));
  b.authorize = () => {};
  await assert.rejects(a.links.open(caller.aid, called.aid, 'object'), withCode('protocol_error'));
  assert.equal(inbox.length, 0);
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  assert.equal(a.pool.stats().connections, 1);
});

test('a link handler that throws affects only that link', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.links.accept('tcp', () => {
    throw new Error('an error of the handler');
  });
  b.echo('http');
  const link = await a.links.open(caller.aid, called.aid, 'tcp');
  await assert.rejects(readAll(link), { code: 'stream_reset' });
  (await a.links.open(caller.aid, called.aid, 'http')).destroy();
});

test('the handler of a purpose can reject permitted links, local and remote', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, localCaller, called] = [a.host(), b.host(), b.host()];
  const asked: string[] = [];
  let full = true;
  b.authorize = ({ purpose }) => void asked.push(`permission ${purpose}`);
  b.links.accept(
    'tcp',
    (link) => link.destroy(),
    (request) => {
      asked.push(`room for ${request.caller === caller.aid ? 'caller' : 'local caller'}`);
      if (full) throw new SvcError('rate_limited');
    },
  );
  b.echo('http');
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('rate_limited'));
  await assert.rejects(b.links.open(localCaller.aid, called.aid, 'tcp'), withCode('rate_limited'));
  (await a.links.open(caller.aid, called.aid, 'http')).destroy();
  full = false;
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  assert.deepEqual(asked, [
    'permission tcp',
    'room for caller',
    'permission tcp',
    'room for local caller',
    'permission http',
    'permission tcp',
    'room for caller',
  ]);
  b.authorize = () => {
    throw new SvcError('access_denied');
  };
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('access_denied'));
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), /pass access_token/);
  for (const from of [a, b])
    await assert.rejects(
      from.links.open(from === a ? caller.aid : called.aid, called.aid, 'tcp', { accessToken: 'wrong' }),
      /the access token was not accepted/,
    );
  assert.equal(asked.length, 7);
});

test('a purpose has one handler', async () => {
  await using world = new LinkWorld();
  const a = await world.node();
  a.echo();
  assert.throws(() => a.echo());
});

test('a reset arrives as a reset', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox();
  const outgoing = await a.links.open(caller.aid, called.aid, 'tcp');
  outgoing.destroy();
  const [incoming] = inbox;
  assert.ok(incoming);
  await assert.rejects(readAll(incoming), { code: 'stream_reset' });
});

test('opening a link times out, or is cancelled, without delay', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  b.authorize = () => new Promise(() => {});
  const late = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp', { timeoutMs: 700 }), withCode('timeout'));
  await settle();
  clock.advance(700);
  await late;
  const stop = new AbortController();
  const cancelled = assert.rejects(
    a.links.open(caller.aid, called.aid, 'tcp', { signal: stop.signal }),
    withCode('cancelled'),
  );
  await settle();
  stop.abort();
  await cancelled;
  await settle();
  assert.equal(a.pool.stats().streams, 0, 'aborted streams are closed');
  await assert.rejects(
    a.links.open(caller.aid, called.aid, 'tcp', { signal: AbortSignal.abort() }),
    withCode('cancelled'),
  );
});

test('an unknown local agent, or one with an expired delegation, cannot call', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const called = b.host();
  await assert.rejects(a.links.open(newIdentity().aid, called.aid, 'tcp'), withCode('not_found'));
  const now = clock.now() / 1000;
  const expired = a.host(delegateAnew(newIdentity().master, now - 1000, now - 500));
  await assert.rejects(a.links.open(expired.aid, called.aid, 'tcp'), withCode('bad_delegation'));
});

test('a delegation that expires during a connection ends the calls', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const now = clock.now() / 1000;
  const [caller, called] = [a.host(), b.host(delegateAnew(newIdentity().master, now, now + 600))];
  b.inbox();
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  clock.jump(500_000);
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  clock.jump(200_000);
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('protocol_error'));
});

test('if a clock was set back on either side, the error names the clock', async () => {
  const [ours, theirs] = [new TestClock(), new TestClock()];
  await using world = new LinkWorld(ours);
  const [a, b] = [await world.node(), await world.node({ clock: theirs })];
  const now = ours.now() / 1000;
  b.inbox();
  const [young, old] = [now - 60, now - 9 * DAY_S];
  const made = (issuedAt: number) => delegateAnew(newIdentity().master, issuedAt);
  const [newCaller, newCalled] = [a.host(made(young)), b.host(made(young))];
  const [oldCaller, oldCalled] = [a.host(made(old)), b.host(made(old))];
  const named = (whose: RegExp) => (error: unknown) => withCode('clock_wrong')(error) && whose.test(String(error));
  theirs.jump(-2 * DAY_S * 1000);
  await assert.rejects(a.links.open(newCaller.aid, oldCalled.aid, 'tcp'), named(/other node's clock/));
  theirs.jump(2 * DAY_S * 1000);
  ours.jump(-2 * DAY_S * 1000);
  await assert.rejects(a.links.open(oldCaller.aid, newCalled.aid, 'tcp'), named(/clock of this machine/));
  await assert.rejects(a.links.open(newCaller.aid, oldCalled.aid, 'tcp'), named(/clock of this machine/));
});

test('a rotated operational key is proven again on the open connection', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox();
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  a.host(delegateAnew(caller.master, caller.delegation.issuedAt + 10));
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  assert.equal(inbox.length, 2);
  // The attacker with the old key uses another node.
  const attacker = await world.node();
  attacker.host(caller);
  await assert.rejects(attacker.links.open(caller.aid, called.aid, 'tcp'), withCode('access_denied'));
  assert.equal(inbox.length, 2);
});

test('a replaced delegation that was accepted on an open connection is no longer valid', async () => {
  await using world = new LinkWorld();
  const [owner, attacker, b] = [await world.node(), await world.node(), await world.node()];
  const called = b.host();
  b.inbox();
  const stolen = attacker.host();
  (await attacker.links.open(stolen.aid, called.aid, 'tcp')).destroy();
  owner.host(delegateAnew(stolen.master, stolen.delegation.issuedAt + 10));
  (await owner.links.open(stolen.aid, called.aid, 'tcp')).destroy();
  await assert.rejects(attacker.links.open(stolen.aid, called.aid, 'tcp'), withCode('access_denied'));
});

test('a called agent with an older delegation than its record is rejected', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  const newer = { ...b.location(called), delegationIssuedAt: called.delegation.issuedAt + 1 };
  world.directory.set(called.aid, newer);
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('protocol_error'));
});

test('agents of one daemon talk through memory, with the same permissions and the same names', async () => {
  await using world = new LinkWorld();
  const a = await world.node();
  const [caller, called] = [a.host(), a.host()];
  const inbox = a.inbox();
  const outgoing = await a.links.open(caller.aid, called.aid, 'tcp', { accessToken: 'sesame' });
  const [incoming] = inbox;
  assert.ok(incoming);
  for (const link of [outgoing, incoming]) {
    assert.equal(link.caller, caller.aid);
    assert.equal(link.called, called.aid);
    assert.equal(link.nodeKey, null);
    assert.deepEqual(link.path(), { kind: 'local', remote: null, source: null, rttMs: 0 });
  }
  const request = { caller: caller.aid, called: called.aid, purpose: 'tcp', accessToken: 'sesame' };
  assert.deepEqual(a.authorized, [{ ...request, nodeKey: null, source: null }]);
  incoming.pipe(incoming);
  outgoing.end('hello');
  assert.equal((await readAll(outgoing)).toString(), 'hello');
  a.authorize = () => {
    throw new SvcError('access_denied');
  };
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('access_denied'));
  await assert.rejects(a.links.open(caller.aid, called.aid, 'note'), withCode('protocol_error'));
  assert.equal(a.pool.stats().connections, 0);
});

test('the stored newest delegations count too', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  b.newest.set(caller.aid, caller.delegation.issuedAt + 1);
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('access_denied'));
  assert.deepEqual(b.noted, [[caller.aid, caller.delegation.issuedAt]]);
});

test('the delegation of a rejected caller is not stored', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  b.authorize = () => {
    throw new SvcError('access_denied');
  };
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('access_denied'));
  assert.deepEqual(b.noted, []);
  b.authorize = () => {};
  b.isAdmitted = () => false;
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  assert.deepEqual(b.noted, []);
  b.isAdmitted = () => true;
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  assert.deepEqual(b.noted, [[caller.aid, caller.delegation.issuedAt]]);
});

test('after a stop no timer runs and no connection is open', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.echo();
  await a.links.open(caller.aid, called.aid, 'tcp');
  await a.stop();
  await b.stop();
  await settle();
  assert.equal(clock.timers, 0);
  assert.equal(a.pool.stats().connections, 0);
  await assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), SvcError);
});

describe('while the newest record of an agent is looked up', () => {
  test('the likely node is dialed, and the link to the resolved node uses that connection', async () => {
    await using world = new LinkWorld();
    const [a, b] = [await world.node(), await world.node()];
    const [caller, called] = [a.host(), b.host()];
    const inbox = b.inbox('tcp');
    const certain = Promise.withResolvers<void>();
    world.certain = certain.promise;
    world.likely.set(called.aid, b.location(called));
    const opened = a.links.open(caller.aid, called.aid, 'tcp');
    await settle();
    assert.ok(a.pool.current(b.key.publicKey), 'connected');
    assert.deepEqual(inbox, [], 'no link is opened yet');
    certain.resolve();
    assert.deepEqual((await opened).nodeKey, b.key.publicKey);
    assert.equal(b.pool.connections().length, 1);
  });

  test('a likely node that turns out to be outdated does not learn which agent is called', async () => {
    await using world = new LinkWorld();
    const [a, b, old] = [await world.node(), await world.node(), await world.node()];
    const [caller, called] = [a.host(), b.host()];
    b.inbox('tcp');
    world.likely.set(called.aid, old.location(called));
    const link = await a.links.open(caller.aid, called.aid, 'tcp');
    assert.deepEqual(link.nodeKey, b.key.publicKey);
    assert.deepEqual(old.authorized, []);
  });

  test('an unreachable likely node does not delay the resolved one', async () => {
    await using world = new LinkWorld();
    const [a, b] = [await world.node(), await world.node()];
    const [caller, called] = [a.host(), b.host()];
    b.inbox('tcp');
    world.likely.set(called.aid, b.location(called, [{ host: '127.0.0.1', port: 1 }]));
    const link = await a.links.open(caller.aid, called.aid, 'tcp');
    assert.deepEqual(link.nodeKey, b.key.publicKey);
  });

  test('a node with a replaced delegation is not dialed', async () => {
    await using world = new LinkWorld();
    const [a, b, old] = [await world.node(), await world.node(), await world.node()];
    const [caller, called] = [a.host(), b.host()];
    b.inbox('tcp');
    a.newest.set(called.aid, called.delegation.issuedAt);
    world.likely.set(called.aid, { ...old.location(called), delegationIssuedAt: called.delegation.issuedAt - 1 });
    await a.links.open(caller.aid, called.aid, 'tcp');
    assert.equal(a.pool.current(old.key.publicKey), null);
    assert.deepEqual(old.pool.connections(), []);
  });
});

test('the node of an agent that the owner did not choose stays a stranger', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox('http');
  await a.links.open(caller.aid, called.aid, 'http', { isUnasked: true });
  assert.equal(a.pool.known.has(b.key.publicKey), false);
  await a.links.open(caller.aid, called.aid, 'http');
  assert.equal(a.pool.known.has(b.key.publicKey), true);
});
