/** config.toml: parsed with errors that name key and line, and replaced atomically with a backup. */
import { existsSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { closestWord } from '../closest-word.ts';
import { codeOf, SvcError } from '../errors.ts';
import { describeDiskError, OTHERS_MODE, writeFileAtomic, writeFileInPlace } from '../files.ts';
import { CONFIG_KEYS, type Config, type ConfigKey, isConfigKey } from './schema.ts';
import { lineOf } from './toml-edit.ts';
import { checkValue } from './values.ts';

/** The source of a value, for the error about it. */
export interface Origin {
  readonly source: 'file' | 'environment' | 'flag' | 'patch' | 'combination';
  /** As text: `config.toml line 3`. */
  readonly where: string;
  readonly line?: number;
}

/** Maximum length of an unknown key in an error, in characters. */
const MAX_SHOWN_NAME_LENGTH = 64;

/** The error for an invalid key. It names the key, never the value. */
export function invalidConfig(key: string, problem: string, origin: Origin): SvcError {
  const shown = key.slice(0, MAX_SHOWN_NAME_LENGTH);
  const name = /^[a-z_]+$/.test(key) ? shown : JSON.stringify(shown);
  const { where, ...details } = origin;
  return new SvcError('config_invalid', {
    message: `${where}: ${name} ${problem}.`,
    details: { key: shown, ...details },
  });
}

/** Largest config.toml, bytes. */
const MAX_CONFIG_FILE_BYTES = 256 * 1024;
/** Deepest nesting of inline tables and arrays in config.toml. */
const MAX_TOML_DEPTH = 8;

/** The text of the file, and the values of its keys. */
export interface ConfigFile {
  readonly text: string;
  readonly values: Partial<Config>;
}

/**
 * Reads and validates the file. A missing file sets no keys.
 * @throws SvcError `config_invalid` with file, line and key
 */
export function readConfigFile(path: string): ConfigFile {
  if (!existsSync(path)) return { text: '', values: {} };
  let text: string;
  try {
    if (statSync(path).size > MAX_CONFIG_FILE_BYTES) {
      throw new SvcError('config_invalid', { message: `${path} is larger than ${MAX_CONFIG_FILE_BYTES} bytes.` });
    }
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof SvcError) throw error;
    const refused = error instanceof Error && 'syscall' in error;
    const why = refused ? describeDiskError(error) : ` as UTF-8 text (${codeOf(error)}).`;
    throw new SvcError('config_invalid', { message: `${path} cannot be read${why}` });
  }
  return { text, values: parseConfig(text, basename(path)) };
}

/** The values in a TOML text. `name` is used in errors. */
export function parseConfig(text: string, name: string): Partial<Config> {
  const values: Partial<Record<ConfigKey, Config[ConfigKey]>> = {};
  for (const [key, raw] of Object.entries(parseToml(text, name))) {
    const line = lineOf(text, key) ?? 1;
    const source: Origin = { source: 'file', where: `${name} line ${line}`, line };
    if (!isConfigKey(key)) throw invalidConfig(key, unknownKey(key), source);
    const checked = checkValue(key, raw);
    if ('problem' in checked) throw invalidConfig(key, checked.problem, source);
    values[key] = checked.value;
  }
  return values as Partial<Config>;
}

/** The problem of an unknown key, with the key that the user most likely meant. */
function unknownKey(key: string): string {
  const meant = closestWord(key.slice(0, MAX_SHOWN_NAME_LENGTH), CONFIG_KEYS);
  return `is not a configuration key${meant === undefined ? '' : ` (did you mean ${meant}?)`}`;
}

function parseToml(text: string, name: string): Record<string, unknown> {
  try {
    return parse(text, { maxDepth: MAX_TOML_DEPTH, unsafeKeyBehaviour: 'throw' });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The parser quotes the lines around the error, which may contain a token: only its first sentence is used.
    const reason = error.message.split('\n', 1)[0]?.replace(/^Invalid TOML document: /, '');
    const message = `${name} line ${error.line}, column ${error.column}: ${reason}.`;
    throw new SvcError('config_invalid', { message, details: { source: 'file', line: error.line } });
  }
}

/** Follows links, also to a file that does not exist yet. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  try {
    return targetOf(resolve(dirname(path), readlinkSync(path)));
  } catch (error) {
    // Not a link, or a new file.
    if (codeOf(error) === 'EINVAL' || codeOf(error) === 'ENOENT') return path;
    throw error;
  }
}

/**
 * Replaces the file and keeps the old one as `.bak`. Both are readable by their owner only. Links are followed. A file
 * that is a mount point cannot be replaced: it is overwritten.
 * @throws SvcError `not_writable`
 */
export function writeConfigFile(path: string, text: string): void {
  const target = targetOf(path);
  if (!existsSync(target)) return writeFileAtomic(target, text);
  writeFileAtomic(`${path}.bak`, readFileSync(target));
  try {
    writeFileAtomic(target, text);
  } catch (error) {
    if (!(error instanceof SvcError && codeOf(error.cause) === 'EBUSY')) throw error;
    writeFileInPlace(target, text);
  }
}

/** A warning if other users of this machine can access the file, or null. */
export function checkFileMode(path: string): string | null {
  if (process.platform === 'win32' || !existsSync(path)) return null;
  const mode = statSync(path).mode & 0o777;
  if ((mode & OTHERS_MODE) === 0) return null;
  return `${path} has mode ${mode.toString(8)} and may hold secrets: run "chmod 600" on it.`;
}
