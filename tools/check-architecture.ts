/**
 * Checks the architecture: imports point downwards only, there are no cycles, capabilities do not import each other,
 * all packages are installed in production, and code shared with browsers does not use Node. Type imports count too.
 * See docs/decisions/0001.
 */
import { readFileSync } from 'node:fs';
import { browserViolations } from './browser-closure.ts';
import { BUNDLED } from './bundle/packages.ts';
import { type ModuleGraph, readSources } from './module-graph.ts';

interface Rule {
  readonly name: string;
  readonly from: RegExp;
  /** Forbidden imports. `$1` is the first group of `from`. */
  readonly to: string;
}

/** Fewer modules than this mean that the check did not find the sources. */
const MIN_MODULES = 100;

const RULES: readonly Rule[] = [
  {
    name: 'foundation imports no layer above it',
    from: /^src\/foundation\//,
    to: '^src/(network|capabilities|operations|surfaces|daemon)/',
  },
  {
    name: 'network imports only foundation',
    from: /^src\/network\//,
    to: '^src/(capabilities|operations|surfaces|daemon)/',
  },
  {
    name: 'the transport imports no other part of the network',
    from: /^src\/network\/transport\//,
    to: '^src/network/(?!transport/)',
  },
  {
    name: 'an adapter of the transport imports no other one',
    from: /^src\/network\/transport\/([^/]+)\//,
    to: '^src/network/transport/(?!$1/)[^/]+/',
  },
  {
    name: 'contracts of the transport import no adapter',
    from: /^src\/network\/transport\/[^/]+$/,
    to: '^src/network/transport/[^/]+/',
  },
  {
    name: 'TURN and port mapping import no other part of reachability',
    from: /^src\/network\/reachability\/(turn|port-mapping)\//,
    to: '^src/network/(?!reachability/$1/|transport/)',
  },
  {
    name: 'the contracts between the parts of the network import only the transport',
    from: /^src\/network\/(known-nodes|node-requests)\.ts$/,
    to: '^src/network/(?!transport/[^/]+$)',
  },
  {
    name: 'only the composition root imports an adapter of the transport',
    from: /^src\/(?!network\/transport\/|daemon\/)/,
    to: '^src/network/transport/[^/]+/',
  },
  {
    name: 'records import neither peers nor links',
    from: /^src\/network\/records\//,
    to: '^src/network/(peers|links|reachability)/',
  },
  {
    name: 'peers import no part of the network except the transport',
    from: /^src\/network\/peers\//,
    to: '^src/network/(?!peers/|transport/)[^/]+/',
  },
  {
    name: 'links import no part of the network except peers and the transport',
    from: /^src\/network\/links\//,
    to: '^src/network/(?!links/|peers/|transport/)[^/]+/',
  },
  {
    name: 'the network of the daemon imports no capability',
    from: /^src\/daemon\/network\.ts$/,
    to: '^src/capabilities/',
  },
  { name: 'capabilities import no surface', from: /^src\/capabilities\//, to: '^src/(operations|surfaces|daemon)/' },
  {
    name: 'capabilities do not import each other',
    from: /^src\/capabilities\/([^/]+)\//,
    to: '^src/capabilities/(?!$1/)',
  },
  {
    name: 'declarations are data',
    from: /^src\/operations\/[^/]+\.ts$/,
    to: '^src/(network|capabilities|surfaces|daemon)/|^src/operations/handlers/',
  },
  { name: 'operations import no surface', from: /^src\/operations\//, to: '^src/(network|surfaces|daemon)/' },
  { name: 'surfaces do not import the daemon', from: /^src\/surfaces\//, to: '^src/(network|daemon)/' },
  {
    name: 'the client uses REST only',
    from: /^src\/surfaces\/client\//,
    to: '^src/(capabilities|network|daemon|operations/handlers|surfaces/(rest|mcp|cli)|foundation/store)/',
  },
  {
    name: 'the command line uses REST only',
    from: /^src\/surfaces\/cli\//,
    to: '^src/(capabilities|network|daemon|operations/handlers|surfaces/(rest|mcp)|foundation/store)/',
  },
  {
    name: 'the shared domain imports nothing else',
    from: /^src\/foundation\/domain\//,
    to: '^(?!src/foundation/(domain|records/types))',
  },
  {
    name: 'formats are pure',
    from: /^src\/foundation\/(?:identity|records)\//,
    to: '^src/foundation/(store|config|data-dir|keys)/|^node:(fs|net|dgram|http|https|timers)',
  },
  { name: 'sources do not import tests', from: /^(?:src|panel)\//, to: '^(test|bench|tools)/' },
  { name: 'sources do not import the panel', from: /^src\//, to: '^panel/' },
  {
    name: 'the panel imports only declarations and formats',
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
  'src/foundation/records/record.ts',
];
/** Entry points that browsers load: the panel, and the client for browsers. */
const IN_BROWSERS: readonly string[] = ['panel/src/main.tsx', 'src/surfaces/client/browser.ts'];
/** Packages that run in browsers. */
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

/** Imports that break a rule or do not resolve in production. */
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

/** `void` before a returned expression. Only calls that return no promise are allowed there. */
const VOID_RETURN = /(?:=>|return) void (?!0\b)([^;,\n]*\S)/g;
const SYNCHRONOUS = /(?:\.(?:destroy|end|write|delete|push|add|send\?\.)\(|\+\+|--|\(\w+ = )/;

/** Discarded promises that do not use `detach`. The linter finds promises that are separate statements. */
export function discardedPromises(graph: ModuleGraph): readonly string[] {
  return [...graph].flatMap(([file, { text }]) =>
    [...text.matchAll(VOID_RETURN)]
      .filter(([, given = '']) => !/^[)|=}{[]/.test(given) && !SYNCHRONOUS.test(given))
      .map(([all]) => `unhandled rejection: ${file}: ${all}: use detach()`),
  );
}

/** The only module that may remove a listener of `error`. It keeps another one attached. */
const LISTENERS = 'src/foundation/stream-listeners.ts';
const LOST_LISTENER = /\.(?:off|removeListener|once)\(\s*'error'|\.removeAllListeners\(|\bonce\([^()]*,\s*'listening'/g;

/**
 * Code that may leave a stream, socket or server without an `error` listener. A later error would then crash the
 * process.
 */
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
    ...discardedPromises(graph),
    ...lostErrorListeners(graph),
    ...browserViolations(graph, [...declarations, ...SHARED_FORMATS, ...IN_BROWSERS], BROWSER_PACKAGES),
  ];
  for (const violation of violations) console.error(violation);
  if (graph.size < MIN_MODULES) throw new Error(`only ${graph.size} modules were read`);
  if (violations.length > 0) process.exit(1);
  console.log(`architecture: ${graph.size} modules, no violation`);
}
