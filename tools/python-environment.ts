/** Location of the Python packages for tests. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Inside `node_modules`, like all test dependencies. */
export const PYTHON_ENVIRONMENT: string = join('node_modules', '.cache', 'python');
/** Each package with its version. */
export const PYTHON_REQUIREMENTS: string = join('test', 'python', 'requirements.txt');
/** A copy of the requirements, written after a complete installation. */
export const PYTHON_INSTALLED: string = join(PYTHON_ENVIRONMENT, 'installed.txt');
export const PYTHON: string = join(PYTHON_ENVIRONMENT, 'bin', 'python');

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** The Python with the required packages, or null if it is not installed. */
export function pythonTools(): string | null {
  return textOf(PYTHON_INSTALLED) === textOf(PYTHON_REQUIREMENTS) ? PYTHON : null;
}
