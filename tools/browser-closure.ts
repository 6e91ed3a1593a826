/** Finds what keeps modules from running where there is no Node: in a browser. */
import type { ModuleGraph } from './module-graph.ts';

/** Names that only Node has. */
const GLOBAL =
  /(?<![\w$.])(?:globalThis\.)?(Buffer|process|global|NodeJS|setImmediate|clearImmediate|require|__dirname|__filename)\b/;
/** Comments, and strings on one line: a word in them is no use of a global. */
const NO_CODE = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;

function nodeGlobal(text: string): string | undefined {
  return GLOBAL.exec(text.replaceAll(NO_CODE, "''"))?.[1];
}

/**
 * Each module of Node, global of Node and package beyond `packages` in what the roots import, directly
 * or through others, with the way that leads there.
 * @param roots paths of modules; one that is not there is reported
 */
export function browserViolations(
  graph: ModuleGraph,
  roots: readonly string[],
  packages: ReadonlySet<string>,
): readonly string[] {
  const violations: string[] = [];
  const ways = new Map(roots.map((root) => [root, root]));
  // The map grows while it is walked.
  for (const [file, way] of ways) {
    const module = graph.get(file);
    if (module === undefined) {
      violations.push(`not there, and so not in a browser: ${way}`);
      continue;
    }
    const used = nodeGlobal(module.text);
    if (used !== undefined) violations.push(`not for a browser: ${way} uses ${used}`);
    for (const to of module.imports) {
      const further = `${way} → ${to}`;
      if (/^(?:src|panel)\//.test(to)) ways.set(to, ways.get(to) ?? further);
      else if (!packages.has(to)) violations.push(`not for a browser: ${further}`);
    }
  }
  return violations;
}
