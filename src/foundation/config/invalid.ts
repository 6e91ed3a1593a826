import { SvcError } from '../errors.ts';

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
