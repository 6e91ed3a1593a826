/**
 * Compiles src/ to dist/ for the npm package: Node strips types in a checkout, but not below
 * node_modules. The lock goes along: npm packs none under its own name, and updates install by it.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
});
if (status === 0) copyFileSync('package-lock.json', 'dist/package-lock.json');
process.exit(status ?? 1);
