/** The configuration of a running daemon: file < environment < flags. Changes are validated, then committed. */

import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Type } from 'typebox';
import { Create } from 'typebox/value';
import { isUnguessable, SHORT_TOKEN_WARNING } from '../domain/api-token.ts';
import { isObject } from '../json.ts';
import { checkFileMode, invalidConfig, type Origin, parseConfig, readConfigFile, writeConfigFile } from './file.ts';
import {
  CONFIG_KEYS,
  type Config,
  type ConfigKey,
  ConfigSchema,
  environmentName,
  isConfigKey,
  LIVE_KEYS,
  PATCHABLE_KEYS,
  type TurnServer,
} from './schema.ts';
import { setKeys } from './toml-edit.ts';
import { checkCombination, checkValue } from './values.ts';

// Hides the secrets of a configuration in output, and restores them in input.

/** Keys whose text is or contains a secret. */
const SECRET_TEXTS: ReadonlySet<ConfigKey> = new Set(['proxy', 'proxy_command']);

/** Replaces a secret in output. No token contains these characters. */
const REDACTED = '***';

/** The configuration for display: a secret becomes `***`. */
function redact(config: Config): Config {
  const { api_token, proxy, proxy_command, turn_servers } = config;
  return {
    ...config,
    api_token: redactSecret(api_token),
    // A command may contain a password.
    proxy_command: redactSecret(proxy_command),
    proxy: proxy.replace(/^(.*\/\/)?.*@/s, `$1${REDACTED}@`),
    turn_servers: turn_servers.map(redactServer),
  };
}

/**
 * Restores the hidden secrets of `turn_servers` in a client's input, from the stored entry with the same URL, user and
 * type. So a secret cannot be moved to another server. An entry without a match is unchanged, and is then rejected.
 */
function restoreServers(sent: unknown, present: readonly TurnServer[]): unknown {
  if (!Array.isArray(sent)) return sent;
  return sent.map((entry: unknown) => {
    if (!isObject(entry)) return entry;
    const match = present.find((server) => sameServer(entry, redactServer(server)));
    if (match === undefined) return entry;
    const hidden = redactServer(match);
    const restored: Record<string, unknown> = { ...entry };
    for (const secret of ['credential', 'credential_url'] as const) {
      if (hidden[secret] !== match[secret] && restored[secret] === hidden[secret]) restored[secret] = match[secret];
    }
    return restored;
  });
}

/** True if a client's input still contains a hidden secret. */
function containsRedacted(server: TurnServer): boolean {
  return server.credential === REDACTED || server.credential_url.includes(REDACTED);
}

function redactSecret(secret: string): string {
  return secret === '' ? '' : REDACTED;
}

function redactServer(server: TurnServer): TurnServer {
  return { ...server, credential: redactSecret(server.credential), credential_url: hideInUrl(server.credential_url) };
}

/** User, password and query of a URL may be credentials. */
function hideInUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.username === '' && url.password === '' && url.search === '' && url.hash === '')) return text;
  return `${url.protocol}//${url.host}${url.pathname}?${REDACTED}`;
}

/** Includes `credential_url`: the hidden query must not move to another server. */
function sameServer(sent: Readonly<Record<string, unknown>>, hidden: TurnServer): boolean {
  const { url, username = '', credential_type = 'static', credential_url = '' } = sent;
  return (
    url === hidden.url &&
    username === hidden.username &&
    credential_type === hidden.credential_type &&
    credential_url === hidden.credential_url
  );
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

/**
 * Parses the text of an environment variable, a flag or a command line. Lists are separated by commas, and
 * `turn_servers` is a JSON array. The result still needs validation. Text that cannot be parsed is returned unchanged,
 * so that validation reports the expected type.
 */
export function parseValueText(key: ConfigKey, text: string): unknown {
  const schema = ConfigSchema.properties[key];
  const trimmed = text.trim();
  if (Type.IsBoolean(schema)) return BOOLEANS.get(trimmed.toLowerCase()) ?? text;
  if (Type.IsInteger(schema)) return /^-?\d{1,9}$/.test(trimmed) ? Number(trimmed) : text;
  if (!Type.IsArray(schema)) return text;
  if (key === 'turn_servers') return fromJson(text);
  return trimmed === '' ? [] : trimmed.split(',').map((part) => part.trim());
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface ConfigServiceOptions {
  /** Path of config.toml, which may not exist. */
  readonly file: string;
  /** The environment of the process: `SVCD_<KEY>`. An empty variable counts as not set. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Variables that begin with `SVCD_`, set no key, and have another use. */
  readonly otherVariables?: readonly string[];
  /** Values of flags. Text is parsed as in the environment. */
  readonly flags: { readonly [K in ConfigKey]?: Config[K] | string | undefined };
}

export type Override = 'flag' | 'environment';

interface PatchResult {
  readonly ok: true;
  /** Keys of this patch whose new value is not in effect. */
  readonly restart_required: ConfigKey[];
  /** Keys of this patch that a flag or the environment overrides: restarting alone does not help. */
  readonly overridden: ConfigKey[];
}

type ChangeHandler = (changed: ReadonlySet<ConfigKey>, config: Config) => void;

type Values = Partial<Record<ConfigKey, Config[ConfigKey]>>;

const REQUEST: Origin = { source: 'patch', where: 'request' };
const TOGETHER: Origin = { source: 'combination', where: 'configuration' };

export class ConfigService {
  /** Warnings for the log at the start: misspelled variables, a file that others can read. */
  readonly warnings: readonly string[];
  readonly #file: string;
  readonly #overriding: Values;
  readonly #overrides: Readonly<Partial<Record<ConfigKey, Override>>>;
  readonly #handlers = new Set<ChangeHandler>();
  /** The values in effect. */
  #current: Config;
  /** The values in effect after a restart. */
  #next: Config;

  /**
   * Reads all three sources.
   * @throws SvcError `config_invalid` with the key and its place
   */
  constructor(options: ConfigServiceOptions) {
    const { file, environment, flags } = options;
    const overriding: Values = {};
    const overrides: Partial<Record<ConfigKey, Override>> = {};
    for (const key of CONFIG_KEYS) {
      const name = environmentName(key);
      const flag = flags[key];
      const variable = environment[name];
      if (flag !== undefined) {
        overriding[key] = accept(key, flag, { source: 'flag', where: 'command line' });
        overrides[key] = 'flag';
      } else if (variable !== undefined && variable !== '') {
        overriding[key] = accept(key, variable, { source: 'environment', where: `environment variable ${name}` });
        overrides[key] = 'environment';
      }
    }
    this.#file = file;
    this.#overriding = overriding;
    this.#overrides = overrides;
    this.#next = this.#combine(readConfigFile(file).values);
    this.#current = this.#next;
    const exposed = checkFileMode(file);
    const { api_token: token } = this.#current;
    this.warnings = [
      ...unknownVariables(environment, options.otherVariables ?? []),
      ...(exposed === null ? [] : [exposed]),
      ...(token === '' || isUnguessable(token) ? [] : [SHORT_TOKEN_WARNING]),
    ];
  }

  /** The values in effect: live keys have their latest values, other keys the values of the start. Frozen. */
  get current(): Config {
    return this.#current;
  }

  /** Keys that the file does not decide, and their source. */
  get overrides(): Readonly<Partial<Record<ConfigKey, Override>>> {
    return this.#overrides;
  }

  /** Keys whose configured value needs a restart. */
  get restartRequired(): ConfigKey[] {
    return CONFIG_KEYS.filter((key) => !isDeepStrictEqual(this.#current[key], this.#next[key]));
  }

  /** The configured values without secrets, for display. They may differ from the values in effect. */
  redacted(): Config {
    return redact(this.#next);
  }

  /**
   * Calls `handler` after each commit that changed live keys, with those keys. It must not throw. Returns a function
   * that stops this.
   */
  onChange(handler: ChangeHandler): () => void {
    this.#handlers.add(handler);
    return () => void this.#handlers.delete(handler);
  }

  /**
   * Changes keys in the file: all, or none if one is unknown, not patchable or invalid. It reads the file again, so
   * that manual edits are kept and applied. A value equal to the `redacted` one of a secret or an overridden key is
   * ignored.
   * @throws SvcError `config_invalid`, `not_writable`; nothing has changed then
   */
  patch(partial: Readonly<Record<string, unknown>>): PatchResult {
    return this.#change(partial, PATCHABLE_KEYS);
  }

  /**
   * Changes one key, patchable or not.
   * @throws SvcError as `patch` does
   */
  set(key: ConfigKey, value: unknown): PatchResult {
    return this.#change({ [key]: value }, new Set([key]));
  }

  #change(partial: Readonly<Record<string, unknown>>, allowed: ReadonlySet<ConfigKey>): PatchResult {
    const file = readConfigFile(this.#file);
    const changes = new Map<ConfigKey, Config[ConfigKey]>();
    for (const [key, raw] of Object.entries(partial)) {
      if (!isConfigKey(key)) throw invalidConfig(key, 'is not a configuration key', REQUEST);
      if (!allowed.has(key)) {
        throw invalidConfig(key, 'cannot be changed over the API: edit config.toml and restart the daemon', REQUEST);
      }
      if (this.#isShown(key, raw)) continue;
      const value = this.#acceptSent(key, raw, file.values);
      if (!isDeepStrictEqual(value, file.values[key] ?? DEFAULTS[key])) changes.set(key, value);
    }
    const text = setKeys(file.text, changes);
    const values = parseConfig(text, basename(this.#file));
    const next = this.#combine(values);
    this.#refuseAlone(file.values, values, changes);
    const current = this.#withLive(next);
    if (changes.size > 0) writeConfigFile(this.#file, text);
    this.#commit(current, next);
    return this.#result(Object.keys(partial).filter(isConfigKey), changes);
  }

  /** True if the client sends the displayed value back. */
  #isShown(key: ConfigKey, raw: unknown): boolean {
    const shown = this.redacted()[key];
    if (key === 'api_token' && raw === REDACTED) return true;
    if (SECRET_TEXTS.has(key) && raw === shown && String(raw).includes(REDACTED)) return true;
    return this.#overrides[key] !== undefined && isDeepStrictEqual(raw, shown);
  }

  #acceptSent(key: ConfigKey, raw: unknown, file: Partial<Config>): Config[ConfigKey] {
    if (key !== 'turn_servers') return accept(key, raw, REQUEST, false);
    // Compared with the file, not with the values in effect: a secret of the environment must not get into the file.
    const sent = restoreServers(raw, file.turn_servers ?? []);
    const value = accept(key, sent, REQUEST, false) as Config['turn_servers'];
    const hidden = value.findIndex(containsRedacted);
    if (hidden < 0) return value;
    throw invalidConfig(key, `at ${hidden} contains a redacted secret, but no stored entry matches it`, REQUEST);
  }

  #combine(file: Partial<Config>): Config {
    const config = Object.freeze({ ...DEFAULTS, ...file, ...this.#overriding }) as Config;
    refuseTogether(config);
    return config;
  }

  /**
   * Rejects a change that would prevent a start if the flag or variable that hides it were removed. Errors that the
   * file already had are ignored.
   */
  #refuseAlone(before: Partial<Config>, after: Partial<Config>, changes: ReadonlyMap<ConfigKey, unknown>): void {
    const kept = Object.fromEntries(
      Object.entries(this.#overriding).filter(
        ([key]) => isConfigKey(key) && this.#overrides[key] === 'environment' && !changes.has(key),
      ),
    );
    const alone = (file: Partial<Config>): Config => ({ ...DEFAULTS, ...file, ...kept });
    if (checkCombination(alone(before)) === null) refuseTogether(alone(after));
  }

  /** The values in effect after `next` is committed. They must be valid together, with the current API address. */
  #withLive(next: Config): Config {
    const live = Object.fromEntries([...LIVE_KEYS].map((key) => [key, next[key]]));
    const config: Config = Object.freeze({ ...this.#current, ...live });
    refuseTogether(config);
    return config;
  }

  #commit(current: Config, next: Config): void {
    const changed = new Set(CONFIG_KEYS.filter((key) => !isDeepStrictEqual(this.#current[key], current[key])));
    this.#current = current;
    this.#next = next;
    if (changed.size > 0) for (const handler of this.#handlers) handler(changed, current);
  }

  #result(sent: readonly ConfigKey[], changes: ReadonlyMap<ConfigKey, Config[ConfigKey]>): PatchResult {
    const overridden = sent.filter((key) => changes.has(key) && this.#overrides[key] !== undefined);
    const waiting = new Set([...overridden, ...this.restartRequired]);
    return { ok: true, restart_required: sent.filter((key) => waiting.has(key)), overridden };
  }
}

const DEFAULTS: Config = Object.freeze(Create(ConfigSchema));

function accept(key: ConfigKey, raw: unknown, origin: Origin, text = true): Config[ConfigKey] {
  const checked = checkValue(key, text && typeof raw === 'string' ? parseValueText(key, raw) : raw);
  if ('problem' in checked) throw invalidConfig(key, checked.problem, origin);
  return checked.value;
}

function refuseTogether(config: Config): void {
  const fault = checkCombination(config);
  if (fault !== null) throw invalidConfig(fault.key, fault.problem, TOGETHER);
}

function unknownVariables(environment: ConfigServiceOptions['environment'], others: readonly string[]): string[] {
  const known = new Set([...CONFIG_KEYS.map(environmentName), ...others]);
  return Object.keys(environment)
    .filter((name) => name.startsWith('SVCD_') && !known.has(name))
    .map((name) => `The environment variable ${name} sets no configuration key.`);
}
