/**
 * The archive of a node: a line of JSON with names, sizes and digests of the files, then their bytes in this order.
 * Format: docs/moving.md, "The archive".
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { CONFIG_FILE, DATABASE_FILE, KEYS_DIRECTORY } from '../data-dir/paths.ts';
import { isSha256 } from '../domain/objects.ts';
import { SvcError } from '../errors.ts';
import { isObject, readJson } from '../json.ts';
import { isKeyFile } from '../keys/key-store.ts';
import { ByteReader, type ByteSource } from './byte-reader.ts';

const VERSION = 1;
/** Longest first line, bytes: names of 200,000 key files. */
const MAX_MANIFEST_BYTES: number = 32 * 1024 * 1024;
/** Largest file except the database, bytes. */
const MAX_SMALL_FILE_BYTES: number = 1024 * 1024;
/** Patterns of a version and a time, which are printed to terminals. */
const VERSION_TEXT = /^[\w.+-]{1,64}$/;
const TIME_TEXT = /^[\dTZ:.+-]{1,40}$/;
/** Size of a chunk, bytes. */
const PIECE_BYTES: number = 64 * 1024;
/** True for the allowed names in an archive. None leads out of the directory. */
export function isArchived(name: string): boolean {
  if (name === DATABASE_FILE || name === CONFIG_FILE) return true;
  const inKeys = `${KEYS_DIRECTORY}/`;
  return name.startsWith(inKeys) && isKeyFile(name.slice(inKeys.length));
}

export interface ArchivedFile {
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  /** SHA-256, lower-case hex. */
  readonly sha256: string;
}

export interface Manifest {
  /** Version of svcd that wrote it. */
  readonly svcdVersion: string;
  /** ISO 8601 UTC. */
  readonly createdAt: string;
  readonly agents: number;
  readonly files: readonly ArchivedFile[];
}

/** A file to archive, on disk or in memory. */
export interface FileSource {
  readonly name: string;
  readonly content: { readonly path: string } | Uint8Array;
}

function piecesOf({ content }: FileSource): ByteSource {
  return content instanceof Uint8Array ? [content] : createReadStream(content.path, { highWaterMark: PIECE_BYTES });
}

async function describe(source: FileSource): Promise<ArchivedFile> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const piece of piecesOf(source)) {
    hash.update(piece);
    size += piece.length;
  }
  return { name: source.name, size, sha256: hash.digest('hex') };
}

/** The bytes of an archive. The files must not change meanwhile. */
export async function* writeArchive(
  sources: readonly FileSource[],
  { svcdVersion, createdAt, agents }: Omit<Manifest, 'files'>,
): AsyncGenerator<Uint8Array> {
  const files: ArchivedFile[] = [];
  for (const source of sources) files.push(await describe(source));
  const manifest = { svcd_backup: VERSION, svcd_version: svcdVersion, created_at: createdAt, agents, files };
  yield Buffer.from(`${JSON.stringify(manifest)}\n`);
  for (const source of sources) yield* piecesOf(source);
}

/** Opens a file of an archive. The result receives its bytes and its end. */
type Open = (file: ArchivedFile) => { write(piece: Uint8Array): void; close(): void };

/**
 * Reads and verifies an archive to its end.
 * @throws SvcError `bad_file`, and the errors of `open` and its files
 */
export async function readArchive(source: ByteSource, open: Open): Promise<Manifest> {
  const reader = new ByteReader(source);
  const line = await reader.readLine(MAX_MANIFEST_BYTES);
  const manifest = line === null ? null : readManifest(line.toString());
  if (manifest === null)
    throw new SvcError('bad_file', {
      message: 'The file is not a backup of svcd, or it is damaged. Use another backup.',
    });
  for (const file of manifest.files) await readFile(reader, file, open);
  if (!(await reader.atEnd())) throw damaged('it contains extra bytes');
  return manifest;
}

async function readFile(reader: ByteReader, file: ArchivedFile, open: Open): Promise<void> {
  const hash = createHash('sha256');
  const target = open(file);
  try {
    for (let left = file.size; left > 0; ) {
      const piece = await reader.readSome(Math.min(left, PIECE_BYTES));
      if (piece.length === 0) throw damaged('it is truncated');
      hash.update(piece);
      target.write(piece);
      left -= piece.length;
    }
  } finally {
    target.close();
  }
  if (hash.digest('hex') !== file.sha256) throw damaged(`${file.name} does not match its checksum`);
}

function damaged(why: string): SvcError {
  return new SvcError('bad_file', {
    message: `The backup is damaged: ${why}. Nothing was changed. Use another backup.`,
  });
}

/** Null if the line is not a valid manifest. */
function readManifest(line: string): Manifest | null {
  const value = readJson(line);
  if (!isObject(value) || value['svcd_backup'] !== VERSION || !Array.isArray(value['files'])) return null;
  const { svcd_version: svcdVersion, created_at: createdAt, agents } = value;
  if (typeof svcdVersion !== 'string' || !VERSION_TEXT.test(svcdVersion)) return null;
  if (typeof createdAt !== 'string' || !TIME_TEXT.test(createdAt)) return null;
  if (typeof agents !== 'number' || !Number.isSafeInteger(agents) || agents < 0) return null;
  const files = value['files'].map(readFileLine);
  const known = files.filter((file) => file !== null);
  const names = new Set(known.map(({ name }) => name));
  if (known.length < files.length || names.size < known.length || !names.has(DATABASE_FILE)) return null;
  return { svcdVersion, createdAt, agents, files: known };
}

function readFileLine(value: unknown): ArchivedFile | null {
  if (!isObject(value)) return null;
  const { name, size, sha256 } = value;
  if (typeof name !== 'string' || !isArchived(name)) return null;
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) return null;
  if (name !== DATABASE_FILE && size > MAX_SMALL_FILE_BYTES) return null;
  return typeof sha256 === 'string' && isSha256(sha256) ? { name, size, sha256 } : null;
}
