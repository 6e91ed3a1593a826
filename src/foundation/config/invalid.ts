import { SvcError } from '../errors.ts';

/** Where a value came from, for the error that refuses it. */
export interface Origin {
  readonly source: 'file' | 'environment' | 'flag' | 'patch' | 'combination';
  /** In words: `config.toml line 3`. */
  readonly where: string;
  readonly line?: number;
}

/** Characters of an unknown key that an error shows. */
const MAX_SHOWN_NAME_LENGTH = 64;

/** The error that refuses a key. Its text names the key, never the value. */
export function invalidConfig(key: string, problem: string, origin: Origin): SvcError {
  const shown = key.slice(0, MAX_SHOWN_NAME_LENGTH);
  const name = /^[a-z_]+$/.test(key) ? shown : JSON.stringify(shown);
  const { where, ...details } = origin;
  return new SvcError('config_invalid', {
    message: `${where}: ${name} ${problem}.`,
    details: { key: shown, ...details },
  });
}
