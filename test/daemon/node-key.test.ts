import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadNodeIdentity } from '../../src/daemon/foundation.ts';
import { nativeAid } from '../../src/foundation/identity/aid.ts';
import { verifyDelegationSignature } from '../../src/foundation/identity/delegation-verifier.ts';
import { verifySignature } from '../../src/foundation/identity/keys.ts';
import { KeyStore } from '../../src/foundation/keys/key-store.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('a node creates its key at the first start and keeps it', async (t) => {
  const directory = temporaryDirectory(t);
  const open = (): Promise<KeyStore> => KeyStore.open({ directory }, { log: silentLog });
  const first = loadNodeIdentity(await open());
  const file = readFileSync(join(directory, 'node.key'));
  const second = loadNodeIdentity(await open());
  assert.equal(second.aid, first.aid);
  assert.deepEqual(second.key.seed, first.key.seed);
  assert.deepEqual(readFileSync(join(directory, 'node.key')), file, 'the key is written once');
});

test('the node key is both master key and operational key', async (t) => {
  const keys = await KeyStore.open({ directory: temporaryDirectory(t) }, { log: silentLog });
  const node = loadNodeIdentity(keys);
  assert.equal(node.aid, nativeAid(node.key.publicKey));
  assert.equal(node.delegation.agent, node.aid);
  assert.deepEqual(node.delegation.operationalKey, node.key.publicKey);
  verifyDelegationSignature(node.delegation);
  const message = Uint8Array.of(1, 2, 3);
  assert.ok(verifySignature(node.key.publicKey, message, node.sign(message)));
});

test('a damaged key is an error, never another identity', async (t) => {
  const directory = temporaryDirectory(t);
  const keys = await KeyStore.open({ directory }, { log: silentLog });
  loadNodeIdentity(keys);
  writeFileSync(join(directory, 'node.key'), '{}', { mode: 0o600 });
  assert.throws(() => loadNodeIdentity(keys), { code: 'key_damaged' });
  assert.equal(readFileSync(join(directory, 'node.key'), 'utf8'), '{}');
});
