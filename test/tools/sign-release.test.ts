import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { create } from 'tar';
import { RELEASE_KEYS, releaseProblem } from '../../src/capabilities/update/release-keys.ts';
import { fromHex } from '../../src/foundation/bytes.ts';
import { isUsablePublicKey } from '../../src/foundation/identity/ed25519.ts';
import { sha512 } from '../support/npm-registry.ts';
import { run, runOk } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const TOOL = 'tools/sign-release.ts';

test('a build that pins the key accepts a release signed by the tool', async (t) => {
  const directory = temporaryDirectory(t);
  const keyFile = join(directory, 'release-key.pem');
  const key = (await runOk(process.execPath, [TOOL, '--new', keyFile])).trim();
  if (process.platform !== 'win32') assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.notEqual((await run(process.execPath, [TOOL, '--new', keyFile])).code, 0, 'a key is never replaced');

  mkdirSync(join(directory, 'package'));
  writeFileSync(join(directory, 'package', 'package.json'), JSON.stringify({ name: 'svcd', version: '1.1.0' }));
  const tarball = join(directory, 'svcd-1.1.0.tgz');
  create({ file: tarball, gzip: true, cwd: directory, sync: true }, ['package']);
  const { svcd } = JSON.parse(await runOk(process.execPath, [TOOL, '--key', keyFile, tarball]));
  const release = { name: 'svcd', version: '1.1.0', integrity: sha512(readFileSync(tarball)) };
  assert.equal(releaseProblem(release, svcd, [key]), null);
  assert.match(releaseProblem(release, svcd, []) ?? '', /not signed with a release key/);
});

test('every pinned key is a valid public key', () => {
  for (const key of RELEASE_KEYS) {
    const bytes = fromHex(key);
    assert.ok(bytes !== null && isUsablePublicKey(bytes) && key === key.toLowerCase(), key);
  }
});
