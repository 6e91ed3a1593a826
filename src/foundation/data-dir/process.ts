import { codeOf } from '../errors.ts';

/** True where a process of this number runs on this machine. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's.
    return codeOf(error) === 'EPERM';
  }
}
