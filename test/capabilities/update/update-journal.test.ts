import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpdateJournal } from '../../../src/capabilities/update/update-journal.ts';

test('stored fields change one by one, and invalid state counts as empty', () => {
  const rows = new Map<string, unknown>();
  const memory = new UpdateJournal({ get: (key) => rows.get(key), set: (key, value) => void rows.set(key, value) });
  const nothing = { checkedAt: null, latest: null, checkError: '', begun: null, failed: null };
  assert.deepEqual(memory.get(), nothing);
  memory.set({ checkedAt: 5, latest: '1.2.3' });
  memory.set({ checkError: 'why' });
  assert.deepEqual(memory.get(), { ...nothing, checkedAt: 5, latest: '1.2.3', checkError: 'why' });
  const [key] = rows.keys();
  rows.set(key ?? '', { checkedAt: 'yesterday' });
  assert.deepEqual(memory.get(), nothing);
});
