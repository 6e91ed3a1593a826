import assert from 'node:assert/strict';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { unpack } from '../../../src/capabilities/update/unpack.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

interface Entry {
  readonly name: string;
  readonly content?: string;
  /** The POSIX type flag. Default: a file. */
  readonly type?: string;
  readonly link?: string;
  /** Overrides the size field. */
  readonly size?: string;
  /** Overrides the checksum field. */
  readonly checksum?: string;
}

/** The bytes of a tarball entry, possibly with hostile content. */
function entry({ name, content = '', type = '0', link = '', size, checksum }: Entry): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0, 100, 'latin1');
  header.write('0000644\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  header.write(size ?? `${Buffer.byteLength(content).toString(8).padStart(11, '0')}\0`, 124, 12, 'latin1');
  header.write('00000000000\0', 136);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(link, 157, 100, 'latin1');
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(checksum ?? `${sum.toString(8).padStart(6, '0')}\0 `, 148, 8, 'latin1');
  return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - (Buffer.byteLength(content) % 512)) % 512)]);
}

function pax(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  const size = rest.length + String(rest.length + 2).length;
  return entry({ name: 'PaxHeader', type: 'x', content: `${size}${rest}` });
}

function tarball(...entries: readonly Buffer[]): Buffer {
  return gzipSync(Buffer.concat([...entries, Buffer.alloc(1024)]));
}

const GOOD = entry({ name: 'package/good.txt', content: 'good' });

/** Unpacks into a separate directory. Returns the resulting paths except that of the target. */
async function attempt(t: TestContext, content: Buffer): Promise<{ root: string; error: unknown }> {
  const root = temporaryDirectory(t);
  mkdirSync(join(root, 'a'));
  mkdirSync(join(root, 'outside'));
  writeFileSync(join(root, 'outside', 'victim'), 'mine');
  const error = await unpack(content, join(root, 'a', 'b')).then(
    () => null,
    (reason: unknown) => reason,
  );
  return { root, error };
}

function assertInside(root: string, what: string): void {
  assert.deepEqual(readdirSync(root).sort(), ['a', 'outside'], what);
  assert.deepEqual(readdirSync(join(root, 'a')), ['b'], what);
  assert.deepEqual(readdirSync(join(root, 'outside')), ['victim'], what);
  assert.equal(readFileSync(join(root, 'outside', 'victim'), 'utf8'), 'mine', what);
  for (const { name, parentPath } of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const stats = lstatSync(join(parentPath, name));
    assert.ok(stats.isFile() || stats.isDirectory(), `${what}: ${name}`);
    assert.equal(stats.mode & 0o6000, 0, `${what}: ${name}`);
  }
}

test('a crafted tarball writes plain files into its directory, or nothing', async (t) => {
  const crafted: Record<string, readonly Buffer[]> = {
    'a parent path': [entry({ name: 'package/../../evil', content: 'x' })],
    'a parent path at the start': [entry({ name: '../../../evil', content: 'x' })],
    'an absolute path': [entry({ name: '/package/evil', content: 'x' })],
    'a Windows path': [entry({ name: 'package\\..\\..\\evil', content: 'x' })],
    'a drive': [entry({ name: 'c:/package/evil', content: 'x' })],
    'a parent path in an extended header': [pax('path', 'package/../../../evil'), GOOD],
    'a parent path in a long name': [
      entry({ name: '././@LongLink', type: 'L', content: 'package/../../evil\0' }),
      GOOD,
    ],
    'a link out': [entry({ name: 'package/link', type: '2', link: '../../outside' })],
    'a file through a link': [
      entry({ name: 'package/link', type: '2', link: '../../outside' }),
      entry({ name: 'package/link/victim', content: 'x' }),
    ],
    'a hard link out': [
      entry({ name: 'package/hard', type: '1', link: '../outside/victim' }),
      entry({ name: 'package/hard', content: 'x' }),
    ],
    'a device': [entry({ name: 'package/device', type: '3' }), entry({ name: 'package/block', type: '4' })],
    'a pipe': [entry({ name: 'package/pipe', type: '6' })],
    'the same name twice': [GOOD, entry({ name: 'package/good.txt', content: 'again' })],
    'a file where a folder is': [
      entry({ name: 'package/x/y', content: 'x' }),
      entry({ name: 'package/x', content: 'x' }),
    ],
    'a folder where a file is': [GOOD, entry({ name: 'package/good.txt/x', content: 'x' })],
    'an invalid size': [entry({ name: 'package/x', content: 'x', size: 'nonsense\0' })],
    'a negative size': [entry({ name: 'package/x', content: 'x', size: '\u00ff'.repeat(12) })],
    'a huge size': [entry({ name: 'package/x', content: 'x', size: '77777777777\0' })],
    'a wrong checksum': [entry({ name: 'package/x', content: 'x', checksum: '000000\0 ' })],
    'a name with escapes': [entry({ name: 'package/\u001b[2J', content: 'x' })],
    nothing: [],
  };
  for (const [what, entries] of Object.entries(crafted)) {
    const { root, error } = await attempt(t, tarball(...entries));
    assert.ok(error === null || error instanceof SvcError || (error instanceof Error && 'syscall' in error), what);
    assertInside(root, what);
  }
});

test('a truncated tarball is rejected before anything is written', async (t) => {
  const whole = tarball(GOOD, entry({ name: 'package/second', content: 'x'.repeat(2000) }));
  for (const length of [0, 1, 10, Math.floor(whole.length / 2), whole.length - 1]) {
    const { root, error } = await attempt(t, whole.subarray(0, length));
    assert.ok(error instanceof SvcError && error.code === 'protocol_error', `${length} bytes`);
    assert.equal(existsSync(join(root, 'a', 'b')), false);
  }
});

test('a tarball with too many files is rejected', async (t) => {
  const many = Array.from({ length: 20_001 }, (_, i) => entry({ name: `package/${i}`, type: '6' }));
  const { error } = await attempt(t, tarball(...many));
  assert.ok(error instanceof SvcError && /more than 20000 files/.test(error.message), String(error));
});

test('an existing directory is not written to', async (t) => {
  const root = temporaryDirectory(t);
  mkdirSync(join(root, 'elsewhere'));
  symlinkSync(join(root, 'elsewhere'), join(root, 'target'));
  await assert.rejects(unpack(tarball(GOOD), join(root, 'target')), { code: 'EEXIST' });
  assert.deepEqual(readdirSync(join(root, 'elsewhere')), []);
});
