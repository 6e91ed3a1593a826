/** What `svc --json` promises to programs, as it was recorded: `node tools/record-json.ts` records it anew. */
import { readFileSync, writeFileSync } from 'node:fs';
import { brokenIn, type Shape } from './json-shape.ts';

const FILE = new URL('../vectors/cli-json.json', import.meta.url);
/** Set by the tool that records. */
export const RECORDING = 'SVC_RECORD_JSON';

interface Promised {
  /** Exit codes by the codes of errors. */
  readonly exits: Readonly<Record<string, number>>;
  /** Shapes by the names of commands. */
  readonly commands: Readonly<Record<string, Shape>>;
}

export function promised(): Promised {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Promised;
}

/** Writes a part of the record anew. */
export function record(part: Partial<Promised>): void {
  writeFileSync(FILE, `${JSON.stringify({ ...promised(), ...part }, null, 2)}\n`);
}

/** What programs read of commands, and would miss now: each with the command and the place. */
export function brokenPromises(shapes: ReadonlyMap<string, Shape>): string[] {
  const before = Object.entries(promised().commands);
  const broken = before.flatMap(([command, shape]) => {
    const now = shapes.get(command);
    if (now === undefined) return [`svc ${command} --json is gone`];
    return brokenIn(shape, now).map((what) => `svc ${command} --json: ${what}`);
  });
  const kept = new Set(before.map(([command]) => command));
  const unknown = [...shapes.keys()].filter((command) => !kept.has(command));
  return [...broken, ...unknown.map((command) => `svc ${command} --json is not recorded: node tools/record-json.ts`)];
}
