/** Publishes one agent without end, and says each sequence number that went out. To be killed. */
import { writeSync } from 'node:fs';
import { fromHex } from '../../src/foundation/bytes.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { DirectoryWorld } from './directory-world.ts';
import { delegateAnew } from './identities.ts';

const [file = '', seed = ''] = process.argv.slice(2);
const key = KeyPair.fromSeed(fromHex(seed) ?? new Uint8Array());
const world = new DirectoryWorld({ store: Store.open(file, MIGRATIONS) });
const { aid } = world.add(delegateAnew(key, undefined, 0, key));
// A network that knows nothing of earlier lives: the database alone has to remember.
world.network.beforePut = (record) => void writeSync(1, `${record.seq}\n`);
for (;;) await world.directory.publish(aid);
