import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import * as fc from 'fast-check';
import { MAX_MAILBOX_BYTES } from '../../src/capabilities/notes/inbox.ts';
import { toHex } from '../../src/foundation/bytes.ts';
import { MAX_NOTE_BODY_BYTES } from '../../src/foundation/domain/notes.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { encodeDelegation } from '../../src/foundation/identity/delegation.ts';
import {
  type AgentDocument,
  MAX_AGENT_DOCUMENT_BYTES,
  MAX_MOVED_CHAT_BYTES,
} from '../../src/foundation/moving/agent-document.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { CardStore, UNSIGNED } from '../../src/foundation/store/cards.ts';
import { ChatStore } from '../../src/foundation/store/chat.ts';
import { ChatLog } from '../../src/foundation/store/chat-log.ts';
import { NoteStore } from '../../src/foundation/store/notes.ts';
import { TunnelStore } from '../../src/foundation/store/tunnels.ts';
import { compileInput } from '../../src/operations/input.ts';
import { movingOperations } from '../../src/operations/moving.ts';
import { delegateAnew, newIdentity, type TestIdentity } from '../support/identities.ts';
import { furnish, furnishCard, MoverNode, timeless } from '../support/mover-world.ts';
import { anything, damaged } from '../support/schema-arbitrary.ts';
import { testSecrets } from '../support/stored-secrets.ts';

const SEED = 51_121;
const RUNS = 600;
const MIB = 1024 * 1024;

function failsWith(code: string): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === code;
}

/** As the API parses it. */
const read = compileInput(movingOperations.agentImport);
function throughJson(value: unknown): AgentDocument {
  return read({ params: {}, query: {}, body: JSON.parse(JSON.stringify(value)) }) as AgentDocument;
}

/** Changes one leaf to another value of its type, or one list, so that the schema still accepts the document. */
function twisted(value: fc.JsonValue, at: number): fc.JsonValue {
  if (typeof value === 'number') return [0, 1, value + 1, Math.max(0, value - 1), 2 ** 40][at % 5] ?? 0;
  if (typeof value === 'string')
    return at % 3 === 0 ? value.replace(/[0-9a-f]/, (c) => (c === '0' ? '1' : '0')) : value.slice(at % 2);
  if (typeof value !== 'object' || value === null) return !(value ?? false);
  if (Array.isArray(value)) {
    const index = (at >> 3) % Math.max(1, value.length);
    if (at % 8 === 0) return [...value, ...value];
    if (at % 8 === 1) return value.toReversed();
    if (at % 8 === 2) return value.slice(1);
    return value.map((item, i) => (i === index ? twisted(item, at >> 5) : item));
  }
  const keys = Object.keys(value);
  const key = keys[at % Math.max(1, keys.length)];
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      name === key ? twisted(item ?? null, Math.floor(at / keys.length)) : (item ?? null),
    ]),
  );
}

describe('moving an agent', () => {
  let old: MoverNode;
  let home: MoverNode;
  let agent: TestIdentity;
  let document: AgentDocument;

  beforeEach(async () => {
    old = new MoverNode();
    home = new MoverNode();
    agent = newIdentity();
    await old.registry.register({ ...agent.credentials, serviceTcp: '127.0.0.1:8080' });
    await furnish(old, agent, [newIdentity(), newIdentity(), newIdentity()]);
    document = old.mover.export(agent.aid);
    assert.deepEqual(old.exported, [agent.aid], 'its next publication reads the network first');
  });

  afterEach(() => {
    old.close();
    home.close();
  });

  test('the imported state equals the exported state', async () => {
    assert.equal(document.records.seq, 42);
    assert.equal(document.records.kept.length, 3);
    assert.equal(document.chat.length, 2);
    assert.equal(document.groups.joined[0]?.entries_base64.length, 4);
    const { aid, portsTaken } = await home.mover.import(throughJson(document));
    assert.deepEqual([aid, portsTaken], [agent.aid, { tunnels: [], origins: [] }]);
    assert.deepEqual([home.resumed, home.served, home.settled, home.synced], [[aid], [aid], [aid], [aid]]);
    assert.equal(new AgentStore(home.store).givesEvidence(aid), true);
    assert.deepEqual(new CardStore(home.store).own(aid), new CardStore(old.store).own(aid));
    assert.deepEqual(timeless(home.mover.export(aid)), timeless(document));
    assert.equal(home.registry.service(aid), '127.0.0.1:8080');
  });

  /** Fills the mailbox. */
  function addNotes(bytes: number): void {
    const notes = new NoteStore(old.store);
    const body = new Uint8Array(MAX_NOTE_BODY_BYTES);
    const sender = newIdentity().aid;
    const letter = { sender, msgType: 1, body, sentAt: 1, receivedAt: 1, digest: new Uint8Array(8) };
    old.store.transaction(() => {
      for (let i = 0; i * body.length < bytes; i++) {
        const messageId = Buffer.alloc(32);
        messageId.writeUInt32BE(i);
        notes.add({ ...letter, aid: agent.aid, messageId, token: new Uint8Array(16) }, 1);
      }
    });
  }

  test('a document that no node would accept is not exported', () => {
    // Base64 adds one third.
    addNotes((MAX_AGENT_DOCUMENT_BYTES / 4) * 3);
    assert.throws(() => old.mover.export(agent.aid), failsWith('too_large'));
  });

  test('an agent with a full mailbox and full chats moves', async () => {
    // Pending notes, and delivered ones without acknowledgment.
    addNotes(MAX_MAILBOX_BYTES + 8 * MIB);
    const notes = new NoteStore(old.store);
    old.store.transaction(() => {
      for (let i = 0; i < 40_000; i++) notes.markSeen(agent.aid, Buffer.alloc(32, `seen ${i}`), 1);
    });
    const [friend] = new ChatStore(old.store).inState(agent.aid, 'friends');
    assert.ok(friend !== undefined);
    const log = new ChatLog(old.store);
    const text = 'x'.repeat(60 * 1024);
    const entry = (i: number) => ({ id: Buffer.alloc(16, `entry ${i}`), at: 1, text, file: null });
    const count = Math.floor((MAX_MOVED_CHAT_BYTES - MIB) / text.length);
    old.store.transaction(() => {
      for (let i = 0; i < count; i++) {
        const pair = new ChatStore(old.store).byId(friend.id);
        if (pair !== null) log.receive(pair, [entry(i)], entry(i).id, 1);
        log.queue(friend.id, entry(count + i));
      }
    });
    const full = old.mover.export(agent.aid);
    assert.equal(full.left_out.chat_entries, 0);
    assert.ok(JSON.stringify(full).length > 64 * MIB);
    await home.mover.import(throughJson(full));
    assert.deepEqual(timeless(home.mover.export(agent.aid)), timeless(full));
  });

  /** The signed card of another agent. */
  async function foreignCard(): Promise<string | undefined> {
    const node = new MoverNode();
    const identity = newIdentity();
    await node.registry.register(identity.credentials);
    furnishCard(node, identity);
    const { card } = node.mover.export(identity.aid);
    node.close();
    return card;
  }

  test('a card that an earlier key signed moves and will be signed again', async () => {
    const { operational, delegation } = delegateAnew(agent.master, agent.delegation.issuedAt + 1);
    const renewed = {
      operational_private_key_hex: toHex(operational.seed),
      delegation_proof_hex: toHex(encodeDelegation(delegation)),
    };
    await home.mover.import(throughJson({ ...document, ...renewed }));
    assert.equal(new CardStore(home.store).own(agent.aid)?.signedAt, UNSIGNED);
  });

  test('secrets of the access list move as their hashes', () => {
    assert.ok(!JSON.stringify(document).includes('open sesame'));
  });

  test('an agent that is already registered here does not change', async () => {
    await home.mover.import(throughJson(document));
    const before = home.dump();
    await assert.rejects(home.mover.import(throughJson(document)), failsWith('agent_exists'));
    assert.equal(home.dump(), before);
  });

  test('a tunnel is reported if its port is in use, and the existing tunnel is kept', async () => {
    const other = newIdentity();
    await home.registry.register(other.credentials);
    await furnish(home, other, [newIdentity(), newIdentity(), newIdentity()]);
    const tunnels = new TunnelStore(home.store, testSecrets());
    const before = tunnels.list();
    const { portsTaken } = await home.mover.import(throughJson(document));
    assert.deepEqual(portsTaken, { tunnels: [4242], origins: [4343] });
    assert.deepEqual(tunnels.list(), before);
  });

  test('a failure of the last step reverts all other steps', async () => {
    const before = home.dump();
    const key = document.notes.keys[0];
    assert.ok(key !== undefined);
    // 33 keys are one too many, which the capability detects after everything else is written.
    const keys = Array.from({ length: 33 }, (_, i) => ({ ...key, created_at: i }));
    const broken = { ...document, notes: { ...document.notes, keys } };
    await assert.rejects(home.mover.import(broken), failsWith('too_large'));
    assert.equal(home.dump(), before);
    assert.equal(home.registry.identity(agent.aid), null);
    await home.mover.import(throughJson(document));
  });

  test('invalid parts are rejected with their path, and nothing is stored', async () => {
    const [friend] = document.chat.filter(({ state }) => state === 'friends');
    const [room] = document.groups.joined;
    const [note] = document.notes.waiting;
    const [service] = document.records.kept.filter(({ type }) => type === 0x10);
    assert.ok(friend !== undefined && room !== undefined && note !== undefined && service !== undefined);
    const chat = (change: object) => ({ chat: [{ ...friend, ...change }] });
    const entry = (change: object) => chat({ entries: [{ ...friend.entries[0], ...change }] });
    const [origin] = document.origins ?? [];
    assert.ok(origin !== undefined);
    const other = newIdentity();
    const cases: Record<string, object> = {
      'another agent': { aid: other.aid },
      'a peer twice': { chat: [friend, friend] },
      'itself as a peer': chat({ peer: agent.aid }),
      'an invalid peer': chat({ peer: 'aid1nonsense' }),
      'a friend without streams': chat({ out_stream: null }),
      'entries after the end': entry({ seq: 99 }),
      'a direction that does not match': entry({ dir: 'in', status: 'sent' }),
      'an empty entry': entry({ text: undefined, file: undefined }),
      'a file name with a path': entry({ file: { object_id: 'ab'.repeat(32), name: '../x', size: 1 } }),
      'an invalid Unicode text': entry({ text: '\ud800' }),
      'an unsigned group entry': {
        groups: { ...document.groups, joined: [{ ...room, entries_base64: [Buffer.from('x').toString('base64')] }] },
      },
      'a group twice': { groups: { ...document.groups, joined: [room, room] } },
      'a note twice': { notes: { ...document.notes, waiting: [note, note] } },
      'an invalid base64 body': { notes: { ...document.notes, waiting: [{ ...note, body_base64: '*' }] } },
      'a service under another name': {
        records: { ...document.records, kept: [{ ...service, name: 'test.two' }] },
      },
      'a record that agents do not publish': {
        records: { ...document.records, kept: [{ type: 1, name: 'x', payload_base64: '', ttl: 1 }] },
      },
      'an entry with neither AID nor secret': {
        access: { default: 'deny', salt_hex: 'ab'.repeat(16), allow: [{ created_at: 1 }], deny: [] },
      },
      'two tunnels on one port': { tunnels: [document.tunnels[0], document.tunnels[0]] },
      'two local addresses of one agent': { origins: [origin, { ...origin, local_port: 1 }] },
      'a local address of an invalid agent': { origins: [{ ...origin, remote_aid: 'aid1nonsense' }] },
      'an invalid card': { card: '{"a":1}' },
      'a card in another encoding': { card: ` ${document.card ?? ''}` },
      'a card that was changed': { card: document.card?.replace('Mover', 'Thief') },
      'an unsigned card': { card: '{"protocolVersion":"1","skills":[]}' },
      'the card of another agent': { card: await foreignCard() },
    };
    const before = home.dump();
    for (const [what, change] of Object.entries(cases)) {
      await assert.rejects(home.mover.import(throughJson({ ...document, ...change })), failsWith('bad_file'), what);
      assert.equal(home.dump(), before, what);
    }
  });

  test('group entries of strangers are rejected', async () => {
    const foreign = new MoverNode();
    const thief = newIdentity();
    await foreign.registry.register(thief.credentials);
    await furnish(foreign, thief, [newIdentity(), newIdentity(), newIdentity()]);
    const [theirs] = foreign.mover.export(thief.aid).groups.joined;
    const [ours] = document.groups.joined;
    assert.ok(theirs !== undefined && ours !== undefined);
    const joined = [{ ...ours, entries_base64: [...ours.entries_base64, ...theirs.entries_base64] }];
    await home.mover.import(throughJson({ ...document, groups: { ...document.groups, joined } }));
    assert.deepEqual(home.mover.export(agent.aid).groups.joined[0]?.entries_base64, ours.entries_base64);
    foreign.close();
  });

  test('every mutated document is accepted or rejected, and a rejected one leaves nothing behind', async () => {
    const before = home.dump();
    let taken = 0;
    let refused = 0;
    const tries = fc.sample(fc.tuple(fc.nat(1_000_000), anything, fc.boolean()), { numRuns: RUNS, seed: SEED });
    for (const [at, what, coarse] of tries) {
      const whole = JSON.parse(JSON.stringify(document));
      try {
        await home.mover.import(throughJson(coarse ? damaged(whole, at, what) : twisted(whole, at)));
        taken++;
        home.registry.delete(agent.aid);
        home.noteKeys.forget(agent.aid);
        for (const table of ['access_subjects', 'tunnels', 'origins', 'groups', 'group_invites_in', 'meta'])
          home.store.run(`DELETE FROM ${table}`);
      } catch (error) {
        if (!(error instanceof SvcError) || error.status >= 500) throw error;
        refused++;
      }
      assert.equal(home.dump(), before);
    }
    assert.ok(taken > 50 && refused > 100, `${taken} accepted, ${refused} rejected`);
  });
});
