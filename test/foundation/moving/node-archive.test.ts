import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isArchived, readArchive, writeArchive } from '../../../src/foundation/moving/node-archive.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { failsWith } from '../../support/vectors.ts';

const MIB = 1024 * 1024;

/** Keeps the files of an archive in memory. */
class MemorySink {
  readonly files = new Map<string, string>();
  opened = 0;

  open({ name }: { readonly name: string }) {
    this.opened += 1;
    this.files.set(name, '');
    return {
      write: (piece: Uint8Array): void => {
        this.files.set(name, this.files.get(name) + Buffer.from(piece).toString());
      },
      close: (): void => {
        this.opened -= 1;
      },
    };
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

interface FileLine {
  readonly name: unknown;
  readonly size: unknown;
  readonly sha256: unknown;
}

function line(name: string, text: string): FileLine {
  return { name, size: text.length, sha256: sha256(text) };
}

/** An archive of a database with the text `db` and this manifest. */
function archive(manifest: object, content = 'db'): Buffer {
  const good = { svcd_backup: 1, svcd_version: '1', created_at: '2026', agents: 0, files: [line('svcd.db', 'db')] };
  return Buffer.from(`${JSON.stringify({ ...good, ...manifest })}\n${content}`);
}

async function read(bytes: Uint8Array): Promise<Map<string, string>> {
  const sink = new MemorySink();
  try {
    await readArchive([bytes], (file) => sink.open(file));
  } finally {
    assert.equal(sink.opened, 0, 'every file is closed');
  }
  return sink.files;
}

test('an archive is a line of JSON and the bytes of the files', async (t) => {
  const path = join(temporaryDirectory(t), 'db');
  writeFileSync(path, 'db');
  const facts = { svcdVersion: '1.2', createdAt: '2026-01-02', agents: 3 };
  const pieces: Uint8Array[] = [];
  const sources = [
    { name: 'keys/node.key', content: Buffer.from('key') },
    { name: 'svcd.db', content: { path } },
  ];
  for await (const piece of writeArchive(sources, facts)) pieces.push(piece);
  const [first = '', rest] = Buffer.concat(pieces).toString().split('\n');
  assert.equal(rest, 'keydb');
  const files = [line('keys/node.key', 'key'), line('svcd.db', 'db')];
  assert.deepEqual(JSON.parse(first), {
    svcd_backup: 1,
    svcd_version: '1.2',
    created_at: '2026-01-02',
    agents: 3,
    files,
  });
  const sink = new MemorySink();
  assert.deepEqual(await readArchive(pieces, (file) => sink.open(file)), { ...facts, files });
  assert.deepEqual(
    [...sink.files],
    [
      ['keys/node.key', 'key'],
      ['svcd.db', 'db'],
    ],
  );
});

test('only the files of a node have names that an archive may hold', () => {
  for (const name of ['svcd.db', 'config.toml', 'keys/seal.json', 'keys/node.key', `keys/${'x'.repeat(100)}.key`])
    assert.equal(isArchived(name), true, name);
  for (const name of [
    '',
    'svcd.db2',
    'xsvcd.db',
    'keys/.key',
    'keys/-.key',
    'keys/a/b.key',
    `keys/${'x'.repeat(101)}.key`,
  ])
    assert.equal(isArchived(name), false, name);
});

test('a manifest is taken as a whole, or not at all', async () => {
  assert.deepEqual([...(await read(archive({})))], [['svcd.db', 'db']]);
  const db = line('svcd.db', 'db');
  const wrong: object[] = [
    { svcd_backup: 2 },
    { svcd_backup: '1' },
    { svcd_version: 1 },
    { svcd_version: '1\u001b[2J' },
    { svcd_version: '1'.repeat(65) },
    { created_at: null },
    { created_at: '2026\u001b]0;title\u0007' },
    { created_at: '2'.repeat(41) },
    { agents: '0' },
    { agents: -1 },
    { agents: 1e300 },
    { files: {} },
    { files: [] },
    { files: [null] },
    { files: [db, []] },
    { files: [db, db] },
    { files: [line('config.toml', 'db')] },
    { files: [db, { ...line('keys/a.key', ''), name: 'keys/../a.key' }] },
    { files: [db, { ...line('keys/a.key', ''), name: 7 }] },
    ...[-1, 0.5, '2', null, 2 ** 53].map((size) => ({ files: [{ ...db, size }] })),
    ...['AB'.repeat(32), 'ab'.repeat(31), `${'ab'.repeat(32)}0`, 7].map((sha) => ({ files: [{ ...db, sha256: sha }] })),
  ];
  for (const manifest of wrong)
    await assert.rejects(read(archive(manifest)), failsWith('bad_file'), JSON.stringify(manifest));
  const nothing = { ...line('svcd.db', ''), size: -1 };
  await assert.rejects(read(archive({ files: [nothing] }, '')), failsWith('bad_file'), 'no bytes are not fewer');
  for (const text of ['', 'hello', '[]\n', 'null\n', '7\n', '{\n'])
    await assert.rejects(read(Buffer.from(text)), failsWith('bad_file'), text);
});

test('keys and configuration have at most 1 MiB, the database what it has', async () => {
  const [most, more] = ['x'.repeat(MIB), 'x'.repeat(MIB + 1)];
  const files = (text: string) => [line('svcd.db', 'db'), line('keys/a.key', text)];
  assert.equal((await read(archive({ files: files(most) }, `db${most}`))).get('keys/a.key'), most);
  await assert.rejects(read(archive({ files: files(more) }, `db${more}`)), failsWith('bad_file'));
  assert.equal((await read(archive({ files: [line('svcd.db', more)] }, more))).get('svcd.db'), more);
});

test('an empty file is whole', async () => {
  const files = [line('config.toml', ''), line('svcd.db', 'db')];
  assert.deepEqual(
    [...(await read(archive({ files })))],
    [
      ['config.toml', ''],
      ['svcd.db', 'db'],
    ],
  );
});

test('rejects truncated, changed and overlong archives with a reason', async () => {
  for (const [content, message] of [
    ['d', /truncated/],
    ['dc', /svcd\.db does not match its checksum/],
    ['dbx', /extra bytes/],
  ] as const)
    await assert.rejects(read(archive({}, content)), { code: 'bad_file', message });
});
