/** Explains why a local port cannot be listened on. */
import { codeOf } from './errors.ts';

/** The reason, which follows "Port 4000 of 127.0.0.1". */
export function describePortError(error: unknown): string {
  const code = codeOf(error, 'for an unknown reason');
  if (code === 'EADDRINUSE') return 'is in use by another program';
  return code === 'EACCES' ? 'is not allowed for svcd by the system' : `cannot be used (${code})`;
}
