import { Type } from 'typebox';
import { type ConfigKey, ConfigSchema } from './schema.ts';

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
