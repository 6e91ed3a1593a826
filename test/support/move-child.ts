/** Restores a node repeatedly in a separate process and reports its progress, for tests that kill it. */
import { createReadStream } from 'node:fs';
import { restoreNode } from '../../src/foundation/moving/node-restore.ts';

const [file = '', dataDir = ''] = process.argv.slice(2);

async function* telling(): AsyncGenerator<Uint8Array> {
  for await (const piece of createReadStream(file) as AsyncIterable<Uint8Array>) {
    process.send?.('piece');
    yield piece;
  }
  process.send?.('read');
}

for (let now = 0; ; now += 1000) {
  await restoreNode(telling(), { dataDir, force: true, now });
  process.send?.('restored');
}
