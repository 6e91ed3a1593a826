/**
 * Checks the architecture: imports only point downwards, no cycles, capabilities apart from each
 * other, no packages but those that an installation has, and what a browser shares has nothing of Node. Type imports
 * count like any other. See docs/decisions/0001.
 */
import { readFileSync } from 'node:fs';
import { browserViolations } from './browser-closure.ts';
import { BUNDLED } from './bundle/packages.ts';
import { type ModuleGraph, readSources } from './module-graph.ts';

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
    name: 'programs talk REST only',
    from: /^src\/surfaces\/client\//,
    to: '^src/(capabilities|network|daemon|operations/handlers|surfaces/(rest|mcp|cli)|foundation/store)/',
  },
  {
    name: 'the command line talks REST only',
    from: /^src\/surfaces\/cli\//,
    to: '^src/(capabilities|network|daemon|operations/handlers|surfaces/(rest|mcp)|foundation/store)/',
  },
  {
    name: 'what all share stands on nothing',
    from: /^src\/foundation\/domain\//,
    to: '^(?!src/foundation/(domain|records/types))',
  },
  {
    name: 'formats are pure',
    from: /^src\/foundation\/(?:identity|records)\//,
    to: '^src/foundation/(store|config|data-dir|keys)/|^node:(fs|net|dgram|http|https|timers)',
  },
  { name: 'sources do not know tests', from: /^(?:src|panel)\//, to: '^(test|bench|tools)/' },
  { name: 'sources do not know the panel', from: /^src\//, to: '^panel/' },
  {
    name: 'the panel knows declarations and formats',
    from: /^panel\//,
    to: '^src/(?!operations/[^/]+$|foundation/(?:[^/]+$|domain/|identity/))',
  },
];

/** Formats that daemon, command line and browser share. */
const SHARED_FORMATS: readonly string[] = [
  'src/foundation/bytes.ts',
  'src/foundation/cbor.ts',
  'src/foundation/identity/aid.ts',
  'src/foundation/identity/delegation.ts',
  'src/foundation/identity/wallet.ts',
  'src/foundation/identity/wallet-text.ts',
  'src/foundation/records/record.ts',
];
/** What browsers load: the page of the panel, and what other programs import. */
const IN_BROWSERS: readonly string[] = ['panel/src/main.tsx', 'src/surfaces/client/browser.ts'];
/** Packages that run in a browser too. */
const BROWSER_PACKAGES: ReadonlySet<string> = new Set([
  '@noble/curves',
  '@noble/hashes',
  '@scure/base',
  'cborg',
  'eventsource-parser',
  'preact',
  'typebox',
  'uqr',
]);

/** Imports against a rule, or that lead nowhere in production. */
export function layerViolations(graph: ModuleGraph, production: ReadonlySet<string>): readonly string[] {
  const violations: string[] = [];
  for (const [file, { imports }] of graph) {
    for (const to of imports) {
      for (const rule of RULES) {
        const match = rule.from.exec(file);
        if (match !== null && new RegExp(rule.to.replace('$1', match[1] ?? '')).test(to))
          violations.push(`${rule.name}: ${file} → ${to}`);
      }
      if (/^(?:src|panel)\//.test(to) ? !graph.has(to) : !to.startsWith('node:') && !production.has(to))
        violations.push(`does not resolve in production: ${file} → ${to}`);
    }
  }
  return violations;
}

/** The first cycle through each module, found depth first. */
export function cycles(graph: ModuleGraph): readonly string[] {
  const found: string[] = [];
  const state = new Map<string, 'open' | 'done'>();
  function visit(file: string, path: readonly string[]): void {
    if (state.get(file) === 'done') return;
    if (state.get(file) === 'open') {
      found.push(`cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`);
      return;
    }
    state.set(file, 'open');
    for (const to of graph.get(file)?.imports ?? []) if (graph.has(to)) visit(to, [...path, file]);
    state.set(file, 'done');
  }
  for (const file of graph.keys()) visit(file, []);
  return found;
}

/** `void` before what a function gives: nothing but calls that give no promise may stand there. */
const GIVEN_UP = /(?:=>|return) void (?!0\b)([^;,\n]*\S)/g;
const SYNCHRONOUS = /(?:\.(?:destroy|end|write|delete|push|add|send\?\.)\(|\+\+|--|\(\w+ = )/;

/** Promises that are left alone without `detach`; those that stand by themselves the linter finds. */
export function unowned(graph: ModuleGraph): readonly string[] {
  return [...graph].flatMap(([file, { text }]) =>
    [...text.matchAll(GIVEN_UP)]
      .filter(([, given = '']) => !/^[)|=}{[]/.test(given) && !SYNCHRONOUS.test(given))
      .map(([all]) => `nobody owns its failure: ${file}: ${all}: use detach()`),
  );
}

/** The only module that may remove a listener of `error`: whatever it listens to keeps another one. */
const LISTENERS = 'src/foundation/stream-listeners.ts';
const LOST_LISTENER = /\.(?:off|removeListener|once)\(\s*'error'|\.removeAllListeners\(|\bonce\([^()]*,\s*'listening'/g;

/** Code that may leave a stream, socket or server without a listener for `error`: an error that comes later would end the process. */
export function lostErrorListeners(graph: ModuleGraph): readonly string[] {
  return [...graph].flatMap(([file, { text }]) =>
    file === LISTENERS
      ? []
      : [...text.matchAll(LOST_LISTENER)].map(
          ([found]) =>
            `may lose its last error listener: ${file}: ${found}: use listen() or listening() of ${LISTENERS}`,
        ),
  );
}

if (import.meta.main) {
  const manifest: { dependencies: Record<string, string>; optionalDependencies: Record<string, string> } = JSON.parse(
    readFileSync('package.json', 'utf8'),
  );
  const { dependencies, optionalDependencies } = manifest;
  const production = new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...BUNDLED]);
  const graph = readSources();
  const declarations = [...graph.keys()].filter((file) => /^src\/operations\/[^/]+\.ts$/.test(file));
  const violations = [
    ...layerViolations(graph, production),
    ...cycles(graph),
    ...unowned(graph),
    ...lostErrorListeners(graph),
    ...browserViolations(graph, [...declarations, ...SHARED_FORMATS, ...IN_BROWSERS], BROWSER_PACKAGES),
  ];
  for (const violation of violations) console.error(violation);
  if (graph.size < MIN_MODULES) throw new Error(`only ${graph.size} modules were read`);
  if (violations.length > 0) process.exit(1);
  console.log(`architecture: ${graph.size} modules, no violation`);
}
