/** Where the Python programs that tests drive find their packages. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Goes with `node_modules`, as everything that is installed for tests. */
export const PYTHON_ENVIRONMENT: string = join('node_modules', '.cache', 'python');
/** Each package with its version. */
export const PYTHON_REQUIREMENTS: string = join('test', 'python', 'requirements.txt');
/** What was installed, once all of it was. */
export const PYTHON_INSTALLED: string = join(PYTHON_ENVIRONMENT, 'installed.txt');
export const PYTHON: string = join(PYTHON_ENVIRONMENT, 'bin', 'python');

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** The Python that has the packages of the tests, all of them in their versions; null where there is none. */
export function pythonTools(): string | null {
  return textOf(PYTHON_INSTALLED) === textOf(PYTHON_REQUIREMENTS) ? PYTHON : null;
}
