/**
 * `node tools/python-tools.ts`: installs the packages of `test/python/requirements.txt` into a virtual environment for
 * the tests. If Python or a package is not available, it prints that, and the tests that need them are skipped. The
 * exit code is always 0.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import {
  PYTHON,
  PYTHON_ENVIRONMENT,
  PYTHON_INSTALLED,
  PYTHON_REQUIREMENTS,
  pythonTools,
} from './python-environment.ts';

/** Timeout of the installation, milliseconds. */
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
    console.error(
      `The Python packages of ${PYTHON_REQUIREMENTS} could not be installed. Tests that need them are skipped.`,
    );
  }
}
