/** Joins a network by an invitation: no bootstrap list, no discovery. */
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { memberOf } from '../../src/foundation/json.ts';
import { runSvc } from '../support/cli-run.ts';
import { type ApiAnswer, TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface Invited {
  readonly invitation: string;
  readonly contacts: readonly string[];
  readonly reach: string;
}

interface Joined {
  readonly by: string;
  readonly network_ready: boolean;
}

function refusal({ status, body }: ApiAnswer): unknown[] {
  return [status, memberOf(body, 'error')];
}

test('two daemons without contacts meet by an invitation, and again after a restart', async (t) => {
  const dataDir = temporaryDirectory(t);
  await using inviting = await TestDaemon.start();
  const { invitation, contacts, reach } = await inviting.call<Invited>('GET', '/node/invitation');
  const [contact = ''] = contacts;
  assert.equal(reach, 'machine');
  assert.match(contact, new RegExp(`^aid1\\w+@${inviting.dhtAddress.replaceAll('.', '\\.')}$`));
  const aid = await inviting.newAgent();
  {
    await using joining = await TestDaemon.start({ dataDir });
    const join = (to: string) => joining.request('POST', '/node/join', { to });
    assert.deepEqual(refusal(await inviting.request('POST', '/node/join', { to: invitation })), [409, 'self']);
    assert.deepEqual(refusal(await join(invitation.slice(0, -1))), [400, 'invalid_request']);
    // The key of another node, at the address of a running node.
    const [ownKey = ''] = (await joining.call<Invited>('GET', '/node/invitation')).contacts[0]?.split('@') ?? [];
    assert.deepEqual(refusal(await join(`${ownKey}@${inviting.dhtAddress}`)), [409, 'self']);
    const wrong = await join(`${aid}@${inviting.dhtAddress}`);
    assert.deepEqual(refusal(wrong), [502, 'connect_failed']);
    assert.match(String(memberOf(wrong.body, 'message')), /without the key/);
    assert.deepEqual(await joining.call('GET', '/node/contacts'), { contacts: [] }, 'no contact is stored');

    const joined = await joining.call<Joined>('POST', '/node/join', { to: ` ${invitation}\n` });
    assert.deepEqual([joined.by, joined.network_ready], [contact, true]);
    await inviting.call('POST', `/agents/${aid}/publish`);
    await joining.call('POST', `/resolve/${aid}`);
    // As in a power cut: nothing is saved at shutdown.
    await joining.kill();
  }
  await using joining = await TestDaemon.start({ dataDir });
  await ready(joining);
  await joining.call('POST', `/resolve/${aid}`);
  const kept = await eventually('the contact is verified', async () => {
    const answer = await joining.call<{ contacts: { state: string }[] }>('GET', '/node/contacts');
    return answer.contacts.every(({ state }) => state === 'met') && answer;
  });
  assert.deepEqual(kept, {
    contacts: [
      { contact, name: hostname(), joined: true, state: 'met', addresses: [inviting.dhtAddress], has_answered: true },
    ],
  });
  const path = `/node/contacts/${encodeURIComponent(contact)}`;
  await joining.call('DELETE', path);
  assert.deepEqual(refusal(await joining.request('DELETE', path)), [404, 'not_found']);
});

test('a daemon joins an invitation at its start, in its network, and again without it', async (t) => {
  const dataDir = temporaryDirectory(t);
  await using inviting = await TestDaemon.start({ config: 'network = "office"\n' });
  const { invitation } = await inviting.call<Invited>('GET', '/node/invitation');
  {
    // A script starts the node in the background and waits.
    const waiting = runSvc(['status', '--wait', '--quiet'], { env: { SVCD_DATA_DIR: dataDir } });
    await using joining = await TestDaemon.start({ dataDir, args: ['--join', invitation] });
    const { code, stdout } = await waiting;
    const { node_aid, network_ready } = await joining.call<Record<string, unknown>>('GET', '/status');
    assert.deepEqual([code, stdout, network_ready], [0, `${String(node_aid)}\n`, true]);
    await eventually('the result is logged', () => joining.output.includes('joined the network'));
    await joining.kill();
  }
  await using joining = await TestDaemon.start({ dataDir, config: 'network = "office"\n' });
  await ready(joining);
});

test('a daemon that cannot join logs the cause', async () => {
  await using joining = await TestDaemon.start({ args: ['--join', '127.0.0.1:9'] });
  await eventually('the cause is logged', () => /not joined yet: This node cannot reach/.test(joining.output));
  const own = await joining.call<Invited>('GET', '/node/invitation');
  const { dataDir } = joining;
  await joining.kill();
  await using again = await TestDaemon.start({ dataDir, args: ['--join', own.invitation] });
  await eventually('the mistake is logged', () => again.output.includes('leads to this node'));
});
