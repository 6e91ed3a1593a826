import { Type } from 'typebox';
import { type ConfigKey, ConfigSchema } from './schema.ts';

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

/**
 * A value from the text of an environment variable, a flag or a command line: lists of texts are
 * separated by commas, `turn_servers` is a JSON array. The result still has to be checked; text
 * that cannot be read is returned as it is, so that the check names the type that it should have.
 */
export function fromText(key: ConfigKey, text: string): unknown {
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
