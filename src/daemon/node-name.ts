/** The name that this node gives itself. */
import { hostname } from 'node:os';
import { calledName } from '../foundation/called-name.ts';

/** The configured name, or that of the machine. Empty if there is none. */
export function nodeName(configured: string): string {
  return calledName(configured) ?? calledName(hostname().split('.')[0]) ?? '';
}
