/** Whom the engine blames for requests without an answer. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { DhtEngine } from '../../../src/network/records/engine.ts';
import { COMMAND } from '../../../src/network/records/messages.ts';
import { networkTag } from '../../../src/network/records/network-tag.ts';
import { FAILURES_TO_DROP, PeerHealth } from '../../../src/network/records/peer-health.ts';
import { TestClock } from '../../support/test-clock.ts';

/** A peer that takes everything and answers nothing; settles `heard` with each datagram. */
async function silentPeer(t: TestContext): Promise<{ address: Address; heard(): Promise<unknown> }> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return { address: { host: '127.0.0.1', port: socket.address().port }, heard: () => once(socket, 'message') };
}

async function engineWith(t: TestContext, clock: TestClock, health: PeerHealth): Promise<DhtEngine> {
  const engine = new DhtEngine(
    { host: '127.0.0.1', port: 0, tag: networkTag('test') },
    { clock, health, isOwnHost: () => false, sourceTo: () => null },
  );
  await engine.start();
  t.after(() => engine.stop());
  return engine;
}

test('a peer that does not answer has failed where it was silent while we could hear it, and only there', async (t) => {
  const clock = new TestClock();
  const health = new PeerHealth({ clock });
  const engine = await engineWith(t, clock, health);
  const peer = await silentPeer(t);
  const message = { command: COMMAND.find, value: new Uint8Array(1) };
  /** Asks while time passes for us as the test says. */
  const ask = async (meanwhile: () => void, retry = false): Promise<number> => {
    const heard = peer.heard();
    const reply = engine.request(peer.address, message, { retry });
    await heard;
    meanwhile();
    assert.equal(await reply, null);
    assert.equal(clock.timers, 0);
    return health.failures(peer.address);
  };
  // Requests are timed by the clock of the machine, whatever ours says.
  assert.equal(await ask(() => clock.jump(60_000)), 0, 'we stalled');
  assert.equal(await ask(() => clock.advance(749)), 0, 'we could hear it for too short a time');
  assert.equal(await ask(() => clock.advance(1000)), 1);
  assert.equal(await ask(() => clock.advance(2999), true), 1, 'four attempts take four times as long');
  assert.equal(await ask(() => clock.advance(4000), true), FAILURES_TO_DROP);
});
