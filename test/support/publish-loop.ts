/** Publishes one agent endlessly and prints each sequence number. The test kills it. */
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
// The network does not know earlier runs: only the database remembers.
world.network.beforePut = (record) => void writeSync(1, `${record.seq}\n`);
for (;;) await world.directory.publish(aid);
