/** A node that restarts: its agents are found, and no record is published without need. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type DaemonOptions, TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { dial, endOf } from '../support/tcp.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface Records {
  readonly records: readonly { readonly seq: number; readonly record_base64: string }[];
}

interface Found {
  readonly endpoints: readonly string[];
}

/** Options of a daemon that restarts at the same addresses. */
async function home(t: TestContext, bootstrap: readonly string[]): Promise<DaemonOptions & { dataDir: string }> {
  return {
    dataDir: temporaryDirectory(t),
    bootstrap,
    args: ['--listen', `127.0.0.1:${await quietPort()}`],
    env: { SVCD_QUIC_LISTEN_ADDR: `127.0.0.1:${await quietPort()}` },
  };
}

async function published(daemon: TestDaemon, count: number): Promise<string[]> {
  const aids = await Promise.all(Array.from({ length: count }, () => daemon.newAgent()));
  for (const aid of aids) await daemon.call('POST', `/agents/${aid}/publish`);
  return aids;
}

/** When the record of an agent was last published, and how many nodes store it. */
async function lastPublished(
  daemon: TestDaemon,
  aid: string,
): Promise<{ readonly at: string; readonly replicas: number }> {
  const agent = await daemon.call<{ last_publish_at: string; replicas: number }>('GET', `/agents/${aid}`);
  return { at: agent.last_publish_at, replicas: agent.replicas };
}

/** The endpoint records of agents that another node finds on the network. */
async function endpointRecords(from: TestDaemon, aids: readonly string[]): Promise<Records[]> {
  return await Promise.all(aids.map((aid) => from.call<Records>('GET', `/resolve/${aid}/records?type=1`)));
}

test('a node that restarts at its old address does not publish its records again, even if a program publishes', async (t) => {
  await using far = await TestDaemon.start();
  const at = await home(t, [far.dhtAddress]);
  const first = await TestDaemon.start(at);
  await Promise.all([ready(far), ready(first)]);
  const [aid = '', ...others] = await published(first, 4);
  await first.call('POST', `/agents/${aid}/publish`);
  const before = await endpointRecords(far, others);
  await first.kill('SIGKILL');
  await using second = await TestDaemon.start(at);
  // As the program of an agent does that waited for its node.
  await second.call('POST', `/agents/${aid}/publish`);
  await ready(second);
  // A new record is published automatically after a second, after all renewals that are due by then.
  const late = await second.newAgent();
  await eventually('the new agent is found', async () => {
    const answer = await far.request('POST', `/resolve/${late}`, {});
    return answer.status === 200;
  });
  assert.deepEqual(await endpointRecords(far, others), before);
});

test('a node that restarts at another port is found there', async (t) => {
  await using far = await TestDaemon.start();
  const at = await home(t, [far.dhtAddress]);
  const first = await TestDaemon.start(at);
  await Promise.all([ready(far), ready(first)]);
  const aids = await published(first, 4);
  await first.kill('SIGKILL');
  await using second = await TestDaemon.start({ ...(await home(t, [far.dhtAddress])), dataDir: at.dataDir });
  assert.notEqual(second.quicAddress, first.quicAddress);
  for (const aid of aids)
    await eventually(`${aid} is found at the new port`, async () => {
      const { endpoints } = await far.call<Found>('POST', `/resolve/${aid}`);
      return endpoints.includes(`quic://${second.quicAddress}`);
    });
});

test('the first call reaches a node that restarted at another port, whatever the caller had stored', async (t) => {
  await using meeting = await TestDaemon.start();
  await using service = await EchoService.start();
  // One caller has a connection to it, the other one only knows its old address.
  await using near = await TestDaemon.start({ bootstrap: [meeting.dhtAddress] });
  await using far = await TestDaemon.start({ bootstrap: [meeting.dhtAddress] });
  const at = await home(t, [meeting.dhtAddress]);
  const first = await TestDaemon.start(at);
  await Promise.all([meeting, near, far, first].map((daemon) => ready(daemon)));
  const aid = await first.newAgent(service.address);
  await first.call('POST', `/agents/${aid}/publish`);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`, { idle_timeout_sec: -1 });
  const held = await dial(listen);
  held.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n');
  await far.call('POST', `/resolve/${aid}`);
  const heldEnd = endOf(held);
  await first.kill('SIGKILL');
  await using second = await TestDaemon.start({ ...(await home(t, [meeting.dhtAddress])), dataDir: at.dataDir });
  await ready(second);
  assert.notEqual(second.quicAddress, first.quicAddress);
  held.write('more');
  const calls = await Promise.all([near, far].map((caller) => caller.request('POST', `/aid/${aid}/`)));
  assert.deepEqual(
    calls.map(({ status }) => status),
    [200, 200],
  );
  assert.equal(await heldEnd, 'ECONNRESET');
  // Until then, bytes of a client may go to the stopped process, and they are not sent again to the new one.
  const client = await dial(listen);
  client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.equal(await endOf(client), 'end');
});

test('agents are found again in a network that has lost their records', async (t) => {
  const meeting = await home(t, []);
  const old = await TestDaemon.start(meeting);
  const at = await home(t, [old.dhtAddress]);
  const first = await TestDaemon.start(at);
  await Promise.all([ready(old), ready(first)]);
  const aids = await published(first, 4);
  const before = await Promise.all(aids.map((aid) => lastPublished(first, aid)));
  await Promise.all([old.kill('SIGKILL'), first.kill('SIGKILL')]);
  for (const name of ['records.db', 'records.db-wal', 'records.db-shm'])
    rmSync(join(meeting.dataDir, name), { force: true });
  await using empty = await TestDaemon.start(meeting);
  await using second = await TestDaemon.start(at);
  await Promise.all([ready(empty), ready(second)]);
  // Copies on the node itself do not help when the node is down.
  for (const [i, aid] of aids.entries())
    await eventually('as many nodes store its record as before', async () => {
      const now = await lastPublished(second, aid);
      return now.at !== before[i]?.at && now.replicas >= (before[i]?.replicas ?? 0);
    });
  await second.kill('SIGKILL');
  for (const aid of aids) assert.equal((await empty.request('POST', `/resolve/${aid}`)).status, 200);
});
