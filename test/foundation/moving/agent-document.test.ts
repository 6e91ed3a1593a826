import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Check } from 'typebox/value';
import { TOOL_NAME_PATTERN } from '../../../src/foundation/domain/access.ts';
import {
  AgentDocument,
  MAX_AGENT_DOCUMENT_BYTES,
  MAX_MOVED_CHAT_BYTES,
  MAX_MOVED_CHAT_ENTRIES,
  MAX_MOVED_GROUP_BYTES,
} from '../../../src/foundation/moving/agent-document.ts';
import { testAid } from '../../support/agents.ts';

interface Found {
  readonly path: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Every schema below one, with the names of its members; `[]` is the member of a list. */
function* schemas(value: unknown, path = ''): Generator<Found> {
  if (typeof value !== 'object' || value === null) return;
  const schema: Readonly<Record<string, unknown>> = { ...value };
  yield { path, schema };
  for (const [name, member] of Object.entries(schema['properties'] ?? {})) yield* schemas(member, `${path}.${name}`);
  for (const choice of Object.values(schema['anyOf'] ?? {})) yield* schemas(choice, path);
  yield* schemas(schema['items'], `${path}[]`);
}

/** Path and value of a keyword. */
function keyword(name: string): Record<string, unknown> {
  return Object.fromEntries(
    [...schemas(AgentDocument)].filter(({ schema }) => name in schema).map(({ path, schema }) => [path, schema[name]]),
  );
}

test('every list of a document is bounded', () => {
  assert.deepEqual(keyword('maxItems'), {
    '.other_labels': 16,
    '.records.kept': 96,
    '.access.allow': 1000,
    '.access.allow[].tools': 64,
    '.access.deny': 1000,
    '.tunnels': 256,
    '.origins': 64,
    '.notes.keys': 32,
    '.notes.waiting': 2000,
    '.notes.queued': 1000,
    '.notes.seen': 100_000,
    '.chat': 20_000,
    '.chat[].entries': 250_000,
    '.groups.joined': 2000,
    '.groups.joined[].hints': 16,
    '.groups.joined[].invited': 1000,
    '.groups.joined[].entries_base64': 250_000,
    '.groups.invitations': 500,
    '.left_out.group_copies': 2000,
  });
  const lists = [...schemas(AgentDocument)].filter(({ schema }) => schema['type'] === 'array');
  assert.deepEqual(
    lists.filter(({ schema }) => schema['maxItems'] === undefined),
    [],
  );
});

test('every text of a document is bounded, or has a form of one length', () => {
  const open = [...schemas(AgentDocument)].filter(
    ({ schema: { type, maxLength, pattern, enum: choices } }) =>
      type === 'string' && maxLength === undefined && pattern === undefined && choices === undefined,
  );
  assert.deepEqual(open, []);
  assert.deepEqual(
    new Set(Object.values(keyword('pattern'))),
    new Set([...[8, 16, 32].map((n) => `^[0-9a-f]{${n * 2}}$`), TOOL_NAME_PATTERN]),
  );
  const blobs = [...schemas(AgentDocument)].filter(({ schema }) => schema['contentEncoding'] === 'base64');
  assert.deepEqual(new Set(blobs.map(({ schema }) => schema['maxLength'])), new Set([65_536]));
  assert.equal(blobs.length, 4);
});

test('every object of a document refuses members that are unknown', () => {
  const objects = [...schemas(AgentDocument)].filter(({ schema }) => schema['type'] === 'object');
  assert.ok(objects.length >= 15);
  for (const { path, schema } of objects) assert.equal(schema['additionalProperties'], false, path);
});

test('a document has at most 128 MiB, 16 of them chats and 16 of them groups', () => {
  assert.deepEqual(
    [MAX_AGENT_DOCUMENT_BYTES, MAX_MOVED_CHAT_BYTES, MAX_MOVED_GROUP_BYTES, MAX_MOVED_CHAT_ENTRIES],
    [134_217_728, 16_777_216, 16_777_216, 2000],
  );
});

test('the document of an agent that has next to nothing holds, and not with one member more or another version', () => {
  const seen = (id: string, until: number) => ({ keys: [], waiting: [], queued: [], seen: [{ id, until }] });
  const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
  const document = {
    svcd_agent: 1,
    svcd_version: '1',
    exported_at: 0,
    aid: testAid(1),
    operational_private_key_hex: '',
    delegation_proof_hex: '',
    service_tcp: '',
    evidence: false,
    records: { seq: 0, kept: [] },
    tunnels: [],
    origins: [],
    notes: seen('ab'.repeat(32), latest),
    chat: [],
    groups: { joined: [], invitations: [] },
    left_out: { chat_entries: 0, group_copies: [], objects: 0 },
  };
  assert.ok(Check(AgentDocument, document));
  assert.ok(Check(AgentDocument, { ...document, card: '{}' }));
  for (const change of [
    { svcd_agent: 2 },
    { origins: [{ remote_aid: testAid(2), local_port: 0 }] },
    { evidence: 1 },
    { more: 1 },
    { notes: seen('ab'.repeat(31), latest) },
    { notes: seen('ab'.repeat(32), latest + 1) },
  ])
    assert.ok(!Check(AgentDocument, { ...document, ...change }), JSON.stringify(change));
});
