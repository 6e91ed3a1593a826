/** External programs that print one JSON verdict per line. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { memberOf } from '../../src/foundation/json.ts';
import { eventually } from './eventually.ts';
import { quietPort, run } from './programs.ts';

/** The output of a judge. */
export interface Verdicts {
  /** Check → verdict, in order. */
  readonly of: ReadonlyMap<string, unknown>;
  /** Other output, which may differ between runs. */
  readonly others: readonly unknown[];
}

/** Runs a judge to its end. Fails if it does not finish. */
export async function verdictsOf(
  [program, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv = {},
): Promise<Verdicts> {
  const { stdout, stderr } = await run(program, args, { env });
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  const answer: unknown[] = lines.map((line) => JSON.parse(line));
  assert.equal(
    memberOf(answer.at(-1), 'done'),
    true,
    `${args.join(' ')} did not end:\n${stdout.slice(-2000)}\n${stderr}`,
  );
  const of = new Map<string, unknown>();
  for (const one of answer) {
    const check = memberOf(one, 'check');
    if (typeof check !== 'string') continue;
    assert.ok(!of.has(check), `two verdicts of ${check}`);
    of.set(check, memberOf(one, 'verdict'));
  }
  return { of, others: answer.filter((one) => memberOf(one, 'check') === undefined) };
}

/** Asserts that two runs have the same verdict for each check. */
export function assertSame(through: Verdicts, direct: Verdicts): void {
  assert.deepEqual(Object.fromEntries(through.of), Object.fromEntries(direct.of));
  assert.deepEqual([...through.of.keys()], [...direct.of.keys()]);
}

/** A server under test: `<program> … <HTTP port> <gRPC port>`. */
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

  /** Starts it and waits until it is ready. */
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
