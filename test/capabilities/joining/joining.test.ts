import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contactsForInvitation, Joining, type NodeFacts } from '../../../src/capabilities/joining/joining.ts';
import { formatAddress, formatContact, type NodeContact } from '../../../src/foundation/address.ts';
import type { ExitState } from '../../../src/foundation/domain/exit.ts';
import type { MeetingState } from '../../../src/foundation/domain/joining.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { formatInvitation, type PinnedContact, parseInvitation } from '../../../src/foundation/invitation.ts';
import { JoinedContacts } from '../../../src/network/joined-contacts.ts';
import type { OwnAddress } from '../../../src/network/reachability/own-addresses.ts';
import { TestClock } from '../../support/test-clock.ts';

const { publicKey: OWN_KEY } = KeyPair.generate();
const { publicKey: THEIR_KEY } = KeyPair.generate();
const { publicKey: HELPER_KEY } = KeyPair.generate();
const OWN_AID = nativeAid(OWN_KEY);
const THERE = { host: '203.0.113.7', port: 4121, nodeKey: THEIR_KEY };
const HELPER = { host: '198.51.100.9', port: 4121, nodeKey: HELPER_KEY };

class Memory {
  readonly values = new Map<string, unknown>();
  get(key: string): unknown {
    return this.values.get(key);
  }
  set(key: string, value: unknown): void {
    this.values.set(key, structuredClone(value));
  }
}

/** A node, and the result of each attempt to reach others. */
function setUp({ network = '', peers = 1, helpers = [] as PinnedContact[] } = {}) {
  const clock = new TestClock();
  const memory = new Memory();
  const tried: string[] = [];
  const exit = {
    state: 'udp' as ExitState,
    settled: Promise.withResolvers<void>(),
    used: [] as string[],
    trouble: null as SvcError | null,
  };
  const listed = new Map<string, NodeContact>();
  const states = new Map<string, MeetingState[]>();
  const reachability = { ready: peers > 0, peers, clients: 0, natType: 0, observed: [], inRoutingTables: false };
  const entries: (readonly [entry: string, token: string])[] = [];
  const joining = new Joining(
    { nodeAid: OWN_AID, network },
    {
      clock,
      joined: new JoinedContacts(network, memory),
      facts: () => ({ known: [], mapped: [] }),
      helpers: () => helpers,
      name: () => 'Dora',
      agentName: (aid) => (aid === OWN_AID ? 'helper' : undefined),
      tlsPorts: () => [443, 4121],
      onEntry: (entry, token) => entries.push([entry, token]),
      exit: {
        state: () => exit.state,
        settled: () => exit.settled.promise,
        through: (contacts) => {
          exit.used.push(...contacts.map(formatContact));
          return () => void exit.used.splice(0);
        },
      },
      why: async () => exit.trouble,
      records: {
        address: { host: '127.0.0.1', port: 4121 },
        join: async (contact) => {
          const key = formatContact(contact);
          tried.push(key);
          const state = states.get(key)?.shift() ?? 'silent';
          if (state === 'met') listed.set(key, contact);
          return state;
        },
        listContact: (contact) => void listed.set(formatContact(contact), contact),
        forget: (contact) => void listed.delete(formatContact(contact)),
        contacts: () =>
          [...listed.values()].map((contact) => ({ contact, state: 'met', hasAnswered: true, addresses: [contact] })),
        reachability: () => reachability,
        onReachability: () => () => {},
        peers: () => [{ host: HELPER.host, port: HELPER.port, firstSeen: 0, lastSeen: 0 }],
        identify: async () => ({ nodeKey: HELPER_KEY, address: { host: HELPER.host, port: 4122 } }),
      },
    },
  );
  const answer = (contact: NodeContact, ...all: MeetingState[]) => void states.set(formatContact(contact), all);
  const kept = () => new JoinedContacts(network, memory).current.map(formatContact);
  return { exit, joining, memory, tried, listed, answer, kept, clock, entries };
}

function invitation(network: string, contacts: readonly PinnedContact[], from = nativeAid(THEIR_KEY)): string {
  return formatInvitation({ from, network, contacts });
}

test('an invitation carries the name of the node and an offered agent, and the joining node keeps the name', async () => {
  const { joining, answer, memory } = setUp();
  const { invitation: line, name } = await setUp().joining.invite({ agent: OWN_AID });
  assert.equal(name, 'Dora');
  const read = parseInvitation(line);
  assert.deepEqual([read.name, read.agent], ['Dora', { aid: OWN_AID, name: 'helper' }]);
  assert.equal(parseInvitation((await setUp().joining.invite()).invitation).agent, undefined);
  await assert.rejects(setUp().joining.invite({ agent: nativeAid(THEIR_KEY) }), { code: 'not_found' });
  const from = nativeAid(THEIR_KEY);
  const agent = { aid: from, name: 'home' };
  answer(THERE, 'met');
  const done = await joining.join(
    formatInvitation({ from, network: '', contacts: [THERE, HELPER], name: 'Dora', agent }),
  );
  assert.deepEqual([done.name, done.agent], ['Dora', agent]);
  const kept = new JoinedContacts('', memory);
  assert.deepEqual([kept.nameOf(THERE), kept.nameOf(HELPER)], ['Dora', undefined], 'only the inviting node has it');
  assert.deepEqual(
    joining.contacts().map((one) => one.name),
    ['Dora', undefined],
  );
});

test('the node joins through the first node that responds, and stores all nodes of the invitation', async () => {
  const { joining, answer, kept, listed } = setUp();
  answer(HELPER, 'silent', 'met');
  const { by, network } = await joining.join(invitation('', [THERE, HELPER]));
  assert.deepEqual([formatContact(by), network], [formatContact(HELPER), '']);
  assert.deepEqual(kept(), [THERE, HELPER].map(formatContact));
  assert.equal(listed.size, 2);
});

test('an invitation to an entry passes on its token after the node has joined', async () => {
  const { joining, answer, entries } = setUp();
  const [from, token] = [nativeAid(THEIR_KEY), 'aBcDeFgHiJkLmNoPqRs-_0'];
  const line = formatInvitation({ from, network: '', contacts: [THERE], token });
  answer(THERE, 'silent', 'silent', 'silent', 'met');
  await assert.rejects(joining.join(line));
  assert.deepEqual(entries, []);
  await joining.join(line);
  assert.deepEqual(entries, [[from, token]]);
});

test('if no node responds, nothing is stored, and the worst result is reported', async () => {
  const { joining, answer, kept, listed, tried } = setUp();
  answer(THERE, 'other_key');
  await assert.rejects(joining.join(invitation('', [THERE, HELPER])), {
    code: 'connect_failed',
    message: /^Cannot reach any of the 2 nodes\. Another node responds there/,
  });
  await assert.rejects(joining.join('node.example'), {
    code: 'connect_failed',
    message: /^Cannot reach node\.example:4121\. It does not respond/,
  });
  assert.deepEqual([kept(), listed.size], [[], 0]);
  assert.equal(tried.filter((one) => one === 'node.example:4121').length, 3, 'a datagram may get lost');
});

test('while UDP does not work, the node joins over TLS through the contacts', async () => {
  const { joining, answer, exit, clock, tried } = setUp();
  exit.state = 'connecting';
  answer(THERE, 'silent', 'silent', 'silent', 'met');
  const joined = joining.join(invitation('', [THERE]));
  assert.deepEqual(exit.used, [formatContact(THERE)]);
  await clock.run(0);
  assert.equal(tried.length, 3);
  exit.state = 'tls';
  exit.settled.resolve();
  assert.equal(formatContact((await joined).by), formatContact(THERE));
  assert.deepEqual([tried.length, exit.used, clock.timers], [4, [], 0]);
});

test('a node that does not leave its network within 10 seconds does not join', async () => {
  const { joining, exit, clock, tried } = setUp();
  exit.state = 'connecting';
  const rejected = assert.rejects(joining.join(invitation('', [THERE])), { code: 'connect_failed' });
  await clock.run(0);
  await clock.run(10_000);
  await rejected;
  assert.equal(tried.length, 3);
});

test('behind a proxy, the name of a contact need not resolve', async () => {
  const { joining, answer, exit } = setUp();
  exit.state = 'tls';
  answer({ host: 'node.example', port: 4121 }, 'unresolved', 'unresolved');
  assert.equal(formatContact((await joining.join('node.example')).by), 'node.example:4121');
});

test('without a way out, the failure says why', async () => {
  const { joining, exit } = setUp();
  exit.state = 'failed';
  exit.trouble = new SvcError('network_unavailable', { message: 'This network wants a login first.' });
  await assert.rejects(joining.join(invitation('', [THERE])), {
    code: 'connect_failed',
    message: /^Cannot reach .*\. This network wants a login first\.$/,
  });
});

test('another machine at a LAN address of the invitation is not the cause if the public address is silent', async () => {
  const near = { ...THERE, host: '192.168.1.7' };
  const { joining, answer } = setUp();
  answer(near, 'other_key');
  const silent = { code: 'connect_failed', message: /any of the 2 nodes\. It does not respond/ };
  await assert.rejects(joining.join(invitation('', [near, THERE])), silent);
  answer(near, 'other_key');
  await assert.rejects(joining.join(invitation('', [near])), { message: /Another node responds there/ });
});

test('an invitation to another network explains how to join it', async () => {
  const { joining, tried } = setUp();
  await assert.rejects(joining.join(invitation('office', [THERE])), {
    code: 'wrong_state',
    message: /the network "office".*the default network\. Set network = "office" in config\.toml/,
  });
  assert.deepEqual(tried, []);
});

test('a node cannot join through itself', async () => {
  const { joining } = setUp();
  const own = { ...THERE, nodeKey: OWN_KEY };
  for (const text of [invitation('', [THERE], OWN_AID), invitation('', [own]), formatContact(own)])
    await assert.rejects(joining.join(text), { code: 'self' });
});

test('invalid input is rejected with an explanation', async () => {
  const { joining } = setUp();
  await assert.rejects(joining.join('hello there'), { code: 'invalid_request', message: /svc invite/ });
  await assert.rejects(joining.join('svc://aid1/join/x'), { code: 'invalid_request', message: /damaged/ });
});

test('the network gets some time to become ready', async () => {
  const { joining, answer, clock } = setUp({ peers: 0 });
  answer(THERE, 'met');
  const done = joining.join(formatContact(THERE));
  for (let i = 0; i < 10; i++) await Promise.resolve();
  await clock.run(5_000);
  assert.equal((await done).ready, false);
});

test('an invitation names the helpers, or nodes of the routing table if there are none', async () => {
  const helped = await setUp({ helpers: [THERE] }).joining.invite();
  assert.deepEqual(helped.contacts.map(formatContact).slice(0, 1), [formatContact(THERE)]);
  assert.equal(helped.reach, 'helped');
  const alone = await setUp().joining.invite();
  assert.deepEqual(alone.contacts.map(formatContact).slice(0, 1), [formatContact(HELPER)]);
});

test('a join can be undone; configured nodes stay', async () => {
  const { joining, answer, kept, listed } = setUp();
  const configured = { host: 'node.example', port: 4121 };
  listed.set(formatContact(configured), configured);
  answer(THERE, 'met');
  await joining.join(formatContact(THERE));
  assert.deepEqual(
    joining.contacts().map(({ isJoined }) => isJoined),
    [false, true],
  );
  joining.forget(` ${formatContact(THERE)}`);
  assert.deepEqual([kept(), listed.size], [[], 1]);
  assert.throws(() => joining.forget(formatContact(THERE)), { code: 'not_found' });
  assert.throws(() => joining.forget('node.example'), { code: 'wrong_state' });
});

test('nodes of another network and invalid stored entries are hidden', () => {
  const memory = new Memory();
  new JoinedContacts('office', memory).add([THERE]);
  const here = new JoinedContacts('', memory);
  assert.deepEqual(here.current, []);
  here.add([THERE]);
  here.remove(THERE);
  assert.equal(new JoinedContacts('office', memory).current.length, 1);
  for (let port = 1; port <= 40; port++) here.add([{ host: 'node.example', port }]);
  assert.deepEqual(here.current.map(({ port }) => port).slice(-1), [40]);
  assert.equal(here.current.length, 32);
  memory.set('joined_contacts', { something: 'else' });
  assert.deepEqual(here.current, []);
});

function own(host: string, source: OwnAddress['source'], verifiedBy: OwnAddress['verifiedBy'] = null): OwnAddress {
  return { address: { host, port: 4122 }, source, verifiedBy };
}

function given(facts: Partial<NodeFacts>) {
  const { contacts, reach } = contactsForInvitation({
    nodeKey: OWN_KEY,
    dht: { host: '0.0.0.0', port: 4121 },
    known: [],
    mapped: [],
    isReached: false,
    others: [],
    ...facts,
  });
  return { reach, at: contacts.map(formatAddress) };
}

const LAN = own('192.168.1.2', 'lan');

test('a reachable node names itself, with the port of its record network', () => {
  const known = [own('203.0.113.7', 'interface', 'peers'), LAN];
  assert.deepEqual(given({ known, isReached: true, others: [HELPER] }), {
    reach: 'anywhere',
    at: ['203.0.113.7:4121', '192.168.1.2:4121'],
  });
});

test('behind a NAT the node names its helpers, and itself for its LAN', () => {
  const known = [own('203.0.113.7', 'observed'), own('203.0.113.7', 'mapped'), LAN];
  assert.deepEqual(given({ known, others: [HELPER] }), {
    reach: 'helped',
    at: ['198.51.100.9:4121', '192.168.1.2:4121'],
  });
});

test('an address that is not confirmed yet is reported as such', () => {
  assert.equal(given({ known: [own('203.0.113.7', 'interface'), LAN] }).reach, 'unproven');
  assert.deepEqual(given({ known: [own('node.example', 'configured'), LAN] }), {
    reach: 'unproven',
    at: ['node.example:4121', '192.168.1.2:4121'],
  });
  assert.deepEqual(given({ known: [LAN], mapped: [{ host: '203.0.113.7', port: 9 }] }), {
    reach: 'unproven',
    at: ['203.0.113.7:9', '192.168.1.2:4121'],
  });
});

test('the invitation of a reached node also names its public IPv6 address, for nodes with IPv6 only', () => {
  const known = [own('203.0.113.7', 'interface'), own('fd00::1', 'interface'), own('2600:1::7', 'interface'), LAN];
  assert.deepEqual(given({ known, isReached: true }), {
    reach: 'anywhere',
    at: ['203.0.113.7:4121', '[2600:1::7]:4121', '192.168.1.2:4121'],
  });
  assert.ok(!given({ known }).at.includes('[2600:1::7]:4121'));
});

test('without a public address, the invitation only works in the LAN or on the machine', () => {
  assert.deepEqual(given({ known: [LAN, own('10.0.0.1', 'lan'), own('10.1.0.1', 'lan')] }), {
    reach: 'lan',
    at: ['192.168.1.2:4121', '10.0.0.1:4121'],
  });
  const dht = { host: '127.0.0.1', port: 7 };
  assert.deepEqual(given({ dht, known: [own('127.0.0.1', 'configured')] }), { reach: 'machine', at: ['127.0.0.1:7'] });
  assert.deepEqual(given({ known: [own('2001:db8::1', 'interface')] }).at, []);
});
