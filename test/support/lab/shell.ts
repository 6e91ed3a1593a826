/** A shell on a machine of a lab, as somebody who sits there uses it: `svc` and `svcd` are those of this checkout. */
import type { ChildProcessByStdio } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Machine } from './namespaces.ts';

const BIN = fileURLToPath(new URL('../../../bin/', import.meta.url));

/** The settings of whoever runs the tests stay out: the machine has been bought today. */
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
  /** All that was shown so far. */
  output = '';

  /**
   * @param home an empty directory, which becomes the home of the user
   * @param programs folders of programs beside those that every machine has
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
    // However it ends: what it started in the background ends before it.
    this.#child.stdin.write("trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n");
  }

  /**
   * Types commands and waits until they have ended; all must succeed. What runs in the background goes on.
   * @returns what they showed, errors too
   */
  async type(commands: string): Promise<string> {
    const before = this.output.length;
    const mark = randomUUID();
    // The commands themselves are not to read what is typed behind them.
    this.#child.stdin.write(`{\n${commands}\n} </dev/null; echo "${mark}"\n`);
    // With the end of its line, which may come later.
    while (!this.output.includes(`${mark}\n`)) {
      const ended = this.#child.exitCode !== null || this.#child.signalCode !== null;
      if (ended) throw new Error(`a command failed:\n${commands}\n${this.output.slice(before)}`);
      await this.#shown();
    }
    const end = this.output.indexOf(mark);
    const text = this.output.slice(before, end);
    // What runs in the background may have shown something behind the mark already.
    this.output = this.output.slice(0, end) + this.output.slice(end + mark.length).replace(/^\n/, '');
    return text;
  }

  /** Waits until something more is shown, or nothing more will be. */
  async #shown(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = (): void => resolve();
    this.#child.stdout.once('data', done);
    // Its output may stay open behind it, with what runs in the background.
    this.#child.once('exit', done);
    await promise;
    this.#child.stdout.off('data', done);
    this.#child.off('exit', done);
  }

  /** Ends it with all that it started. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    await exited;
  }
}
