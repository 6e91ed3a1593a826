/** The calls made by hand in this tab. They stay in memory until the tab closes. */

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: string;
  readonly body: string;
}

/** Maximum number of calls per agent. The oldest are removed. */
export const MAX_CALLS = 10;

const calls = new Map<string, readonly Call[]>();

/** The calls of an agent, newest first. */
export function callsOf(aid: string): readonly Call[] {
  return calls.get(aid) ?? [];
}

function isSame(one: Call, other: Call): boolean {
  return (
    one.method === other.method && one.path === other.path && one.headers === other.headers && one.body === other.body
  );
}

/** Adds a call. A repeated call moves to the front. */
export function keepCall(aid: string, call: Call): void {
  const others = callsOf(aid).filter((one) => !isSame(one, call));
  calls.set(aid, [call, ...others].slice(0, MAX_CALLS));
}
