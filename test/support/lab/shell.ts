/** A shell on a lab machine, as its user has it. `svc` and `svcd` come from this checkout. */
import type { ChildProcessByStdio } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Machine } from './namespaces.ts';

const BIN = fileURLToPath(new URL('../../../bin/', import.meta.url));

/** Keeps the settings of the user who runs the tests out. */
function cleanEnvironment(home: string, programs: readonly string[]): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(SVCD?_|XDG_|NODE_)/.test(name));
  return {
    ...Object.fromEntries(kept),
    PATH: [join(home, 'bin'), ...programs, process.env['PATH'], '/usr/sbin', '/sbin'].join(':'),
    HOME: home,
  };
}

export class MachineShell implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly home: string;
  /** All output so far. */
  output = '';

  /**
   * @param home an empty directory, used as the home directory
   * @param programs further folders with programs
   */
  constructor(machine: Machine, home: string, programs: readonly string[] = []) {
    this.home = home;
    mkdirSync(join(home, 'bin'), { recursive: true });
    for (const name of ['svc', 'svcd'])
      writeFileSync(join(home, 'bin', name), `#!/bin/sh\nexec '${process.execPath}' '${join(BIN, name)}' "$@"\n`, {
        mode: 0o755,
      });
    this.#child = machine.shell(home, cleanEnvironment(home, programs));
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.output += text;
    });
    // Background jobs stop with the shell.
    this.#child.stdin.write("trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n");
  }

  /**
   * Runs commands that must all succeed, and waits for them. Background jobs continue.
   * @returns their output, including errors
   */
  async type(commands: string): Promise<string> {
    const before = this.output.length;
    const mark = randomUUID();
    // The commands must not read the following input.
    this.#child.stdin.write(`{\n${commands}\n} </dev/null; echo "${mark}"\n`);
    // Including its line end, which may arrive later.
    while (!this.output.includes(`${mark}\n`)) {
      const ended = this.#child.exitCode !== null || this.#child.signalCode !== null;
      if (ended) throw new Error(`a command failed:\n${commands}\n${this.output.slice(before)}`);
      await this.#shown();
    }
    const end = this.output.indexOf(mark);
    const text = this.output.slice(before, end);
    // Background jobs may have printed something after the mark.
    this.output = this.output.slice(0, end) + this.output.slice(end + mark.length).replace(/^\n/, '');
    return text;
  }

  /** Waits for more output, or for the end. */
  async #shown(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = (): void => resolve();
    this.#child.stdout.once('data', done);
    // Background jobs may keep its output open.
    this.#child.once('exit', done);
    await promise;
    this.#child.stdout.off('data', done);
    this.#child.off('exit', done);
  }

  /** Stops the shell and its jobs. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    await exited;
  }
}
