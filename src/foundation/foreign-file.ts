/**
 * Reads and changes files that belong to the user or to other programs, such as `config.toml` and the configurations of
 * MCP clients. Links, mode, owner and encoding stay.
 */
import {
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { devNull } from 'node:os';
import { dirname, resolve } from 'node:path';
import { codeOf, SvcError } from './errors.ts';
import {
  describeDiskError,
  PRIVATE_DIRECTORY_MODE,
  PRIVATE_FILE_MODE,
  replaceFile,
  syncDirectory,
  writeFileInPlace,
} from './files.ts';

/** Links that are followed from one name to the next. */
const MAX_LINKS = 40;
const MODE_BITS = 0o7777;

/** Follows links, also to a file that does not exist yet. @throws the system error */
function targetOf(path: string, links = 0): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || links > MAX_LINKS) throw error;
  }
  try {
    return targetOf(resolve(dirname(path), readlinkSync(path)), links + 1);
  } catch (error) {
    // Not a link, or a new file.
    if (codeOf(error) === 'EINVAL' || codeOf(error) === 'ENOENT') return path;
    throw error;
  }
}

/** A file as it was read. */
export interface ForeignFile {
  /** The file that links lead to. */
  readonly file: string;
  /** Null if there is no such file yet. */
  readonly stats: Stats | null;
  readonly bytes: Buffer;
  /** Empty if there is no such file yet. A byte order mark stays. */
  readonly text: string;
}

function refused(path: string, problem: string, cause?: unknown): SvcError {
  return new SvcError('config_invalid', { message: `${path} ${problem}`, cause });
}

function readAll(path: string, descriptor: number, maxBytes: number): Buffer {
  const chunk = Buffer.alloc(64 * 1024);
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const read = readSync(descriptor, chunk);
    if (read === 0) return Buffer.concat(chunks);
    length += read;
    if (length > maxBytes) throw refused(path, `is larger than ${maxBytes} bytes.`);
    chunks.push(Buffer.from(chunk.subarray(0, read)));
  }
}

/**
 * Reads a text file. A missing file is empty. Nothing but a regular file is read, because a pipe could block forever.
 * @throws SvcError `config_invalid` for other files, files that are too large and text that is not UTF-8
 */
export function readForeignFile(path: string, maxBytes: number): ForeignFile {
  let file = path;
  try {
    file = targetOf(path);
    if (!existsSync(file)) return { file, stats: null, bytes: Buffer.alloc(0), text: '' };
    // Without this flag, opening a pipe waits for its writer.
    const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const stats = fstatSync(descriptor);
      if (!stats.isFile() && file !== devNull) throw refused(path, 'is not a regular file.');
      const bytes = readAll(path, descriptor, maxBytes);
      return { file, stats, bytes, text: textOf(path, bytes) };
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw refused(path, `cannot be read${describeDiskError(error)}`, error);
  }
}

function textOf(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw refused(path, 'cannot be read as UTF-8 text.', error);
  }
}

/** The owner for a new file of root in the directory of another user. Undefined if it is the present user. */
function ownerBeside(file: string): Pick<Stats, 'uid' | 'gid'> | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(dirname(file));
  return owner.uid === 0 ? undefined : owner;
}

/** Creates the missing directories of a file, for the owner of the first one that exists. */
function makeDirectoryOf(file: string): void {
  const directory = dirname(file);
  if (existsSync(directory)) return;
  makeDirectoryOf(directory);
  mkdirSync(directory, { mode: PRIVATE_DIRECTORY_MODE });
  const owner = ownerBeside(directory);
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
}

/** Errors of a replacement after which the file can still be overwritten. */
const OVERWRITABLE: ReadonlySet<string> = new Set(['EBUSY', 'EACCES', 'EPERM', 'EROFS', 'EXDEV']);

/** Writes a file under a temporary name, and gives it its name. @throws the system error */
function replace(file: string, content: string, { mode, uid, gid }: Partial<Stats>): void {
  const temporary = `${file}.tmp`;
  rmSync(temporary, { force: true });
  // "wx" fails if a link was created here meanwhile, so the write cannot follow it.
  const descriptor = openSync(temporary, 'wx', PRIVATE_FILE_MODE);
  try {
    try {
      const own = fstatSync(descriptor);
      if (uid !== undefined && gid !== undefined && (own.uid !== uid || own.gid !== gid))
        fchownSync(descriptor, uid, gid);
      if (mode !== undefined) fchmodSync(descriptor, mode & MODE_BITS);
      writeFileSync(descriptor, content);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    replaceFile(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncDirectory(dirname(file));
}

/**
 * Writes the new content of a file. Readers see the old or the new content, never a part, except if the file cannot be
 * replaced: one with several hard links, a mount point, or one in a directory that this user cannot write is
 * overwritten.
 * @param before the file as it was read
 * @throws SvcError `not_writable` if the write fails, `wrong_state` if the file was changed meanwhile
 */
export function writeForeignFile({ file, stats, bytes }: ForeignFile, content: string): void {
  try {
    if (stats === null) {
      makeDirectoryOf(file);
      if (existsSync(file)) throw changedMeanwhile(file);
      return replace(file, content, ownerBeside(file) ?? {});
    }
    if (!readForeignFile(file, bytes.length + 1).bytes.equals(bytes)) throw changedMeanwhile(file);
    if (stats.nlink > 1) return writeFileInPlace(file, content);
    try {
      replace(file, content, stats);
    } catch (error) {
      if (!OVERWRITABLE.has(codeOf(error))) throw error;
      writeFileInPlace(file, content);
    }
  } catch (error) {
    if (error instanceof SvcError && error.code !== 'config_invalid') throw error;
    if (error instanceof SvcError) throw changedMeanwhile(file);
    throw new SvcError('not_writable', {
      message: `${file} cannot be written${describeDiskError(error)}`,
      cause: error,
    });
  }
}

function changedMeanwhile(file: string): SvcError {
  return new SvcError('wrong_state', {
    message: `Another program has just changed ${file}. Nothing was written. Try again.`,
  });
}

/**
 * Copies a file, with its mode and owner. @param isFree false to replace an earlier copy
 * @throws SvcError `not_writable`; the system error EEXIST if the copy exists and must not be replaced
 */
export function copyForeignFile({ file, stats }: ForeignFile, copy: string, isFree: boolean): void {
  try {
    if (!isFree) rmSync(copy, { force: true });
    copyFileSync(file, copy, constants.COPYFILE_EXCL);
    if (stats === null) return;
    const descriptor = openSync(copy, 'r');
    try {
      const own = fstatSync(descriptor);
      if (own.uid !== stats.uid || own.gid !== stats.gid) fchownSync(descriptor, stats.uid, stats.gid);
      fchmodSync(descriptor, stats.mode & MODE_BITS);
    } catch (error) {
      // Without the right to give files away, the copy belongs to the present user.
      if (codeOf(error) !== 'EPERM') throw error;
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw error;
    throw new SvcError('not_writable', {
      message: `${copy} cannot be written${describeDiskError(error)}`,
      cause: error,
    });
  }
}
