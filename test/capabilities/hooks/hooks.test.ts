import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  HOOK_CALL_WAIT_MS,
  HOOK_STARTS_PER_STRANGER,
  HOOKS_PARALLEL,
  HOOKS_PARALLEL_PER_SOURCE,
  HOOKS_PARALLEL_RESERVED,
  MAX_HOOK_CALLS,
  MAX_HOOK_CALLS_PER_CALLER,
  MAX_HOOK_CALLS_RESERVED,
  MAX_HOOK_DEAD,
  MAX_HOOK_FAILURES,
  MAX_HOOK_WAITING_OF_STRANGERS,
  MAX_HOOK_WAITING_PER_STRANGER,
} from '../../../src/foundation/domain/hooks.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { testAid } from '../../support/agents.ts';
import { friend, HookWorld, stranger } from '../../support/hook-world.ts';

const MINUTE_MS = 60_000;

function counts(world: HookWorld, id: string) {
  return world.hooks.get(id).counts;
}

test('a note starts the program with the item on standard input, and exit code 0 acknowledges it', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('cat >>log; echo "$SVC_FROM $SVC_ATTEMPT" >>log; echo said');
  await world.hooks.start();
  world.receive(stranger, 'a1');
  await world.until('the end', () => counts(world, hook.id).done === 1);
  const [item = '', environment] = world.lines();
  const { kind, aid, from, attempt, note } = JSON.parse(item) as Record<string, unknown>;
  assert.deepEqual(
    { kind, aid, from, attempt, note },
    {
      kind: 'note',
      aid: world.aid,
      from: stranger,
      attempt: 1,
      note: { message_id: 'a1' },
    },
  );
  assert.equal(environment, `${stranger} 1`);
  assert.deepEqual(world.acknowledged, ['a1']);
  const [delivery] = world.hooks.deliveries(hook.id, undefined, Number.MAX_SAFE_INTEGER, 10);
  assert.equal(delivery?.output, 'said\n');
  await world.until('the folder is gone', () => readdirSync(join(world.folder, 'runs')).length === 0);
});

test('an event that is rolled back leaves no delivery', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('true');
  world.notes.set('a1', stranger);
  assert.throws(() =>
    world.database.store.transaction(() => {
      world.hooks.emitted(world.aid, 'mailbox.received', { count: 1, message_ids: ['a1'] });
      throw new Error('full');
    }),
  );
  assert.equal(counts(world, hook.id).waiting, 0);
});

test('a conversation is handled in order, one item at a time, also after a failure', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const script = 'read -r item; echo "begin $item" | cut -c1-5 >>log; echo "$item" | grep -o "m[0-9]" >>log';
  const { hook } = world.add(`${script}; [ -f fixed ] || exit 4; echo end >>log`);
  await world.hooks.start();
  world.receive(friend, 'm1', 'm2', 'm3');
  await world.until('the first failure', () => counts(world, hook.id).running === 0 && world.lines().length === 2);
  assert.deepEqual(world.lines(), ['begin', 'm1']);
  writeFileSync(join(world.folder, 'fixed'), '');
  await world.clock.run(1000);
  await world.until('the end', () => counts(world, hook.id).done === 3);
  assert.deepEqual(world.lines().slice(2), ['begin', 'm1', 'end', 'begin', 'm2', 'end', 'begin', 'm3', 'end']);
});

test('after the last failure a delivery is dead, and the next item starts; a retry has all attempts again', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const { hook } = world.add('read -r item; case "$item" in *m1*) echo "$SVC_ATTEMPT" >>log; [ -f fixed ];; esac');
  await world.hooks.start();
  world.receive(friend, 'm1', 'm2');
  await world.until('it is dead', async () => {
    await world.clock.run(1000);
    return counts(world, hook.id).dead === 1;
  });
  assert.deepEqual(
    world.lines(),
    Array.from({ length: MAX_HOOK_FAILURES }, (_, i) => String(i + 1)),
  );
  assert.deepEqual(world.emitted, ['hook.dead']);
  await world.until('the next item', () => counts(world, hook.id).done === 1);
  assert.deepEqual(world.acknowledged, ['m2']);
  const [dead] = world.hooks.deliveries(hook.id, 'dead', Number.MAX_SAFE_INTEGER, 10);
  assert.equal(dead?.problem, 'The program exited with code 1.');
  writeFileSync(join(world.folder, 'fixed'), '');
  world.hooks.retry(hook.id, dead.id);
  await world.until('the retry', () => counts(world, hook.id).done === 2);
  assert.equal(world.lines().at(-1), '1');
  assert.throws(() => world.hooks.retry(hook.id, dead.id), { code: 'wrong_state' });
});

test('a start that fails because the system has no room does not count, and names the cause', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const { hook } = world.add('echo "$SVC_ATTEMPT" >>log');
  await world.hooks.start();
  world.receive(friend, 'm1');
  const first = () => world.hooks.deliveries(hook.id, undefined, Number.MAX_SAFE_INTEGER, 1)[0];
  let tries = 0;
  world.startError = Object.defineProperty(new Error('no room'), 'code', {
    get: () => {
      tries++;
      return 'EAGAIN';
    },
  });
  await world.until('more tries than failures are allowed', async () => {
    await world.clock.run(1000);
    return tries > 3 * MAX_HOOK_FAILURES;
  });
  assert.deepEqual([counts(world, hook.id).waiting + counts(world, hook.id).running, first()?.failures], [1, 0]);
  assert.match(first()?.problem ?? '', /^The program could not be started \(EAGAIN\)\. This user can start no more/);
  world.startError = null;
  await world.until('the end', async () => {
    await world.clock.run(1000);
    return counts(world, hook.id).done === 1;
  });
  assert.deepEqual(world.lines(), ['1']);
});

test('a shell that finds no process for the program is a start that failed, not a killed program', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const { hook } = world.add('echo "$SVC_ATTEMPT" >>log');
  world.forksFail = true;
  await world.hooks.start();
  world.receive(friend, 'm1');
  const first = () => world.hooks.deliveries(hook.id, undefined, Number.MAX_SAFE_INTEGER, 1)[0];
  await world.until('the failure is known', async () => {
    await world.clock.run(1000);
    return first()?.problem !== undefined && first()?.problem !== '';
  });
  assert.match(first()?.problem ?? '', /could not be started \(EAGAIN\)\. This user can start no more processes/);
  assert.equal(first()?.failures, 0);
  world.forksFail = false;
  await world.until('the end', async () => {
    await world.clock.run(1000);
    return counts(world, hook.id).done === 1;
  });
  assert.deepEqual(world.lines(), ['1']);
});

test('10,000 notes of one stranger start no more programs than its budget, and a friend is served immediately', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const { hook } = world.add('echo "$SVC_FROM" >>log');
  await world.hooks.start();
  const ids = Array.from({ length: 10_000 }, (_, i) => `f${i}`);
  world.receive(stranger, ...ids);
  const { counts: waiting, hook: stored } = world.hooks.get(hook.id);
  assert.equal(waiting.waiting, MAX_HOOK_WAITING_PER_STRANGER);
  assert.equal(stored.skipped, 10_000 - MAX_HOOK_WAITING_PER_STRANGER);
  await world.until('the burst', () => world.lines().length === HOOK_STARTS_PER_STRANGER);
  const minutes = 3;
  for (let minute = 1; minute <= minutes; minute++) {
    const before = world.clock.now();
    const budget = HOOK_STARTS_PER_STRANGER * (minute + 1);
    await world.until('the budget of a minute', async () => {
      if (world.clock.now() - before < MINUTE_MS - 1000) await world.clock.run(1000);
      return world.lines().length >= budget - 1;
    });
    await world.clock.run(MINUTE_MS - (world.clock.now() - before));
    assert.ok(world.lines().length <= budget, `${world.lines().length} starts`);
  }
  world.receive(friend, 'of a friend');
  await world.until('the friend', () => world.lines().includes(friend));
});

test('strangers leave places for friends', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const { hook } = world.add('echo "$SVC_FROM" >>log; while [ ! -f over ]; do sleep 0.02; done', { parallel: 64 });
  await world.hooks.start();
  for (let i = 0; i < HOOKS_PARALLEL; i++) {
    world.addresses.set(testAid(200 + i), `198.51.${100 + i}.7`);
    world.receive(testAid(200 + i), `s${i}`);
  }
  await world.until('strangers', () => world.lines().length === HOOKS_PARALLEL - HOOKS_PARALLEL_RESERVED);
  world.receive(friend, 'f');
  await world.until('the friend', () => world.lines().includes(friend));
  assert.equal(world.lines().length, HOOKS_PARALLEL - HOOKS_PARALLEL_RESERVED + 1);
  writeFileSync(join(world.folder, 'over'), '');
  await world.until('the end', () => counts(world, hook.id).done === HOOKS_PARALLEL + 1);
});

test('many senders at one address take few places, and no turns of others', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo "$SVC_FROM" >>log; while [ ! -f over ]; do sleep 0.02; done', { parallel: 64 });
  const flood = Array.from({ length: 40 }, (_, i) => testAid(500 + i));
  for (const [i, one] of flood.entries()) {
    world.addresses.set(one, '203.0.113.5');
    for (let note = 0; note < 100; note++) world.receive(one, `f${i}-${note}`);
  }
  await world.hooks.start();
  const ofFlood = () => world.lines().filter((from) => flood.includes(from as Aid)).length;
  await world.until('the flood', () => ofFlood() === HOOKS_PARALLEL_PER_SOURCE);
  // The queue of the flood is full of one address: others still find room, and are next.
  const others = Array.from({ length: 3 }, (_, i) => testAid(600 + i));
  for (const [i, one] of others.entries()) {
    world.addresses.set(one, `198.51.${100 + i}.7`);
    world.receive(one, `o${i}`);
  }
  await world.until('all others', () => others.every((one) => world.lines().includes(one)));
  assert.equal(ofFlood(), HOOKS_PARALLEL_PER_SOURCE);
  assert.equal(world.hooks.get(hook.id).counts.running, HOOKS_PARALLEL_PER_SOURCE + others.length);
  writeFileSync(join(world.folder, 'over'), '');
});

test('a flood without places is read once for each search', async (t) => {
  const world = new HookWorld(t);
  world.add('echo "$SVC_FROM" >>log; while [ ! -f over ]; do sleep 0.02; done', { parallel: 64 });
  const flood = Array.from({ length: 510 }, (_, i) => testAid(500 + i));
  for (const [i, one] of flood.entries()) {
    world.addresses.set(one, '203.0.113.5');
    world.receive(one, `f${i}`);
  }
  const reads = t.mock.method(world.store.open, 'due');
  await world.hooks.start();
  await world.until('the flood', () => world.lines().length === HOOKS_PARALLEL_PER_SOURCE);
  const rows = reads.mock.calls.map(({ result }) => result?.length);
  assert.deepEqual(rows, [500, 0]);
  writeFileSync(join(world.folder, 'over'), '');
});

test('networks take turns, then their sources, then their senders; known senders come first', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  world.add('while [ ! -f over ]; do sleep 0.02; done', { parallel: 64 });
  const [a, b, c, d] = [testAid(701), testAid(702), testAid(703), testAid(704)];
  world.addresses.set(a, '203.0.113.5').set(b, '203.0.113.5').set(c, '203.0.113.6').set(d, '198.51.100.7');
  for (const [i, from] of [a, b, c, d, friend].entries()) world.receive(from, `m${i}`);
  await world.hooks.start();
  await world.until('all', () => world.started.length === 5);
  assert.deepEqual(world.started, [friend, a, d, c, b]);
  // Another network is next, then the sender of its source that has not started a program.
  world.receive(a, 'a2');
  world.receive(d, 'd2');
  writeFileSync(join(world.folder, 'over'), '');
  await world.until('the others', () => world.started.length === 7);
  assert.deepEqual(world.started.slice(5).toSorted(), [a, d].toSorted());
});

test('hooks run as many programs at a time as their owner allows, and others are not kept waiting', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const narrow = world.add('while [ ! -f over ]; do sleep 0.02; done', { parallel: 2 }).hook.id;
  const other = world.add('true', { senders: [friend] }).hook.id;
  for (let i = 0; i < 4; i++) {
    world.addresses.set(testAid(800 + i), `198.51.${i}.7`);
    world.receive(testAid(800 + i), `m${i}`);
  }
  await world.hooks.start();
  await world.until('two programs', () => world.started.length === 2);
  world.receive(friend, 'f');
  await world.until('the other hook', () => counts(world, other).done === 1);
  assert.deepEqual([counts(world, narrow).running, counts(world, narrow).waiting], [2, 3]);
  writeFileSync(join(world.folder, 'over'), '');
  await world.until('the end', () => counts(world, narrow).done === 5);
});

test('a delivery that the disk rejects starts when it accepts it again', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo x >>log');
  await world.hooks.start();
  const free = world.fillDisk();
  world.receive(stranger, 'm1');
  await world.clock.run(MINUTE_MS);
  assert.deepEqual([world.started, counts(world, hook.id).waiting], [[], 1]);
  free();
  await world.clock.run(MINUTE_MS);
  await world.until('the end', () => counts(world, hook.id).done === 1);
  assert.deepEqual(world.lines(), ['x']);
});

test('a result that the disk rejects is stored later, and the program does not run again', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo x >>log; while [ ! -f over ]; do sleep 0.02; done');
  await world.hooks.start();
  world.receive(stranger, 'm1');
  await world.until('the start', () => world.lines().length === 1);
  const free = world.fillDisk();
  writeFileSync(join(world.folder, 'over'), '');
  await world.until('the end of the program', () => world.hooks.active === 0);
  assert.equal(counts(world, hook.id).running, 1);
  free();
  await world.clock.run(MINUTE_MS);
  await world.until('the result', () => counts(world, hook.id).done === 1);
  assert.deepEqual([world.lines(), world.acknowledged], [['x'], ['m1']]);
});

test('a retry that a clock planned that was ahead is due when it is right', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('[ -f fixed ]');
  await world.hooks.start();
  world.clock.jump(365 * 86_400_000);
  world.receive(stranger, 'm1');
  await world.until('the failure', () => world.hooks.deliveries(hook.id, 'waiting', 99, 1)[0]?.failures === 1);
  world.clock.jump(-365 * 86_400_000);
  writeFileSync(join(world.folder, 'fixed'), '');
  await world.until('the end', async () => {
    await world.clock.run(1000);
    return counts(world, hook.id).done === 1;
  });
});

test('a full queue admits a sender of another network and evicts a delivery of the largest holder', (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('true');
  const networks = 4;
  for (let i = 0; i < networks * 10; i++) {
    const sender = testAid(700 + i);
    world.addresses.set(sender, `203.${i % networks}.113.${1 + Math.floor(i / 10)}`);
    for (let note = 0; note < MAX_HOOK_WAITING_OF_STRANGERS / (networks * 10); note++)
      world.receive(sender, `${i}-${note}`);
  }
  const before = world.hooks.get(hook.id);
  assert.equal(before.counts.waiting, MAX_HOOK_WAITING_OF_STRANGERS);
  world.addresses.set(stranger, '198.51.100.7');
  world.receive(stranger, 'late');
  const after = world.hooks.get(hook.id);
  assert.deepEqual(
    [after.counts.waiting, after.hook.skipped],
    [MAX_HOOK_WAITING_OF_STRANGERS, before.hook.skipped + 1],
  );
  assert.ok(world.store.open.due(world.clock.now(), 500, []).some(({ item }) => item.peer === stranger));
});

test('dead deliveries of one stranger do not push out those of others', (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('true');
  const end = (sender: Aid, id: string): void => {
    world.receive(sender, id);
    const found = world.hooks.deliveries(hook.id, 'waiting', Number.MAX_SAFE_INTEGER, 1)[0];
    assert.ok(found !== undefined);
    const result = { state: 'dead', dueAt: 0, failed: true, exitCode: 1, problem: '', output: '' } as const;
    world.store.settle(found, result, 0);
  };
  end(stranger, 'first');
  const flood = testAid(500);
  world.addresses.set(flood, '203.0.113.5');
  for (let i = 0; i < MAX_HOOK_DEAD; i++) end(flood, `f${i}`);
  const dead = world.hooks.deliveries(hook.id, 'dead', Number.MAX_SAFE_INTEGER, MAX_HOOK_DEAD);
  assert.equal(dead.length, MAX_HOOK_DEAD);
  assert.equal(dead.at(-1)?.peer, stranger);
});

test('a paused hook keeps items', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo x >>log');
  await world.hooks.start();
  world.hooks.setPaused(hook.id, true);
  world.receive(stranger, 'a1');
  await world.clock.run(MINUTE_MS);
  assert.equal(counts(world, hook.id).waiting, 1);
  world.hooks.setPaused(hook.id, false);
  await world.until('the end', () => counts(world, hook.id).done === 1);
});

test('a program that takes too long is stopped, and counts as failed', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo x >>log; exec sleep 1000', { timeoutMs: 2000 });
  await world.hooks.start();
  world.receive(stranger, 'a1');
  await world.until('the start', () => world.lines().length === 1);
  await world.clock.run(2000);
  const [delivery] = await world.until('the failure', () => {
    const found = world.hooks.deliveries(hook.id, 'waiting', Number.MAX_SAFE_INTEGER, 1);
    return found[0]?.failures === 1 && found;
  });
  assert.equal(delivery?.problem, 'The program took longer than its time limit.');
});

test('a stop ends programs, and the next daemon starts them again with the same key', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo "$SVC_IDEMPOTENCY_KEY $SVC_ATTEMPT" >>log; [ -f next ] || exec sleep 1000');
  await world.hooks.start();
  world.receive(stranger, 'a1');
  await world.until('the start', () => world.lines().length === 1);
  await world.hooks.stop();
  assert.equal(world.hooks.active, 0);
  const [stopped] = world.hooks.deliveries(hook.id, 'waiting', Number.MAX_SAFE_INTEGER, 1);
  assert.equal(stopped?.failures, 0);
  writeFileSync(join(world.folder, 'next'), '');
  await world.open().start();
  await world.until('the end', () => counts(world, hook.id).done === 1);
  const key = stopped?.key ?? '';
  assert.deepEqual(world.lines(), [`${key} 1`, `${key} 2`]);
});

test('a program that outlives its daemon is not started a second time, and its result counts', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo x >>log; while [ ! -f over ]; do sleep 0.02; done; echo late');
  const first = world.hooks;
  await first.start();
  world.receive(stranger, 'a1');
  await world.until('the start', () => world.lines().length === 1);
  // The first daemon is killed: it does nothing after that. Its files and its row stay.
  const second = world.open();
  await second.start();
  await world.clock.run(MINUTE_MS / 2);
  assert.equal(world.lines().length, 1);
  assert.equal(second.active, 1);
  writeFileSync(join(world.folder, 'over'), '');
  await world.until('the end', () => counts(world, hook.id).done === 1);
  assert.equal(world.lines().length, 1);
  const [delivery] = second.deliveries(hook.id, 'done', Number.MAX_SAFE_INTEGER, 1);
  assert.deepEqual([delivery?.exitCode, delivery?.output], [0, 'late\n']);
});

test('removing a hook stops its programs', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('trap "echo term >>log; exit" TERM; sleep 1000 & echo x >>log; wait');
  await world.hooks.start();
  world.receive(stranger, 'a1');
  await world.until('the start', () => world.lines().length === 1);
  world.hooks.remove(hook.id);
  await world.until('the end', () => world.hooks.active === 0);
  assert.deepEqual(world.lines(), ['x', 'term']);
  assert.deepEqual(world.hooks.list(), []);
  assert.ok(!existsSync(join(world.folder, 'runs', '1-1')));
});

test('hooks for some senders ignore others', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const named = world.add('true', { senders: [stranger] }).hook.id;
  const known = world.add('true', { onlyKnown: true }).hook.id;
  const other = world.add('true', { kind: 'file' }).hook.id;
  world.receive(stranger, 'a1');
  world.receive(friend, 'b1');
  const waiting = [named, known, other].map((id) => counts(world, id).waiting);
  assert.deepEqual(waiting, [1, 1, 0]);
  assert.equal(world.hooks.deliveries(known, undefined, Number.MAX_SAFE_INTEGER, 1)[0]?.peer, friend);
});

test('every hook gets the item, and the last one acknowledges it, also if an earlier one failed meanwhile', async (t) => {
  const world = new HookWorld(t);
  world.known.add(friend);
  const first = world.add('echo first >>log').hook.id;
  const second = world.add('echo second >>log; [ -f fixed ]').hook.id;
  const paused = world.add('echo third >>log').hook.id;
  world.hooks.setPaused(paused, true);
  await world.hooks.start();
  world.receive(friend, 'a1');
  await world.until('the first success and failure', () => {
    return counts(world, first).done === 1 && world.lines().length === 2 && counts(world, second).running === 0;
  });
  assert.deepEqual(world.lines().toSorted(), ['first', 'second']);
  assert.deepEqual(world.acknowledged, []);
  await world.until('it is dead', async () => {
    await world.clock.run(1000);
    return counts(world, second).dead === 1;
  });
  world.hooks.setPaused(paused, false);
  await world.until('the third', () => counts(world, paused).done === 1);
  assert.deepEqual(world.acknowledged, []);
  writeFileSync(join(world.folder, 'fixed'), '');
  const [dead] = world.hooks.deliveries(second, 'dead', Number.MAX_SAFE_INTEGER, 10);
  world.hooks.retry(second, dead?.id ?? 0);
  await world.until('the retry', () => counts(world, second).done === 1);
  assert.deepEqual(world.acknowledged, ['a1']);
});

test('a hook that will not handle the item no longer keeps it', async (t) => {
  const world = new HookWorld(t);
  const removed = world.add('true').hook.id;
  world.hooks.setPaused(removed, true);
  world.add('true', { kind: 'file' });
  world.add('true', { senders: [friend] });
  const { hook } = world.add('true');
  world.receive(stranger, 'a1', 'a2');
  world.hooks.remove(removed);
  await world.hooks.start();
  await world.until('the end', () => counts(world, hook.id).done === 2);
  assert.deepEqual(world.acknowledged, ['a1', 'a2']);
});

test('a delivery without its item starts nothing, and does not count as done', async (t) => {
  const world = new HookWorld(t);
  const { hook } = world.add('echo x >>log');
  world.receive(stranger, 'a1', 'a2');
  world.notes.delete('a1');
  await world.hooks.start();
  await world.until('the end', () => counts(world, hook.id).done === 1);
  const { waiting, running, done, gone, dead } = counts(world, hook.id);
  assert.deepEqual([waiting, running, done, gone, dead], [0, 0, 1, 1, 0]);
  const page = (state: 'done' | 'gone' | 'dead' | undefined) =>
    world.hooks
      .deliveries(hook.id, state, Number.MAX_SAFE_INTEGER, 10)
      .map((one) => [one.state, one.attempts, one.exitCode, one.problem]);
  const [isDone, isGone] = [
    ['done', 1, 0, ''],
    ['gone', 0, null, 'The item no longer exists.'],
  ];
  assert.deepEqual(
    [page(undefined), page('done'), page('gone'), page('dead')],
    [[isDone, isGone], [isDone], [isGone], []],
  );
  assert.deepEqual([world.lines(), world.acknowledged], [['x'], ['a2']]);
});

/** Lets the clock run until an answer is there. */
async function answerOf(world: HookWorld, answer: Promise<Buffer | null> | undefined): Promise<string | null> {
  let isThere = false;
  void Promise.allSettled([answer]).then(() => (isThere = true));
  await world.until('the answer', () => isThere);
  return (await answer)?.toString() ?? null;
}

/** The caller of a call, at its address. */
function from(world: HookWorld, caller: Aid, called = world.aid) {
  return { caller, called, nodeKey: Buffer.from(caller), source: world.addresses.get(caller) ?? caller };
}

/** A call, as the call server makes it. */
function call(world: HookWorld, caller: Aid, body = 'hi', signal = new AbortController().signal) {
  const read = async () => ({ method: 'POST', path: '/', headers: {}, body });
  const answer = world.hooks.programFor(from(world, caller))?.(read, signal);
  // It may be rejected before the test waits for it.
  answer?.catch(() => {});
  return answer;
}

describe('calls', () => {
  test('a program reads a call and answers it; the oldest hook for the caller does', async (t) => {
    const world = new HookWorld(t);
    world.known.add(friend);
    const { hook } = world.add('cat >>log; echo fine; echo why >&2', { kind: 'call', onlyKnown: true });
    world.add('exit 3', { kind: 'call', createdAt: world.clock.now() + 1 });
    await world.hooks.start();
    assert.equal(await answerOf(world, call(world, friend)), 'fine\n');
    const {
      kind,
      from,
      attempt,
      call: request,
    } = JSON.parse(world.lines('log').join('') || '{}') as Record<string, unknown>;
    assert.deepEqual([kind, from, attempt], ['call', friend, 1]);
    assert.deepEqual(request, { method: 'POST', path: '/', headers: {}, body: 'hi' });
    const [delivery] = await world.until('the end', () => {
      const found = world.hooks.deliveries(hook.id, 'done', Number.MAX_SAFE_INTEGER, 1);
      return found.length === 1 && found;
    });
    assert.equal(delivery?.output, 'why\n');
    assert.equal(await answerOf(world, call(world, stranger)), null);
    assert.deepEqual(world.emitted, []);
  });

  test('a failed call is dead immediately, and is not repeated', async (t) => {
    const world = new HookWorld(t);
    const { hook } = world.add('exit 3', { kind: 'call' });
    await world.hooks.start();
    assert.equal(await answerOf(world, call(world, stranger)), null);
    const [dead] = await world.until('it is dead', () => {
      const found = world.hooks.deliveries(hook.id, 'dead', Number.MAX_SAFE_INTEGER, 1);
      return found.length === 1 && found;
    });
    assert.equal(dead?.problem, 'The program exited with code 3.');
    assert.throws(() => world.hooks.retry(hook.id, dead?.id ?? 0), { code: 'wrong_state' });
  });

  test('without a hook for it, a call goes elsewhere', (t) => {
    const world = new HookWorld(t);
    assert.equal(world.hooks.programFor(from(world, stranger)), null);
    const { hook } = world.add('true', { kind: 'call', senders: [friend] });
    assert.equal(world.hooks.programFor(from(world, stranger)), null);
    assert.ok(world.hooks.programFor(from(world, friend)) !== null);
    assert.equal(world.hooks.programFor(from(world, friend, testAid(300))), null);
    world.hooks.setPaused(hook.id, true);
    assert.equal(world.hooks.programFor(from(world, friend)), null);
  });

  test('a caller that hangs up ends its program', async (t) => {
    const world = new HookWorld(t);
    // The signal must not arrive before the sleep has started: it would keep the output open until SIGKILL.
    const { hook } = world.add('trap "echo term >>log; exit 1" TERM; sleep 1000 & echo x >>log; wait', {
      kind: 'call',
    });
    await world.hooks.start();
    const caller = new AbortController();
    const answer = call(world, stranger, 'hi', caller.signal);
    await world.until('the start', () => world.lines().length === 1);
    caller.abort();
    await assert.rejects(answerOf(world, answer), { code: 'cancelled' });
    await world.until('the end', () => counts(world, hook.id).dead === 1);
    assert.deepEqual(world.lines(), ['x', 'term']);
    const [gone] = world.hooks.deliveries(hook.id, 'dead', Number.MAX_SAFE_INTEGER, 1);
    assert.equal(gone?.problem, 'The caller did not wait for the answer.');
  });

  test('a program that takes too long, and a hook that is removed', async (t) => {
    const world = new HookWorld(t);
    const { hook } = world.add('echo x >>log; exec sleep 1000', { kind: 'call', timeoutMs: 2000, parallel: 1 });
    await world.hooks.start();
    const slow = call(world, stranger);
    await world.until('the start', () => world.lines().length === 1);
    await world.clock.run(2000);
    await assert.rejects(answerOf(world, slow), { code: 'timeout' });
    await world.until('the end', () => counts(world, hook.id).dead === 1);
    const [running, waiting] = [call(world, stranger), call(world, stranger)];
    await world.until('the second start', () => world.lines().length === 2);
    world.hooks.remove(hook.id);
    await assert.rejects(answerOf(world, running), { code: 'no_inbound' });
    await assert.rejects(answerOf(world, waiting), { code: 'no_inbound' });
    await world.until('the end', () => world.hooks.active === 0);
  });

  test('calls of strangers have a budget, and wait for at most half a minute', async (t) => {
    const world = new HookWorld(t);
    world.known.add(friend);
    const { hook } = world.add('echo "$SVC_FROM" >>log; echo ok', { kind: 'call' });
    await world.hooks.start();
    const places = MAX_HOOK_CALLS_PER_CALLER;
    const asked = Array.from({ length: places + 1 }, () => call(world, stranger)).filter((one) => one !== undefined);
    const settled = Promise.allSettled(asked);
    await assert.rejects(answerOf(world, asked.at(-1)), { code: 'rate_limited' });
    assert.equal(await answerOf(world, call(world, friend)), 'ok\n');
    await world.until(
      'the burst',
      () => world.lines().filter((from) => from === stranger).length >= HOOK_STARTS_PER_STRANGER,
    );
    await world.clock.run(HOOK_CALL_WAIT_MS);
    const answered = (await settled).filter(({ status }) => status === 'fulfilled').length;
    const perMinute = HOOK_STARTS_PER_STRANGER / (MINUTE_MS / HOOK_CALL_WAIT_MS);
    assert.ok(
      answered >= HOOK_STARTS_PER_STRANGER && answered <= HOOK_STARTS_PER_STRANGER + perMinute + 1,
      `${answered}`,
    );
    await world.until('nothing waits', () => counts(world, hook.id).waiting === 0);
  });

  test('twelve callers at one address leave room for callers of other addresses', async (t) => {
    const world = new HookWorld(t);
    world.add('echo ok', { kind: 'call', parallel: 64 });
    await world.hooks.start();
    const flood = Array.from({ length: 12 }, (_, i) => testAid(500 + i));
    for (const one of flood) world.addresses.set(one, '203.0.113.5');
    const asked = flood.flatMap((one) => Array.from({ length: 5 }, () => call(world, one)));
    const others = Array.from({ length: 8 }, (_, i) => testAid(600 + i));
    for (const [i, one] of others.entries()) world.addresses.set(one, `198.51.${100 + i}.7`);
    const answers = others.map((one) => call(world, one));
    for (const answer of answers) assert.equal(await answerOf(world, answer), 'ok\n');
    await world.clock.run(HOOK_CALL_WAIT_MS);
    await Promise.allSettled(asked.filter((one) => one !== undefined));
  });

  test('a call is read only if there is room for it, and its hook may be removed meanwhile', async (t) => {
    const world = new HookWorld(t);
    const { hook } = world.add('true', { kind: 'call' });
    await world.hooks.start();
    const { signal } = new AbortController();
    const { promise: body, resolve } = Promise.withResolvers<object>();
    let reads = 0;
    const ask = (_: unknown, i: number) => {
      const read = (): Promise<object> => {
        reads++;
        return body;
      };
      const caller = testAid(500 + i);
      world.addresses.set(caller, `198.51.${100 + i}.7`);
      return world.hooks.programFor(from(world, caller))?.(read, signal);
    };
    const places = MAX_HOOK_CALLS - MAX_HOOK_CALLS_RESERVED;
    const asked = Array.from({ length: places }, ask);
    await assert.rejects(async () => ask(null, places), { code: 'rate_limited' });
    assert.equal(reads, places);
    assert.equal(counts(world, hook.id).waiting, 0);
    world.hooks.remove(hook.id);
    resolve({});
    const ends = await Promise.allSettled(asked.filter((one) => one !== undefined));
    assert.equal(ends.length, places);
    for (const end of ends) assert.equal(end.status === 'rejected' && end.reason.code, 'no_inbound');
  });
});
