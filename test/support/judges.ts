/** Programs of others that judge: they say a verdict a line, as JSON. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { memberOf } from '../../src/foundation/json.ts';
import { eventually } from './eventually.ts';
import { quietPort, run } from './programs.ts';

/** What a judge has said. */
export interface Verdicts {
  /** Check → verdict, in the order in which they were asked. */
  readonly of: ReadonlyMap<string, unknown>;
  /** What was said beside the verdicts: it is not the same on two ways. */
  readonly besides: readonly unknown[];
}

/** Runs a judge to its end; fails where it did not come to it. */
export async function verdictsOf(
  [program, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv = {},
): Promise<Verdicts> {
  const { stdout, stderr } = await run(program, args, { env });
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  const said: unknown[] = lines.map((line) => JSON.parse(line));
  assert.equal(
    memberOf(said.at(-1), 'done'),
    true,
    `${args.join(' ')} did not end:\n${stdout.slice(-2000)}\n${stderr}`,
  );
  const of = new Map<string, unknown>();
  for (const one of said) {
    const check = memberOf(one, 'check');
    if (typeof check !== 'string') continue;
    assert.ok(!of.has(check), `two verdicts of ${check}`);
    of.set(check, memberOf(one, 'verdict'));
  }
  return { of, besides: said.filter((one) => memberOf(one, 'check') === undefined) };
}

/** Two ways show the same: each check has the same verdict on both. */
export function assertSame(through: Verdicts, direct: Verdicts): void {
  assert.deepEqual(Object.fromEntries(through.of), Object.fromEntries(direct.of));
  assert.deepEqual([...through.of.keys()], [...direct.of.keys()]);
}

/** A server that is judged: `<program> … <HTTP port> <gRPC port>`. */
export class JudgedServer {
  readonly http: number;
  readonly grpc: number;
  readonly #child: ChildProcess;
  #output = '';

  private constructor(child: ChildProcess, http: number, grpc: number) {
    this.#child = child;
    this.http = http;
    this.grpc = grpc;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
  }

  /** Starts it and waits until it says that it is there. */
  static async start([program, ...args]: readonly [string, ...string[]]): Promise<JudgedServer> {
    const [http, grpc] = [await quietPort(), await quietPort()];
    const child = spawn(program, [...args, String(http), String(grpc)], { stdio: ['ignore', 'pipe', 'pipe'] });
    const server = new JudgedServer(child, http, grpc);
    await eventually(`${args.join(' ')} is there`, () => {
      assert.equal(child.exitCode, null, server.#output);
      return server.#output.includes('ready');
    });
    return server;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
