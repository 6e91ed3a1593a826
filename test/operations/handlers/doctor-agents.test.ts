/** The doctor's findings about agents. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineAgents } from '../../../src/operations/handlers/doctor/agents.ts';
import type { Examination, OwnAnswer } from '../../../src/operations/handlers/doctor/examination.ts';
import { testAid } from '../../support/agents.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const AGENT: OwnAnswer<'agentGet'> = {
  aid: testAid(1),
  name: 'demo',
  scheme: 'native',
  status: 'registered',
  service_tcp: '',
  service_tcp_ok: false,
  heartbeat_seconds_ago: 0,
  seq: 1,
  published: true,
  last_publish_at: new Date(NOW).toISOString(),
  next_republish_estimate: null,
  record_expires_at: null,
  replicas: 3,
  services: [],
  acl: { default: 'public', allow: [], deny: [] },
  delegation: { issued_at: new Date(NOW).toISOString(), expires_at: null },
};
const STATUS = { auto_publish: true, network_ready: true, dht_peers: 3 } as OwnAnswer<'status'>;

/** The findings about an agent that is published again during the probe. `network`: the stored sequence number. */
async function texts(
  seqs: { readonly before: number; readonly after: number; readonly network: number },
  hooks: OwnAnswer<'hookList'>['hooks'] = [],
  more: Partial<typeof AGENT> = {},
  labels: Readonly<Record<string, string>> = {},
) {
  let seq = seqs.before;
  const ask = {
    agentsList: async () => ({ agents: [AGENT] }),
    addressBookGet: async () => ({ aliases: labels, favorites: [] }),
    hookList: async () => ({ hooks }),
    agentGet: async () => ({ ...AGENT, ...more, seq }),
    agentProbe: async () => {
      seq = seqs.after;
      return {
        service_tcp_ok: null,
        dht_ok: true,
        published_endpoints: [],
        published_nat_type: null,
        published_seq: seqs.network,
      };
    },
  } satisfies Partial<Examination['ask']> as Partial<Examination['ask']> as Examination['ask'];
  const examination = { ask, now: NOW } as Examination;
  return (await examineAgents(examination, STATUS)).map(({ what }) => what);
}

test('an agent whose record in the network is newer also runs on another node', async () => {
  const [publication] = await texts({ before: 1, after: 1, network: 3 });
  assert.equal(publication, 'demo also runs on another node: the network has seq 3, this node published 1');
});

test('an agent has its label, as in other commands', async () => {
  const [publication] = await texts({ before: 1, after: 1, network: 3 }, [], {}, { [AGENT.aid]: 'home' });
  assert.match(publication ?? '', /^home also runs on another node/);
});

test('a record that this node publishes during the probe is not from another node', async () => {
  const [publication] = await texts({ before: 1, after: 3, network: 3 });
  assert.match(publication ?? '', /^demo was published .* is stored by 3 nodes$/);
});

test('an agent whose program answers calls needs no service', async () => {
  const seqs = { before: 1, after: 1, network: 1 };
  const hook = { aid: AGENT.aid, kind: 'call', paused: false } as OwnAnswer<'hookList'>['hooks'][number];
  const missing = ['demo has no service bound: it can call, but other agents cannot call it'];
  assert.deepEqual((await texts(seqs)).slice(1), missing);
  assert.deepEqual((await texts(seqs, [hook])).slice(1), []);
  assert.deepEqual((await texts(seqs, [{ ...hook, paused: true }])).slice(1), missing);
  assert.deepEqual((await texts(seqs, [{ ...hook, aid: testAid(2) }])).slice(1), missing);
});

test('a published agent that was idle for days gives no finding about its renewal', async () => {
  const idle = { heartbeat_seconds_ago: 3 * 86_400 };
  assert.equal((await texts({ before: 1, after: 1, network: 1 }, [], idle)).length, 2);
});
