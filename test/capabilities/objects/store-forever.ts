/** Stores objects until it is killed, and writes the ID of each acknowledged one. */
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { ObjectService } from '../../../src/capabilities/objects/object-service.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { ObjectRepository } from '../../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { someBytes } from '../../support/object-world.ts';

const PIECE_BYTES = 64 * 1024;

/** The agent of the objects. */
export const aid = nativeAid(new Uint8Array(32).fill(1));

async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < bytes.length; i += PIECE_BYTES) yield bytes.subarray(i, i + PIECE_BYTES);
}

const [directory = '', seed = '0'] = process.argv.slice(2);
if (import.meta.main) {
  const store = Store.open(join(directory, 'svcd.db'), MIGRATIONS);
  const objects = new ObjectService(
    { filesRoot: join(directory, 'files') },
    new ObjectRepository(store),
    systemClock,
    silentLog,
  );
  await objects.start();
  for (let i = 0; ; i++) {
    const { objectId } = await objects.store(aid, pieces(someBytes(1 + ((i * 77_777) % 400_000), Number(seed) + i)));
    writeSync(1, `${objectId}\n`);
  }
}
