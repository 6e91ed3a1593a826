/** Writes the tables of docs/configuration.md from the configuration's schema. `--check` compares only. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_KEYS, configSchema } from '../src/foundation/config/schema.ts';

interface Described {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: { readonly type?: string; readonly properties?: Readonly<Record<string, Described>> };
}

function typeOf({ type, enum: words, minimum, maximum, items }: Described): string {
  if (words !== undefined) return words.map((word) => `\`${word}\``).join(', ');
  if (type === 'integer') return `${minimum} to ${maximum}`;
  if (type === 'array') return items?.type === 'object' ? 'list of tables' : 'list';
  return type === 'string' ? 'text' : (type ?? '');
}

function shown(value: unknown): string {
  return value === '' ? 'empty' : `\`${JSON.stringify(value)}\``;
}

function keyTable(): string {
  const { properties } = configSchema();
  const rows = CONFIG_KEYS.map((key) => {
    const schema: Described & (typeof properties)[typeof key] = properties[key];
    const applies = schema['x-restart'] ? 'restart' : 'immediately';
    const api = schema.readOnly ? 'no' : 'yes';
    return `|\`${key}\`|${typeOf(schema)}|${shown(schema.default)}|${applies}|${api}|${schema.description}|`;
  });
  return ['|Key|Type|Default|Applies|API|Meaning|', '|---|---|---|---|---|---|', ...rows].join('\n');
}

function turnTable(): string {
  const servers: Described = configSchema().properties.turn_servers;
  const rows = Object.entries(servers.items?.properties ?? {}).map(
    ([name, schema]) =>
      `| \`${name}\` | ${typeOf(schema)} | ${name === 'url' ? 'required' : shown(schema.default)} | ${schema.description} |`,
  );
  return ['| Member | Type | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n');
}

/** The page with the text between `<!-- name -->` and `<!-- /name -->` replaced. */
function fill(page: string, name: string, table: string): string {
  const start = `<!-- ${name} -->\n`;
  const from = page.indexOf(start);
  const to = page.indexOf(`\n<!-- /${name} -->`);
  if (from < 0 || to < from) throw new Error(`docs/configuration.md lacks the markers for "${name}". Restore them.`);
  return page.slice(0, from + start.length) + table + page.slice(to);
}

const file = join(import.meta.dirname, '..', 'docs', 'configuration.md');
const page = readFileSync(file, 'utf8');
const filled = fill(fill(page, 'keys', keyTable()), 'turn', turnTable());
if (!process.argv.includes('--check')) {
  writeFileSync(file, filled);
} else if (filled !== page) {
  console.error('docs/configuration.md is out of date. Run "npm run docs".');
  process.exitCode = 1;
}
