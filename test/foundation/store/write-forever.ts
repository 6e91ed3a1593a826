/**
 * Child process of store.test.ts. `pairs`: commits pairs of rows and prints each committed one. `half`: stops during a
 * transaction that exceeds SQLite's cache.
 */
import { writeSync } from 'node:fs';
import { Store } from '../../../src/foundation/store/store.ts';
import { ROWS } from './rows.ts';

const [, , file = '', what] = process.argv;
const STDOUT_FD = 1;
const store = Store.open(file, [ROWS]);
const blob = new Uint8Array(64 * 1024);

function insert(pair: number): void {
  store.run('INSERT INTO rows (pair, data) VALUES (?, ?)', pair, blob);
}

if (what === 'half') {
  store.transaction(() => {
    for (let pair = 1; pair <= 400; pair += 1) insert(-pair);
    writeSync(STDOUT_FD, 'half\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
}
for (let pair = 1; ; pair += 1) {
  store.transaction(() => {
    insert(pair);
    insert(pair);
  });
  writeSync(STDOUT_FD, `${pair}\n`);
}
