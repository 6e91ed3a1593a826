/** Other things of the machine: its interfaces, name service, child processes, and slow hashes. */
import childProcess from 'node:child_process';
import crypto, { type ScryptOptions } from 'node:crypto';
import dgram from 'node:dgram';
import dns from 'node:dns/promises';
import { EventEmitter } from 'node:events';
import { isIP } from 'node:net';
import os from 'node:os';
import { Process } from './process.ts';
import { systemError } from './system-error.ts';

type Planner = (task: () => void) => unknown;

/** A datagram socket outside the simulated network. It has no route to any host. */
class Unroutable extends EventEmitter {
  readonly #plan: Planner;

  constructor(plan: Planner) {
    super();
    this.#plan = plan;
  }

  #fail(): this {
    this.#plan(() => this.emit('error', systemError('ENETUNREACH')));
    return this;
  }

  connect(): this {
    return this.#fail();
  }

  bind(): this {
    return this.#fail();
  }

  close(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** @param plan runs a task in the next turn */
export function takeMachine(plan: Planner): void {
  const networkInterfaces = (): ReturnType<typeof os.networkInterfaces> => {
    Process.takeDescriptor('uv_interface_addresses');
    return Process.current?.interfaces() ?? {};
  };
  Object.assign(os, { networkInterfaces, availableParallelism: () => 1 });
  Object.assign(dgram, { createSocket: () => new Unroutable(plan) });
  const lookup = async (host: string, options?: { all?: boolean }): Promise<unknown> => {
    const family = isIP(host);
    if (family === 0) throw systemError('ENOTFOUND');
    const found = { address: host, family };
    return options?.all === true ? [found] : found;
  };
  Object.assign(dns, { lookup });
  Object.assign(childProcess, {
    spawn: () => {
      throw systemError('EPERM');
    },
  });
  const { scryptSync, verify } = crypto;
  type Verified = (error: Error | null, isValid: boolean) => void;
  Object.assign(crypto, {
    verify: (...args: [...Parameters<typeof verify>, Verified?]): boolean | undefined => {
      const [algorithm, data, key, signature, done] = args;
      const isValid = verify(algorithm, data, key, signature);
      if (done === undefined) return isValid;
      plan(() => done(null, isValid));
      return undefined;
    },
    scrypt: (
      secret: crypto.BinaryLike,
      salt: crypto.BinaryLike,
      length: number,
      options: ScryptOptions,
      done: (error: Error | null, key: Buffer) => void,
    ): void => {
      const key = scryptSync(secret, salt, length, options);
      plan(() => done(null, key));
    },
  });
}
