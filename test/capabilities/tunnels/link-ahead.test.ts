/** The link that is open before the next connection of a tunnel needs it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KEPT_MS, LinkAhead } from '../../../src/capabilities/tunnels/link-ahead.ts';
import type { LinkStream } from '../../../src/network/links/types.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { linkEnds } from '../../support/link-ends.ts';
import { settle } from '../../support/link-world.ts';

const MOMENT_MS = 100;

function setUp(isUpgraded = true) {
  const clock = new LeapClock();
  const opened: LinkStream[] = [];
  const open = async (): Promise<LinkStream> => {
    const [link] = linkEnds();
    const path = link.path();
    Object.assign(link, { path: () => ({ ...path, isUpgraded }) });
    opened.push(link);
    return link;
  };
  const ahead = new LinkAhead(clock, open);
  const prepare = async (): Promise<void> => {
    ahead.prepare();
    clock.pass(MOMENT_MS);
    await settle();
  };
  return { clock, opened, ahead, prepare };
}

test('it is opened a moment after a connection has begun, once, and is taken once', async () => {
  const { ahead, opened, prepare } = setUp();
  ahead.prepare();
  assert.equal(opened.length, 0);
  await prepare();
  await prepare();
  assert.equal(opened.length, 1);
  assert.equal(ahead.take(), opened[0]);
  assert.equal(ahead.take(), null);
  await prepare();
  assert.equal(ahead.take(), opened[1]);
});

test('one is opened at a time, even if several connections begin', async () => {
  const { ahead, opened, clock, prepare } = setUp();
  ahead.prepare();
  clock.pass(MOMENT_MS);
  ahead.prepare();
  clock.pass(MOMENT_MS);
  await settle();
  await prepare();
  assert.equal(opened.length, 1);
  assert.equal(ahead.take(), opened[0]);
});

test('it ends unused, or when it is dropped, and a closed one is never used', async () => {
  const { ahead, opened, prepare, clock } = setUp();
  await prepare();
  clock.pass(KEPT_MS);
  assert.equal(opened[0]?.destroyed, true);
  await prepare();
  ahead.drop();
  assert.equal(opened[1]?.destroyed, true);
  await prepare();
  opened[2]?.destroy();
  assert.equal(ahead.take(), null);
  await settle();
  await prepare();
  assert.equal(ahead.take(), opened[3]);
});

test('one that was being opened when it was dropped ends, and so does one that could be lost unnoticed', async () => {
  const dropped = setUp();
  dropped.ahead.prepare();
  dropped.clock.pass(MOMENT_MS);
  dropped.ahead.drop();
  await settle();
  assert.equal(dropped.opened[0]?.destroyed, true);
  assert.equal(dropped.ahead.take(), null);
  const slow = setUp(false);
  await slow.prepare();
  assert.equal(slow.opened[0]?.destroyed, true);
  assert.equal(slow.ahead.take(), null);
});
