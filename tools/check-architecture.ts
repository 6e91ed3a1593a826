/**
 * Checks the architecture: imports only point downwards, no cycles, capabilities apart from each
 * other, production dependencies only. Type imports count like any other. See docs/decisions/0001.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';

interface Rule {
  readonly name: string;
  readonly from: RegExp;
  /** What it must not import; `$1` is the first group of `from`. */
  readonly to: string;
}

/** A run that reads fewer modules than this has not looked. */
const MIN_MODULES = 100;

const RULES: readonly Rule[] = [
  {
    name: 'foundation knows nothing above it',
    from: /^src\/foundation\//,
    to: '^src/(network|capabilities|operations|surfaces|daemon)/',
  },
  {
    name: 'network knows foundation only',
    from: /^src\/network\//,
    to: '^src/(capabilities|operations|surfaces|daemon)/',
  },
  {
    name: 'the transport knows neither records nor links',
    from: /^src\/network\/quic\//,
    to: '^src/network/(dht|links|reach)/',
  },
  {
    name: 'records and links do not know each other',
    from: /^src\/network\/(dht|links)\//,
    to: '^src/network/(?!$1/)(dht|links|reach)/',
  },
  { name: 'capabilities know no surface', from: /^src\/capabilities\//, to: '^src/(operations|surfaces|daemon)/' },
  {
    name: 'capabilities do not know each other',
    from: /^src\/capabilities\/([^/]+)\//,
    to: '^src/capabilities/(?!$1/)',
  },
  {
    name: 'declarations are data',
    from: /^src\/operations\/[^/]+\.ts$/,
    to: '^src/(network|capabilities|surfaces|daemon)/|^src/operations/handlers/',
  },
  { name: 'operations know no surface', from: /^src\/operations\//, to: '^src/(network|surfaces|daemon)/' },
  { name: 'surfaces know no daemon', from: /^src\/surfaces\//, to: '^src/(network|daemon)/' },
  {
    name: 'the command line talks REST only',
    from: /^src\/surfaces\/cli\//,
    to: '^src/(capabilities|network|daemon|operations/handlers|surfaces/(rest|mcp)|foundation/store)/',
  },
  {
    name: 'formats are pure',
    from: /^src\/foundation\/(?:identity|records)\//,
    to: '^src/foundation/(store|config|data-dir|keys)/|^node:(fs|net|dgram|http|https|timers)',
  },
  { name: 'sources do not know tests', from: /^src\//, to: '^(test|bench|tools)/' },
];

// Biome keeps imports in this form; anything else would be seen by the type checker and not here.
const IMPORT = /(?:^|\n)(?:import|export)\s[^;]*?from '([^']+)'|(?:^|\n)import '([^']+)'|\bimport\('([^']+)'\)/g;

const manifest: { dependencies: Record<string, string>; optionalDependencies: Record<string, string> } = JSON.parse(
  readFileSync('package.json', 'utf8'),
);
const production = new Set([...Object.keys(manifest.dependencies), ...Object.keys(manifest.optionalDependencies)]);
const files = globSync('src/**/*.ts').map((file) => file.replaceAll('\\', '/'));
const violations: string[] = [];

/** Where an import leads: a file of ours, `node:…`, or the name of a package. */
function target(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return join(dirname(file), specifier).replaceAll('\\', '/');
  if (specifier.startsWith('node:') || builtinModules.includes(specifier)) return specifier;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function importsOf(file: string): string[] {
  // A declaration file describes the package it is named after.
  if (file.endsWith('.d.ts')) return [];
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(IMPORT)].map((match) => target(file, match[1] ?? match[2] ?? match[3] ?? ''));
}

const graph = new Map(files.map((file) => [file, importsOf(file)]));
for (const [file, imports] of graph) {
  for (const to of imports) {
    for (const rule of RULES) {
      const match = rule.from.exec(file);
      if (match !== null && new RegExp(rule.to.replace('$1', match[1] ?? '')).test(to))
        violations.push(`${rule.name}: ${file} → ${to}`);
    }
    if (to.startsWith('src/') ? !existsSync(to) : !to.startsWith('node:') && !production.has(to))
      violations.push(`does not resolve in production: ${file} → ${to}`);
  }
}

/** Depth-first search for the first cycle through each module. */
const state = new Map<string, 'open' | 'done'>();
function visit(file: string, path: readonly string[]): void {
  if (state.get(file) === 'done') return;
  if (state.get(file) === 'open') {
    violations.push(`cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`);
    return;
  }
  state.set(file, 'open');
  for (const to of graph.get(file) ?? []) if (graph.has(to)) visit(to, [...path, file]);
  state.set(file, 'done');
}
for (const file of files) visit(file, []);

for (const violation of violations) console.error(violation);
if (files.length < MIN_MODULES) throw new Error(`only ${files.length} modules were read`);
if (violations.length > 0) process.exit(1);
console.log(`architecture: ${files.length} modules, no violation`);
