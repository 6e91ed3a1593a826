/** What the sources import: the graph that the checks of the architecture walk. */
import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';

/** A module of ours. */
export interface Module {
  readonly text: string;
  /** Where its imports lead, those of types too: a path of ours, `node:…`, or the name of a package. */
  readonly imports: readonly string[];
}

/** Modules by their path from the root of the repository. */
export type ModuleGraph = ReadonlyMap<string, Module>;

// Biome keeps imports in this form; anything else would be seen by the type checker and not here.
const IMPORT = /(?:^|\n)(?:import|export)\s[^;]*?from '([^']+)'|(?:^|\n)import '([^']+)'|\bimport\('([^']+)'\)/g;

function target(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return join(dirname(file), specifier).replaceAll('\\', '/');
  if (specifier.startsWith('node:')) return specifier;
  if (builtinModules.includes(specifier)) return `node:${specifier}`;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The graph of source texts. */
export function moduleGraph(texts: Readonly<Record<string, string>>): ModuleGraph {
  return new Map(
    Object.entries(texts).map(([file, text]) => {
      // A declaration file describes the package it is named after.
      const found = file.endsWith('.d.ts') ? [] : [...text.matchAll(IMPORT)];
      return [file, { text, imports: found.map((match) => target(file, match[1] ?? match[2] ?? match[3] ?? '')) }];
    }),
  );
}

/** The graph of the sources in the working directory, those of the panel too. */
export function readSources(): ModuleGraph {
  const files = globSync(['src/**/*.ts', 'panel/src/**/*.{ts,tsx}']).map((file) => file.replaceAll('\\', '/'));
  return moduleGraph(Object.fromEntries(files.map((file) => [file, readFileSync(file, 'utf8')])));
}
