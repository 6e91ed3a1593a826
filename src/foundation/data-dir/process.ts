import { codeOf } from '../errors.ts';

/** True if a process with this ID runs on this machine. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user.
    return codeOf(error) === 'EPERM';
  }
}
