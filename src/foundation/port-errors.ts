/** What is said where a port of this machine cannot be listened on. */
import { codeOf } from './errors.ts';

/** Why: what follows "Port 4000 of 127.0.0.1". */
export function describePortError(error: unknown): string {
  const code = codeOf(error, 'for an unknown reason');
  if (code === 'EADDRINUSE') return 'is in use by another program';
  return code === 'EACCES' ? 'is closed to svcd by the system' : `cannot be used (${code})`;
}
