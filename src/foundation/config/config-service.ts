/** The configuration of a running daemon: file < environment < flags. Changes are validated, then committed. */
import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Create } from 'typebox/value';
import { checkFileMode, parseConfig, readConfigFile, writeConfigFile } from './file.ts';
import { invalidConfig, type Origin } from './invalid.ts';
import { containsRedacted, REDACTED, redact, restoreServers } from './redact.ts';
import {
  CONFIG_KEYS,
  type Config,
  type ConfigKey,
  ConfigSchema,
  environmentName,
  isConfigKey,
  LIVE_KEYS,
  PATCHABLE_KEYS,
} from './schema.ts';
import { parseValueText } from './text.ts';
import { setKeys } from './toml-edit.ts';
import { checkCombination, checkValue } from './values.ts';

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
    this.warnings = [
      ...unknownVariables(environment, options.otherVariables ?? []),
      ...(exposed === null ? [] : [exposed]),
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
    if (key === 'api_token' && raw === REDACTED) return true;
    return this.#overrides[key] !== undefined && isDeepStrictEqual(raw, this.redacted()[key]);
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
