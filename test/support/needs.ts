/** Programs of the machine that tests drive, and the Debian packages that bring them. */
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

/** For the option `skip` of a test: false where all the programs are there, else what is missing and what to install. */
export function needs(...programs: (keyof typeof PACKAGES)[]): string | false {
  const missing = programs.filter((program) => !isThere(program));
  if (missing.length === 0) return false;
  const packages = [...new Set(missing.map((program) => PACKAGES[program]))];
  return `needs ${missing.join(', ')}: apt-get install ${packages.join(' ')}`;
}

/** For the option `skip` of a test: false where the Python packages of the tests are there, else how to get them. */
export function needsPython(): string | false {
  return pythonTools() === null
    ? 'needs the packages of test/python/requirements.txt: node tools/python-tools.ts'
    : false;
}
