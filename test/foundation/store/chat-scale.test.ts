/** Chat tables at scale: every query on a log uses an index. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { ChatStore } from '../../../src/foundation/store/chat.ts';
import { ChatLog } from '../../../src/foundation/store/chat-log.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { sqlText } from '../../support/recording-store.ts';

const ENTRIES = 100_000;

/** A store that records its statements. */
function recorded(): { store: Store; statements: Set<string> } {
  const store = Store.open(':memory:', MIGRATIONS);
  const statements = new Set<string>();
  const wrapped = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (name === 'run' || name === 'one' || name === 'all') statements.add(sqlText(args[0]));
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
  return { store: wrapped, statements };
}

function filled(): {
  store: Store;
  statements: Set<string>;
  chat: ChatStore;
  log: ChatLog;
  aid: Aid;
  peer: Aid;
  pair: number;
} {
  const { store, statements } = recorded();
  const { aid, delegation } = newIdentity();
  const peer = newIdentity().aid;
  new AgentStore(store).put({ keyName: aid, delegation, serviceTcp: '', registeredAt: 0 });
  const chat = new ChatStore(store);
  const log = new ChatLog(store);
  const row = chat.open(aid, peer, 0) ?? assert.fail();
  store.transaction(() => {
    for (let i = 0; i < ENTRIES; i += 500) {
      const contents = Array.from({ length: 500 }, (_, j) => {
        const id = Buffer.alloc(16);
        id.writeUInt32BE(i + j);
        return { id, at: i, text: `entry ${i + j}`, file: null };
      });
      log.receive(chat.byId(row.id) ?? assert.fail(), contents, contents.at(-1)?.id ?? null, i);
    }
  });
  return { store, statements, chat, log, aid, peer, pair: row.id };
}

test('no query on a log of 100,000 entries reads more rows than it returns', () => {
  const { store, statements, chat, log, aid, peer, pair } = filled();
  statements.clear();
  const content = { id: new Uint8Array(16).fill(255), at: 1, text: 'mine', file: null };
  for (let i = 0; i < 50; i++) {
    const page = log.page(pair, (i * 1997) % ENTRIES, 50, 1e6);
    assert.equal(page.entries.length, 50);
  }
  log.queue(pair, content);
  assert.equal(log.queued(pair, 0, 128, 1e6).length, 1);
  log.markSent(pair, ENTRIES + 1);
  log.placeOfOwn(pair, content.id);
  log.hasReceived(pair, content.id);
  log.entry(pair, 777);
  log.dropQueued(pair);
  assert.deepEqual(log.markRead(pair, ENTRIES - 10), { readCursor: ENTRIES - 10, unread: 10 });
  assert.deepEqual([...chat.counters()], [[aid, { invites: 0, unread: 10 }]]);
  chat.pair(aid, peer);
  chat.pendingPairs(0, 10);
  chat.inState(aid, 'friends');
  chat.count(aid, 'in_pending');
  chat.requestSources(aid);
  chat.inviters(aid, 10);
  chat.recentFriends(0, 10);
  chat.overdue(1, 10);
  for (const sql of [...statements]) {
    for (const row of store.all(`EXPLAIN QUERY PLAN ${sql}`)) {
      const detail = String(row['detail']);
      assert.ok(!/^SCAN (chat|notes)_?\w*(?! USING)/.test(detail) || detail.includes('USING'), `${detail}: ${sql}`);
      assert.ok(!detail.includes('TEMP B-TREE') || /UNION|chat_pairs/.test(sql), `${detail}: ${sql}`);
    }
  }
});

test('a page has as many entries as fit its bytes, at least one, and reports whether more follow', () => {
  const { log, pair } = filled();
  assert.deepEqual(
    log.page(pair, ENTRIES - 2, 50, 1e6).entries.map(({ seq }) => seq),
    [ENTRIES - 1, ENTRIES],
  );
  assert.equal(log.page(pair, ENTRIES - 2, 50, 1e6).more, false);
  assert.equal(log.page(pair, 0, 50, 300).entries.length, 2);
  assert.equal(log.page(pair, 0, 50, 300).more, true);
  assert.equal(log.page(pair, 0, 50, 1).entries.length, 1);
  assert.equal(log.page(pair, ENTRIES, 50, 1e6).entries.length, 0);
});

test('a known entry is not added again, regardless of its number', () => {
  const { log, chat, pair } = filled();
  const row = chat.byId(pair) ?? assert.fail();
  const id = Buffer.alloc(16);
  id.writeUInt32BE(5);
  const fresh = new Uint8Array(16).fill(9);
  const added = log.receive(
    row,
    [
      { id, at: 1, text: 'again', file: null },
      { id: fresh, at: 1, text: 'new', file: null },
    ],
    fresh,
    5,
  );
  assert.deepEqual(added, [ENTRIES + 1]);
  const after = chat.byId(pair);
  assert.deepEqual([after?.receivedId, after?.unread, after?.lastSeq], [fresh, ENTRIES + 1, ENTRIES + 1]);
});
