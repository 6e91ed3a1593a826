/** The recorded JSON promises of `svc --json`. `node tools/record-json.ts` records them again. */
import { readFileSync, writeFileSync } from 'node:fs';
import { brokenIn, type Shape } from './json-shape.ts';

const FILE = new URL('../vectors/cli-json.json', import.meta.url);
/** Set by the recording tool. */
export const RECORDING = 'SVC_RECORD_JSON';

interface Promised {
  /** Exit codes by error code. */
  readonly exits: Readonly<Record<string, number>>;
  /** Shapes by command. */
  readonly commands: Readonly<Record<string, Shape>>;
}

export function promised(): Promised {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Promised;
}

/** Replaces a part of the record. */
export function record(part: Partial<Promised>): void {
  writeFileSync(FILE, `${JSON.stringify({ ...promised(), ...part }, null, 2)}\n`);
}

/** Promised members that are missing now, each with its command and path. */
export function brokenPromises(shapes: ReadonlyMap<string, Shape>): string[] {
  const before = Object.entries(promised().commands);
  const broken = before.flatMap(([command, shape]) => {
    const now = shapes.get(command);
    if (now === undefined) return [`svc ${command} --json no longer exists`];
    return brokenIn(shape, now).map((what) => `svc ${command} --json: ${what}`);
  });
  const kept = new Set(before.map(([command]) => command));
  const unknown = [...shapes.keys()].filter((command) => !kept.has(command));
  return [...broken, ...unknown.map((command) => `svc ${command} --json is not recorded: node tools/record-json.ts`)];
}
