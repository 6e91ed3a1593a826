/** The configuration schema, in the form that the settings page needs. */

export interface Setting {
  readonly key: string;
  readonly description: string;
  readonly kind: 'switch' | 'number' | 'choice' | 'list' | 'text';
  readonly choices: readonly string[];
  readonly standard: unknown;
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

function kindOf(schema: Readonly<Record<string, unknown>>): Setting['kind'] {
  if (Array.isArray(schema['enum'])) return 'choice';
  switch (schema['type']) {
    case 'boolean':
      return 'switch';
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return 'list';
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
        isReadOnly: property['readOnly'] === true,
        needsRestart: property['x-restart'] === true,
        variable: text(property['x-environment']),
      },
    ];
  });
}

/** A value as text in a field. Lists have one line per item. */
export function fieldText(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join('\n');
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
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
    case 'switch':
      return typed === 'true';
    case 'choice':
    case 'text':
      return typed;
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
