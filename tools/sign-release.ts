/**
 * Signs a release with a release key of the project. See CONTRIBUTING.md.
 *
 * `node tools/sign-release.ts --new release-key.pem` makes a key and prints its public part, which is pinned in
 * `src/capabilities/update/release-keys.ts`. `node tools/sign-release.ts --key release-key.pem svcd-1.1.0.tgz` prints the
 * member `svcd` that the version carries in the registry.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { list } from 'tar';
import { type ReleaseProof, releaseMessage } from '../src/capabilities/update/release-keys.ts';
import { toHex } from '../src/foundation/bytes.ts';
import { rawPublicKey } from '../src/foundation/identity/keys.ts';

function newKey(file: string): string {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  // Never overwrites a key: its owner could sign no further releases.
  writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600, flag: 'wx' });
  return toHex(rawPublicKey(publicKey));
}

/** Name and version of the package in a tarball. */
function packageIn(tarball: string): { readonly name: string; readonly version: string } {
  const chunks: Buffer[] = [];
  list({
    file: tarball,
    sync: true,
    filter: (path) => path === 'package/package.json',
    onReadEntry: (entry) => entry.on('data', (chunk) => chunks.push(chunk)),
  });
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as { name: string; version: string };
}

function signRelease(keyFile: string, tarball: string): { readonly svcd: ReleaseProof } {
  const key = createPrivateKey(readFileSync(keyFile));
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  const signature = sign(null, releaseMessage({ ...packageIn(tarball), integrity }), key).toString('base64');
  return { svcd: { signatures: [{ key: toHex(rawPublicKey(createPublicKey(key))), signature }] } };
}

const { values, positionals } = parseArgs({
  options: { key: { type: 'string' }, new: { type: 'string' } },
  allowPositionals: true,
});
const [tarball] = positionals;
if (values.new !== undefined) console.log(newKey(values.new));
else if (values.key !== undefined && tarball !== undefined)
  console.log(JSON.stringify(signRelease(values.key, tarball), null, 2));
else {
  console.error('Use --new KEY_FILE, or --key KEY_FILE TARBALL.');
  process.exitCode = 2;
}
