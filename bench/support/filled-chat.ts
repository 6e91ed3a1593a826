/** A conversation with many entries, written into the databases of two stopped daemons. */
import { join } from 'node:path';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';

/** The state of stored entries: 0 received, 2 sent and acknowledged. */
type Side = 'received' | 'sent';

/** Appends entries. */
export function fillChat(dataDir: string, aid: string, peer: string, entries: number, side: Side): void {
  const store = Store.open(join(dataDir, 'svcd.db'), MIGRATIONS);
  try {
    store.transaction(() => {
      const pair = store.one('SELECT id, last_seq FROM chat_pairs WHERE aid = ? AND peer = ?', aid, peer);
      const [id, last] = [Number(pair?.['id']), Number(pair?.['last_seq'])];
      const incoming = side === 'received' ? 1 : 0;
      store.run(
        `INSERT INTO chat_entries (pair, seq, id, incoming, status, at, text, bytes)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         SELECT ?, ? + i, CAST(printf('%016d', i) AS BLOB), ?, ?, i, printf('%-100d', i), 228 FROM n`,
        entries,
        id,
        last,
        incoming,
        side === 'received' ? 0 : 2,
      );
      store.run(
        'UPDATE chat_pairs SET last_seq = last_seq + ?1, unread = unread + ?1 * ?2, unread_bytes = unread_bytes + 228 * ?1 * ?2 WHERE id = ?3',
        entries,
        incoming,
        id,
      );
    });
  } finally {
    store.close();
  }
}
