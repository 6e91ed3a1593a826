/** An invitation by a node that cannot be dialed, to a node without contacts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';

interface Invited {
  readonly invitation: string;
  readonly contacts: readonly string[];
  readonly reach: string;
}

interface Opened {
  readonly id: string;
  readonly listen: string;
  readonly path: string;
}

interface NodeStatus {
  readonly dht_peers: number;
  readonly dht_clients: number;
  readonly network_ready: boolean;
}

interface Found {
  readonly level: string;
  readonly check: string;
  readonly what: string;
}

function failed(findings: readonly Found[]): string {
  return findings.flatMap(({ level, what }) => (level === 'FAIL' ? [what] : [])).join('; ');
}

test('a node behind a router invites through its helper, and the guest reaches it', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  // On a public host svcd needs no setting to be a bootstrap node.
  await using open = await LabDaemon.start(await internet.publicMachine('open', [10]), []);
  await using host = await LabDaemon.start(await internet.behind('host', ['cone']), ['203.0.113.10']);
  const guests = await internet.behind('guest', ['cone']);
  await using guest = await LabDaemon.start(guests, []);
  const invite = (): Promise<Invited> => host.call<Invited>('GET', '/node/invitation');
  await host.until('the host has helpers', ({ helpers }) => helpers.length === 1);
  const { invitation, contacts, reach } = await invite();
  assert.equal(reach, 'helped');
  assert.match(contacts[0] ?? '', /^aid1\w+@203\.0\.113\.10:4121$/);
  const called = await host.serve();
  const joined = await guest.call<{ by: string; network_ready: boolean }>('POST', '/node/join', { to: invitation });
  assert.deepEqual([joined.by, joined.network_ready], [contacts[0], true]);
  const invitedAgent = await guest.serve();
  const { id, listen } = await guest.call<Opened>('POST', `/tunnel/${called}`, {});
  assert.equal(await guest.echo(listen, 'by invitation'), 'by invitation');
  // On a slow machine a relay may be ready first.
  await eventually('it needs no relay', async () => {
    const { path } = await guest.call<Opened>('GET', `/tunnel/${id}`);
    return path !== 'relay';
  });
  const own = await open.call<Invited>('GET', '/node/invitation');
  assert.equal(own.reach, 'anywhere');
  assert.match(own.contacts[0] ?? '', /@203\.0\.113\.10:4121$/);
  // Neither client node can be in the open node's routing table, but the open node still counts as connected.
  const served = await open.serve();
  const { dht_peers, network_ready } = await eventually('the open node knows both', async () => {
    const status = await open.call<NodeStatus>('GET', '/status');
    return status.dht_clients === 2 && status;
  });
  assert.deepEqual({ dht_peers, network_ready }, { dht_peers: 0, network_ready: true });
  const agent = await open.call<{ published: boolean; replicas: number }>('GET', `/agents/${served}`);
  assert.deepEqual([agent.published, agent.replicas], [true, 0]);
  const { findings } = await open.call<{ findings: readonly Found[] }>('GET', '/node/doctor');
  const bad = findings.filter(({ level, check }) => level !== 'PASS' && ['network', 'publication'].includes(check));
  assert.deepEqual(bad, []);
  assert.ok(findings.some(({ what }) => what.includes('2 nodes use the network through this one')));
  await guest.call('POST', `/resolve/${served}`);

  // A firewall that drops only QUIC, and one that drops all UDP.
  const drops = (name: string, what: string) =>
    guests.nft(`table inet no_${name} {\n chain out {\n  type filter hook output priority 0;\n  ${what} drop\n }\n}\n`);
  await drops('quic', 'udp dport 4122');
  const examined = await guest.call<{ findings: readonly Found[] }>('GET', '/node/doctor');
  assert.match(failed(examined.findings), /1 node answers in the record network, but none over QUIC/);
  await drops('udp', 'meta l4proto udp');
  // While earlier requests are still answered, a look-up may end with too few answers.
  const { error, details } = await eventually('requests fail', async () => {
    const { status, body } = await guest.ask('POST', `/resolve/${newIdentity().aid}`);
    const refused = body as { error: string; details: { cause?: string } };
    return status === 503 && refused.details.cause !== 'not_heard' && refused;
  });
  assert.deepEqual([error, details], ['network_unavailable', { cause: 'udp_blocked' }]);
  const publishing = await guest.ask('POST', `/agents/${invitedAgent}/publish`);
  assert.equal(publishing.status, 503);
  assert.equal((publishing.body as { error: string }).error, 'network_unavailable');
});
