/** Every table with data of an agent moves with it, or docs/moving.md gives a reason why not. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';

/** The tables that each part of an agent's document holds. */
const MOVED: Readonly<Record<string, readonly string[]>> = {
  aid: ['agents'],
  records: ['publications', 'publishers'],
  access: ['access_entries', 'access_subjects'],
  tunnels: ['tunnels'],
  origins: ['origins'],
  card: ['own_cards'],
  notes: ['notes', 'note_outbox', 'notes_seen'],
  chat: ['chat_entries', 'chat_pairs'],
  groups: ['group_entries', 'group_invites_in', 'group_invites_out', 'group_logs', 'groups'],
};

/** Tables that stay, by the words of the table in docs/moving.md. */
const STAYING: Readonly<Record<string, readonly string[]>> = {
  objects: ['object_holders', 'object_prefixes', 'objects', 'retired_objects'],
  'file offers': ['file_offers'],
  hooks: ['hook_deliveries', 'hooks'],
  'services on demand': ['on_demand'],
  'tools of the hub': ['hub_decisions', 'hub_sources', 'hub_tools'],
  'callers of temporary services': ['service_callers'],
  'requests for access': ['access_requests'],
  webhooks: ['push_boxes', 'push_mail', 'webhook_posts', 'webhooks'],
  events: ['event_streams', 'events'],
  'public names and addresses': ['exposure_tokens', 'exposures', 'public_certificates', 'public_names'],
  'names of an entry': ['entry_allowed', 'entry_invitations', 'entry_names'],
  'unfinished requests': ['notes_unsent', 'unanswered_requests'],
  'state of the node': ['admin_audit', 'meta', 'note_copies', 'retired_keys', 'seen_cards', 'seen_delegations'],
};

/** Derived from the entries of a group, or the progress of this node with its other members. */
const DERIVED = ['group_conflicts', 'group_heads', 'group_mentions', 'group_peers', 'group_retracts'];

test('each table moves with an agent, is derived from one that does, or stays on purpose', () => {
  const rows = Store.open(':memory:', MIGRATIONS).all(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  const named = [...Object.values(MOVED), ...Object.values(STAYING), DERIVED].flat();
  assert.equal(new Set(named).size, named.length);
  assert.deepEqual(new Set(named), new Set(rows.map(({ name }) => String(name))));
});

test('docs/moving.md gives a reason for each table that stays', () => {
  const page = readFileSync(new URL('../../../docs/moving.md', import.meta.url), 'utf8');
  const [, table = ''] = /\| Not moved \| Reason \|\n\|[-|]+\|\n((?:\|.*\n)+)/.exec(page) ?? [];
  const names = table
    .trimEnd()
    .split('\n')
    .map((row) => row.split(' | ')[0]?.replaceAll(/^\| |\]\([^)]*\)|\[/g, ''));
  assert.deepEqual(new Set(names), new Set(Object.keys(STAYING)));
});
