/** config.toml: parsed with errors that name key and line, and replaced atomically with a backup. */
import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { closestWord } from '../closest-word.ts';
import { SvcError } from '../errors.ts';
import { OTHERS_MODE } from '../files.ts';
import { copyForeignFile, readForeignFile, writeForeignFile } from '../foreign-file.ts';
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
  const { text } = readForeignFile(path, MAX_CONFIG_FILE_BYTES);
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

/**
 * Writes the file and keeps the old one as `.bak`. Links, mode and owner stay.
 * @throws SvcError `not_writable`, `wrong_state` if the file was changed meanwhile
 */
export function writeConfigFile(path: string, text: string): void {
  const before = readForeignFile(path, MAX_CONFIG_FILE_BYTES);
  if (before.stats !== null) copyForeignFile(before, `${path}.bak`, false);
  writeForeignFile(before, text);
}

/** A warning if other users of this machine can access the file, or null. */
export function checkFileMode(path: string): string | null {
  if (process.platform === 'win32' || !existsSync(path)) return null;
  const mode = statSync(path).mode & 0o777;
  if ((mode & OTHERS_MODE) === 0) return null;
  return `${path} has mode ${mode.toString(8)} and may hold secrets: run "chmod 600" on it.`;
}
