/** The configuration schema, in the form that the settings page needs. */
import * as format from './format.ts';

export interface Setting {
  readonly key: string;
  readonly description: string;
  /** `json` for lists of objects. */
  readonly kind: 'switch' | 'number' | 'choice' | 'list' | 'json' | 'text';
  readonly choices: readonly string[];
  readonly standard: unknown;
  /** The limits of a number. */
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
  readonly isReadOnly: boolean;
  readonly needsRestart: boolean;
  readonly variable: string;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function kindOf(schema: Readonly<Record<string, unknown>>): Setting['kind'] {
  if (Array.isArray(schema['enum'])) return 'choice';
  switch (schema['type']) {
    case 'boolean':
      return 'switch';
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return isObject(schema['items']) && schema['items']['type'] === 'object' ? 'json' : 'list';
    default:
      return 'text';
  }
}

/** The settings of `GET /config/schema`, in the same order. */
export function settingsOf(schema: unknown): readonly Setting[] {
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {};
  return Object.entries(properties).flatMap(([key, property]) => {
    if (!isObject(property)) return [];
    const choices = Array.isArray(property['enum'])
      ? property['enum'].filter((choice) => typeof choice === 'string')
      : [];
    return [
      {
        key,
        description: text(property['description']),
        kind: kindOf(property),
        choices,
        standard: property['default'],
        minimum: number(property['minimum']),
        maximum: number(property['maximum']),
        isReadOnly: property['readOnly'] === true,
        needsRestart: property['x-restart'] === true,
        variable: text(property['x-environment']),
      },
    ];
  });
}

/** A value as text in a field. Lists have one line per item. */
export function fieldText(value: unknown): string {
  if (Array.isArray(value)) return value.some(isObject) ? JSON.stringify(value, null, 2) : value.map(String).join('\n');
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A value for people, with its unit. Switches have no text here, because it depends on the language. */
export function shownValue({ key }: Pick<Setting, 'key'>, value: unknown, language: string): string {
  if (typeof value !== 'number') return fieldText(value).replaceAll('\n', ', ');
  if (!key.includes('_bytes')) return format.count(value, language);
  return key.endsWith('_per_second') ? format.bytesPerSecond(value, language) : format.bytes(value, language);
}

/** The parts of a description: plain texts at even indices, code at odd indices. */
export function codeParts(description: string): readonly string[] {
  return description.split('`');
}

/** The value of the text in a field. Undefined if it is invalid. */
export function valueOf({ kind }: Setting, typed: string): unknown {
  switch (kind) {
    case 'number': {
      const number = Number(typed);
      return typed.trim() === '' || !Number.isFinite(number) ? undefined : number;
    }
    case 'list':
      return typed
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    case 'json':
      return parsedList(typed);
    case 'switch':
      return typed === 'true';
    case 'choice':
    case 'text':
      return typed;
  }
}

function parsedList(typed: string): unknown {
  if (typed.trim() === '') return [];
  try {
    const value: unknown = JSON.parse(typed);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A line for config.toml. */
export function tomlLine(key: string, value: unknown): string {
  return `${key} = ${JSON.stringify(value)}`;
}

/** The keys that need a restart to apply. */
export function restartKeys(config: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const keys = config?.['restart_required'];
  return Array.isArray(keys) ? keys.map(String) : [];
}

/** The flag or the environment variable that overrides a key. Empty if there is none. */
export function overriddenBy(config: Readonly<Record<string, unknown>>, key: string): string {
  const overridden = config['overridden'];
  return isObject(overridden) ? text(overridden[key]) : '';
}
