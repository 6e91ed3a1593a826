/** Finds code that cannot run in a browser. */
import type { ModuleGraph } from './module-graph.ts';

/** Globals that only Node has. */
const GLOBAL =
  /(?<![\w$.])(?:globalThis\.)?(Buffer|process|global|NodeJS|setImmediate|clearImmediate|require|__dirname|__filename)\b/;
/** Comments and single-line strings, which are not code. */
const NO_CODE = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;

function nodeGlobal(text: string): string | undefined {
  return GLOBAL.exec(text.replaceAll(NO_CODE, "''"))?.[1];
}

/**
 * Node modules, Node globals and packages outside `packages` that the roots import, directly or indirectly, each with
 * its import chain.
 * @param roots module paths. A missing module is reported.
 */
export function browserViolations(
  graph: ModuleGraph,
  roots: readonly string[],
  packages: ReadonlySet<string>,
): readonly string[] {
  const violations: string[] = [];
  const chains = new Map(roots.map((root) => [root, root]));
  // The map grows while it is walked.
  for (const [file, chain] of chains) {
    const module = graph.get(file);
    if (module === undefined) {
      violations.push(`module not found: ${chain}`);
      continue;
    }
    const used = nodeGlobal(module.text);
    if (used !== undefined) violations.push(`not for a browser: ${chain} uses ${used}`);
    for (const to of module.imports) {
      const next = `${chain} → ${to}`;
      if (/^(?:src|panel)\//.test(to)) chains.set(to, chains.get(to) ?? next);
      else if (!packages.has(to)) violations.push(`not for a browser: ${next}`);
    }
  }
  return violations;
}
