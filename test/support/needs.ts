/** External programs of tests, and the Debian packages that contain them. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { pythonTools } from '../../tools/python-environment.ts';

const PACKAGES = {
  ssh: 'openssh-client',
  scp: 'openssh-client',
  'ssh-keygen': 'openssh-client',
  sshd: 'openssh-server',
  psql: 'postgresql',
  curl: 'curl',
  wrk: 'wrk',
  turnserver: 'coturn',
  script: 'bsdutils',
} as const;

function isThere(program: string): boolean {
  const directories = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'];
  return directories.some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** For the `skip` option of a test: false if all programs are installed, otherwise what to install. */
export function needs(...programs: (keyof typeof PACKAGES)[]): string | false {
  const missing = programs.filter((program) => !isThere(program));
  if (missing.length === 0) return false;
  const packages = [...new Set(missing.map((program) => PACKAGES[program]))];
  return `needs ${missing.join(', ')}: apt-get install ${packages.join(' ')}`;
}

/**
 * For the `skip` option of a test: false if the Python packages of the tests are installed, otherwise how to install
 * them.
 */
export function needsPython(): string | false {
  return pythonTools() === null
    ? 'needs the packages of test/python/requirements.txt: node tools/python-tools.ts'
    : false;
}
