/** Signed calls as a service receives them, and the verifiers of docs/evidence.md. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { isObject } from '../../src/foundation/json.ts';

/** A received request and its body. */
export interface ServedCall {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

interface Expectation {
  /** AID of the called agent. */
  readonly me: Aid;
  readonly seen: Set<string>;
  /** Unix seconds. */
  readonly now: number;
}

type Verifier = (
  call: Pick<ServedCall, 'method' | 'url' | 'headers'>,
  body: Uint8Array,
  expected: Expectation,
) => string | null;

/** The source of a verifier in docs/evidence.md. */
function documented(file: string): string {
  return readFileSync(new URL(`../../docs/evidence/${file}`, import.meta.url), 'utf8');
}

/** The verifier for Node. */
export async function documentedVerifier(): Promise<Verifier> {
  const module: unknown = await import(`data:text/javascript;base64,${btoa(documented('verify-call.mjs'))}`);
  const verifier = isObject(module) ? module['provenCaller'] : undefined;
  if (typeof verifier !== 'function') throw new Error('the page shows no verifier');
  return (call, body, expected) => {
    const caller: unknown = verifier(call, body, expected);
    return typeof caller === 'string' ? caller : null;
  };
}

/** False if Python and the required package are installed; otherwise the missing part. */
export function needsPython(): string | false {
  const { status } = spawnSync('python3', ['-c', 'import cryptography']);
  return status === 0 ? false : 'needs python3 and cryptography: apt-get install python3-cryptography';
}

/** The verdicts of the Python verifier on several calls. */
export function documentedPython(calls: readonly ServedCall[], { me, now }: Omit<Expectation, 'seen'>): unknown {
  const harness = [
    'import json, sys',
    'print(json.dumps([proven_caller(c["method"], c["url"], c["headers"], base64.b64decode(c["body"]), c["me"], set(), c["now"])',
    '                  for c in json.load(sys.stdin)]))',
  ];
  const input = calls.map(({ method, url, headers, body }) => ({
    method,
    url,
    headers,
    body: body.toString('base64'),
    me,
    now,
  }));
  const { status, stdout, stderr } = spawnSync(
    'python3',
    ['-c', `${documented('verify_call.py')}\n${harness.join('\n')}`],
    {
      input: JSON.stringify(input),
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}
