/** Daemon processes whose clocks advance together: half an hour passes within a minute. */
import { fileURLToPath } from 'node:url';
import { memberOf } from '../../src/foundation/json.ts';
import { type DaemonOptions, TestDaemon } from './daemon.ts';

const LEAPING = fileURLToPath(new URL('./leaping-process.ts', import.meta.url));
/** Below the stall detection of the process, milliseconds. */
const STEP_MS = 400;
/** Number of steps between two checks that sent data was delivered. */
const STEPS_AT_ONCE = 5;

/** @param leaptMs how far the other clocks have advanced already, milliseconds */
export function startLeaping(options: DaemonOptions, leaptMs = 0): Promise<TestDaemon> {
  const command = [process.execPath, '--import', LEAPING, 'bin/svcd'] as const;
  return TestDaemon.start({ ...options, command, env: { ...options.env, LEAPT_MS: String(leaptMs) } });
}

function leap({ process: child }: TestDaemon, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(new Error('the daemon exited'));
    const heard = (message: unknown): void => {
      if (memberOf(message, 'leapt') === undefined) return;
      child.off('message', heard).off('exit', gone);
      resolve();
    };
    child.on('message', heard).once('exit', gone);
    child.send({ leap: ms });
  });
}

/**
 * Advances the clocks of daemons in small steps.
 * @param between runs after every few steps, so that sent data is delivered before time continues
 */
export async function pass(ms: number, daemons: readonly TestDaemon[], between: () => Promise<void>): Promise<void> {
  const steps = Math.ceil(ms / STEP_MS);
  for (let step = 1; step <= steps; step++) {
    await Promise.all(daemons.map((daemon) => leap(daemon, STEP_MS)));
    if (step % STEPS_AT_ONCE === 0) await between();
  }
}
