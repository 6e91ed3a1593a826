import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { ready, TestNetwork } from '../support/network.ts';
import { scaled } from '../support/scale.ts';

const NODES = scaled(12, 20);
const PUBLISHERS = 5;
/** Nodes that each node must know before all of them form one network. */
const ENOUGH_PEERS = scaled(8, 12);

interface Record {
  readonly aid: string;
  readonly seq: number;
}

test('many nodes: every record is found from every node, also after a third of the nodes is killed', async () => {
  await using network = await TestNetwork.start(NODES);
  await Promise.all(network.daemons.map((daemon) => ready(daemon, ENOUGH_PEERS)));
  const published = new Map<string, number>();
  for (let i = 0; i < PUBLISHERS; i++) {
    const daemon = network.at(i);
    const aid = await daemon.newAgent();
    // Publishing does not wait for nodes that are slow for a moment.
    const kept = async (path: string, body?: object): Promise<number> =>
      await eventually(`eight nodes store the record of ${path}`, async () => {
        const answer = await daemon.call<{ seq: number; replicas: number }>('POST', `/agents/${aid}/${path}`, body);
        return answer.replicas >= 8 && answer.seq;
      });
    const seq = await kept('publish');
    await kept('services', { services: ['test.echo'], tags: [`n${i}`] });
    published.set(aid, seq);
  }
  const everywhere = async (indices: readonly number[]): Promise<void> => {
    await Promise.all(
      indices.map(async (i) => {
        for (const [aid, seq] of published) {
          const record = await network.at(i).call<Record>('POST', `/resolve/${aid}`);
          assert.ok(record.seq >= seq, `node ${i} sees seq ${record.seq} of ${aid}`);
        }
        const { entries } = await network
          .at(i)
          .call<{ entries: Record[] }>('POST', '/discover', { services: ['test.echo'] });
        assert.deepEqual(new Set(entries.map((e) => e.aid)), new Set(published.keys()), `node ${i}`);
      }),
    );
  };
  const all = Array.from({ length: NODES }, (_, i) => i);
  await everywhere(all);

  // Neither the publishers nor the first node: the other nodes store the records.
  const dead = all.filter((i) => i >= PUBLISHERS && i % 2 === 1).slice(0, Math.floor(NODES / 3));
  assert.equal(dead.length, Math.floor(NODES / 3));
  await Promise.all(dead.map((i) => network.at(i).kill('SIGKILL')));
  const alive = all.filter((i) => !dead.includes(i));
  await everywhere(alive);

  // Publishing continues, and a new daemon finds all records.
  const [aid = ''] = published.keys();
  const { seq } = await network.at(0).call<Record>('POST', `/agents/${aid}/publish`);
  published.set(aid, seq);
  await eventually('the newer record is found', async () => {
    const record = await network.at(NODES - 2).call<Record>('POST', `/resolve/${aid}`);
    return record.seq >= seq;
  });
});
