/** The package as npm installs it: its files and its dependencies. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { productionPackages } from '../../test/support/package.ts';

const MIB = 1024 * 1024;

export class InstalledPackage {
  readonly directory = mkdtempSync(join(tmpdir(), 'svcd-installed-'));

  constructor() {
    const { status } = spawnSync(process.execPath, ['tools/build.ts'], { stdio: 'inherit' });
    if (status !== 0) throw new Error('the build failed');
    const { files }: { files: readonly string[] } = JSON.parse(readFileSync('package.json', 'utf8'));
    for (const part of [...files, 'package.json']) cpSync(part, join(this.directory, part), { recursive: true });
    for (const path of productionPackages().keys()) {
      mkdirSync(dirname(join(this.directory, path)), { recursive: true });
      cpSync(path, join(this.directory, path), { recursive: true });
    }
  }

  /** Path of one of its programs. */
  program(name: 'svc' | 'svcd'): string {
    return join(this.directory, 'bin', name);
  }

  /** Size of its files without Node, MiB. */
  sizeMib(): number {
    const files = readdirSync(this.directory, { recursive: true, encoding: 'utf8' });
    return files.reduce((sum, file) => sum + statSync(join(this.directory, file)).size, 0) / MIB;
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
