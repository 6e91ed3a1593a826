/**
 * `node tools/python-tools.ts`: an environment of its own for the Python programs that tests drive, with the packages of
 * `test/python/requirements.txt`. Where Python or the packages are not to be had it says so and changes nothing: the
 * tests that need them are skipped, by name. The exit code is 0 in either case.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { PYTHON, PYTHON_ENVIRONMENT, PYTHON_INSTALLED, PYTHON_REQUIREMENTS, pythonTools } from './python-place.ts';

/** How long the packages may take to come, milliseconds. */
const LIMIT_MS = 300_000;

function run(program: string, ...args: readonly string[]): boolean {
  const { status } = spawnSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'], timeout: LIMIT_MS });
  return status === 0;
}

function make(): boolean {
  rmSync(PYTHON_ENVIRONMENT, { recursive: true, force: true });
  if (!run('python3', '-m', 'venv', PYTHON_ENVIRONMENT)) return false;
  const quiet = ['--quiet', '--disable-pip-version-check', '--only-binary', ':all:'];
  if (!run(PYTHON, '-m', 'pip', 'install', ...quiet, '--requirement', PYTHON_REQUIREMENTS)) return false;
  copyFileSync(PYTHON_REQUIREMENTS, PYTHON_INSTALLED);
  return true;
}

if (pythonTools() === null) {
  const count = readFileSync(PYTHON_REQUIREMENTS, 'utf8').match(/^[^#\s].*==/gm)?.length ?? 0;
  if (make()) console.log(`${count} Python packages for tests are in ${PYTHON_ENVIRONMENT}`);
  else {
    rmSync(PYTHON_ENVIRONMENT, { recursive: true, force: true });
    console.error(`The Python packages of ${PYTHON_REQUIREMENTS} are not to be had: tests that need them are skipped.`);
  }
}
