/** Writes the single file: this Node with both programs, their assets and native addons. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { nativeParts, singleProgram } from '../bundle/single.ts';

/** Executable by all users. */
const PROGRAM_MODE = 0o755;
/** Folders of dist/ that the programs read at run time. */
const READ_FOLDERS = ['dist/panel', 'dist/swagger'];

/** Assets, by the path that `readPackageFile` uses. */
function assets(): Record<string, string> {
  const files = READ_FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`));
  const read = ['package.json', 'dist/licenses.txt', ...files].map((path) => [path, resolve(path)]);
  const native = Object.entries(nativeParts()).map(([name, file]) => [`native/${name}.node`, file]);
  return Object.fromEntries([...read, ...native]);
}

/** Writes it for this machine's platform. Run it in a checkout with a built dist/. @param file the output */
export async function writeSingleFile(file: string): Promise<void> {
  const work = mkdtempSync(`${file}.`);
  try {
    const main = join(work, 'main.mjs');
    const { code } = await singleProgram();
    writeFileSync(main, code);
    const config = {
      main,
      mainFormat: 'module',
      executable: process.execPath,
      output: join(work, 'program'),
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
      // `NODE_OPTIONS` of the user must not affect this program.
      execArgvExtension: 'none',
      assets: assets(),
    };
    writeFileSync(join(work, 'config.json'), JSON.stringify(config));
    const made = spawnSync(process.execPath, ['--build-sea', join(work, 'config.json')], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`node --build-sea failed:\n${made.stdout}${made.stderr}`);
    chmodSync(config.output, PROGRAM_MODE);
    renameSync(config.output, file);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
