import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { isKeyFile, KeyStore, keyFileName } from '../../../src/foundation/keys/key-store.ts';
import { type Log, silentLog } from '../../../src/foundation/log.ts';
import { cheapPassphrase } from '../../support/cheap-scrypt.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const AID = 'aid1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0jqscdpm9';

function open(directory: string, passphrase?: string, log: Log = silentLog): Promise<KeyStore> {
  return KeyStore.open(
    { directory, ...(passphrase === undefined ? {} : { passphrase: cheapPassphrase(passphrase) }) },
    { log },
  );
}

function directoryIn(t: TestContext): string {
  return join(temporaryDirectory(t), 'keys');
}

function refuses(code: string): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === code;
}

function mode(path: string): number {
  return statSync(path).mode & 0o777;
}

test('keys come back after a restart, in files that only their owner reads', async (t) => {
  const directory = directoryIn(t);
  const [node, agent] = [KeyPair.generate(), KeyPair.generate()];
  const store = await open(directory);
  store.put('node', node);
  store.put(AID, agent);
  assert.equal(mode(directory), 0o700);
  assert.deepEqual(
    readdirSync(directory).map((file) => mode(join(directory, file))),
    [0o600, 0o600],
  );
  const again = await open(directory);
  assert.deepEqual(again.list(), [AID, 'node']);
  assert.deepEqual(again.get('node')?.seed, node.seed);
  assert.deepEqual(again.get(AID)?.seed, agent.seed);
  assert.equal(again.get('other'), null);
});

test('a key is replaced and deleted', async (t) => {
  const store = await open(directoryIn(t));
  const second = KeyPair.generate();
  store.put('node', KeyPair.generate());
  store.put('node', second);
  assert.deepEqual(store.get('node')?.seed, second.seed);
  store.delete('node');
  store.delete('node');
  assert.equal(store.get('node'), null);
  assert.deepEqual(store.list(), []);
});

test('names cannot leave the directory', async (t) => {
  const directory = directoryIn(t);
  const store = await open(directory);
  for (const name of ['', '.', '..', '../node', 'a/b', 'a\\b', 'a.b', 'node\0', '-x', 'a b', 'x'.repeat(101)]) {
    assert.throws(() => store.put(name, KeyPair.generate()), RangeError, name);
    assert.throws(() => store.get(name), RangeError, name);
    assert.throws(() => store.delete(name), RangeError, name);
  }
  assert.deepEqual(readdirSync(directory), []);
});

test('a sealed store shows nothing without the passphrase and opens with it', async (t) => {
  const directory = directoryIn(t);
  const pair = KeyPair.generate();
  const sealed = await open(directory, 'correct horse');
  sealed.put('node', pair);
  const content = readFileSync(join(directory, 'node.key'), 'utf8');
  assert.ok(!content.includes(Buffer.from(pair.seed).toString('hex')));
  await assert.rejects(open(directory), refuses('key_locked'));
  await assert.rejects(open(directory, ''), refuses('key_locked'));
  await assert.rejects(open(directory, 'correct horsf'), refuses('key_locked'));
  assert.deepEqual((await open(directory, 'correct horse')).get('node')?.seed, pair.seed);
});

test('an empty passphrase is refused before anything is made', async (t) => {
  const directory = directoryIn(t);
  await assert.rejects(open(directory, ''), refuses('key_locked'));
  assert.ok(!existsSync(directory));
});

test('a seal has the documented sizes and is not rewritten when it is opened', async (t) => {
  const directory = directoryIn(t);
  const store = await open(directory, 'x');
  store.put('node', KeyPair.generate());
  const read = (file: string): Record<string, unknown> => JSON.parse(readFileSync(join(directory, file), 'utf8'));
  const { salt, wrapped, complete } = read('seal.json');
  const { sealed } = read('node.key');
  // Nonce, key and tag: 12, 32 and 16 bytes.
  assert.deepEqual([String(salt).length, String(wrapped).length, String(sealed).length], [64, 120, 120]);
  assert.equal(complete, true);
  const before = statSync(join(directory, 'seal.json')).ino;
  await open(directory, 'x');
  assert.equal(statSync(join(directory, 'seal.json')).ino, before);
});

test('a seal is complete only when every key is sealed', async (t) => {
  const directory = directoryIn(t);
  (await open(directory)).put('node', KeyPair.generate());
  const good = readFileSync(join(directory, 'node.key'), 'utf8');
  writeFileSync(join(directory, 'node.key'), 'broken');
  await assert.rejects(open(directory, 'x'), refuses('key_damaged'));
  assert.match(readFileSync(join(directory, 'seal.json'), 'utf8'), /"complete":false/);
  writeFileSync(join(directory, 'node.key'), good);
  await open(directory, 'x');
  assert.match(readFileSync(join(directory, 'seal.json'), 'utf8'), /"complete":true/);
  assert.match(readFileSync(join(directory, 'node.key'), 'utf8'), /"sealed"/);
});

test('a seal that is none is damaged, not a wrong passphrase', async (t) => {
  const directory = directoryIn(t);
  await open(directory, 'x');
  const state: object = JSON.parse(readFileSync(join(directory, 'seal.json'), 'utf8'));
  for (const change of [{ svcd_seal: 2 }, { salt: 7 }, { wrapped: null }, { salt: undefined, wrapped: undefined }]) {
    writeFileSync(join(directory, 'seal.json'), JSON.stringify({ ...state, ...change }));
    await assert.rejects(open(directory, 'x'), refuses('key_damaged'), JSON.stringify(change));
  }
  for (const wrapped of ['', 'ab', 'zz', '00'.repeat(28), '00'.repeat(60)]) {
    writeFileSync(join(directory, 'seal.json'), JSON.stringify({ ...state, wrapped }));
    await assert.rejects(open(directory, 'x'), refuses('key_locked'), wrapped);
  }
});

test('a passphrase seals the keys that were there before, also when it was interrupted', async (t) => {
  const directory = directoryIn(t);
  const [node, agent] = [KeyPair.generate(), KeyPair.generate()];
  const before = await open(directory);
  before.put('node', node);
  before.put(AID, agent);
  const unsealed = readFileSync(join(directory, 'node.key'), 'utf8');
  await open(directory, 'first');
  // As if the process died before this file and the last write of the seal.
  const state: object = JSON.parse(readFileSync(join(directory, 'seal.json'), 'utf8'));
  writeFileSync(join(directory, 'node.key'), unsealed, { mode: 0o600 });
  writeFileSync(join(directory, 'seal.json'), JSON.stringify({ ...state, complete: false }), { mode: 0o600 });
  const again = await open(directory, 'first');
  assert.deepEqual(again.get('node')?.seed, node.seed);
  assert.deepEqual(again.get(AID)?.seed, agent.seed);
  for (const file of ['node.key', `${AID}.key`])
    assert.ok(!readFileSync(join(directory, file), 'utf8').includes('"secret"'), file);
});

test('a key put into a sealed store without the passphrase, or under another name, is refused', async (t) => {
  const directory = directoryIn(t);
  const store = await open(directory, 'x');
  store.put('a', KeyPair.generate());
  store.put('b', KeyPair.generate());
  renameSync(join(directory, 'a.key'), join(directory, 'b.key'));
  assert.throws(() => store.get('b'), refuses('key_damaged'));
  const swapped = readFileSync(join(directory, 'b.key'), 'utf8').replace('"name":"a"', '"name":"b"');
  writeFileSync(join(directory, 'b.key'), swapped);
  assert.throws(() => store.get('b'), refuses('key_damaged'));
  writeFileSync(join(directory, 'b.key'), JSON.stringify({ svcd_key: 1, name: 'b', secret: '11'.repeat(32) }));
  assert.throws(() => store.get('b'), refuses('key_damaged'));
});

test('damaged files are refused and never quoted', async (t) => {
  const directory = directoryIn(t);
  const store = await open(directory);
  const seed = 'c0ffee'.repeat(10);
  const contents = ['', '{', `{"secret":"${seed}`, '[]', 'null', `{"svcd_key":2,"name":"n","secret":"${seed}"}`];
  contents.push('{"svcd_key":1,"name":"n","secret":"zz"}', '{"svcd_key":1,"name":"n"}', 'x'.repeat(20_000));
  for (const content of contents) {
    writeFileSync(join(directory, 'n.key'), content, { mode: 0o600 });
    assert.throws(
      () => store.get('n'),
      (error) => refuses('key_damaged')(error) && !String(error).includes('c0ffee'),
      content.slice(0, 40),
    );
  }
});

test('removes access for other users and logs it', async (t) => {
  const directory = directoryIn(t);
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, message) => void lines.push(message) };
  mkdirSync(directory, { mode: 0o755 });
  const store = await open(directory, undefined, log);
  store.put('node', KeyPair.generate());
  chmodSync(join(directory, 'node.key'), 0o644);
  assert.ok(store.get('node'));
  assert.equal(mode(directory), 0o700);
  assert.equal(mode(join(directory, 'node.key')), 0o600);
  assert.equal(lines.length, 2);
});

test("another user's directory is refused", async (t) => {
  const directory = directoryIn(t);
  mkdirSync(directory, { mode: 0o700 });
  const root = process.getuid?.() === 0;
  if (root) chownSync(directory, 1, 1);
  await assert.rejects(open(root ? directory : '/'), refuses('key_exposed'));
});

test('a link, a directory and a device in place of a key are refused', async (t) => {
  const directory = directoryIn(t);
  const store = await open(directory);
  store.put('real', KeyPair.generate());
  symlinkSync(join(directory, 'real.key'), join(directory, 'linked.key'));
  symlinkSync('/dev/zero', join(directory, 'zero.key'));
  mkdirSync(join(directory, 'folder.key'));
  assert.throws(() => store.get('linked'), refuses('key_exposed'));
  assert.throws(() => store.get('zero'), refuses('key_exposed'));
  assert.throws(() => store.get('folder'), refuses('key_damaged'));
});

test('removes the files of an interrupted write', async (t) => {
  const directory = directoryIn(t);
  mkdirSync(directory, { mode: 0o700 });
  writeFileSync(join(directory, 'node.key.tmp'), 'half a key', { mode: 0o600 });
  writeFileSync(join(directory, 'notes.tmp'), "somebody else's", { mode: 0o600 });
  await open(directory);
  assert.ok(!existsSync(join(directory, 'node.key.tmp')));
  assert.ok(existsSync(join(directory, 'notes.tmp')));
});

test('a directory that cannot be made is an error that names it', async (t) => {
  const file = join(temporaryDirectory(t), 'file');
  writeFileSync(file, '');
  await assert.rejects(open(join(file, 'keys')), refuses('not_writable'));
  await assert.rejects(open(file), refuses('not_writable'));
});

test('secret bytes of other kinds are kept as they are', async (t) => {
  const store = await open(directoryIn(t));
  const secret = Uint8Array.from({ length: 200 }, (_, index) => index);
  store.putSecret('notes-1', secret);
  assert.deepEqual(store.getSecret('notes-1'), secret);
  store.putSecret('most', new Uint8Array(4096));
  assert.equal(store.getSecret('most')?.length, 4096);
  assert.throws(() => store.putSecret('more', new Uint8Array(4097)), RangeError);
  assert.deepEqual(store.list(), ['most', 'notes-1']);
});

test('files of other names are none of a key store', async (t) => {
  const directory = directoryIn(t);
  const store = await open(directory);
  const others = ['notes.txt', 'README12', 'a b.key', '.key', 'a.key2', 'seal.json2'];
  for (const name of others) writeFileSync(join(directory, name), '');
  assert.deepEqual(store.list(), []);
  assert.deepEqual(others.filter(isKeyFile), []);
  assert.deepEqual(['seal.json', 'a.key', keyFileName('node')].map(isKeyFile), [true, true, true]);
});
