/** The import graph of the sources, for the architecture check. */
import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';

/** A module of this repository. */
export interface Module {
  readonly text: string;
  /** Its imports, type imports included: a path, `node:…`, or a package name. */
  readonly imports: readonly string[];
}

/** Modules by their path from the root of the repository. */
export type ModuleGraph = ReadonlyMap<string, Module>;

// Biome formats all imports like this.
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

/** Builds the graph from source texts. */
export function moduleGraph(texts: Readonly<Record<string, string>>): ModuleGraph {
  return new Map(
    Object.entries(texts).map(([file, text]) => {
      // A declaration file describes the package it is named after.
      const found = file.endsWith('.d.ts') ? [] : [...text.matchAll(IMPORT)];
      return [file, { text, imports: found.map((match) => target(file, match[1] ?? match[2] ?? match[3] ?? '')) }];
    }),
  );
}

/** The graph of src/ and panel/src/ in the working directory. */
export function readSources(): ModuleGraph {
  const files = globSync(['src/**/*.ts', 'panel/src/**/*.{ts,tsx}']).map((file) => file.replaceAll('\\', '/'));
  return moduleGraph(Object.fromEntries(files.map((file) => [file, readFileSync(file, 'utf8')])));
}
