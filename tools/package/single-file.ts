/** The single file: this Node with both programs, what they read and their native code in it. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { nativeParts, singleProgram } from '../bundle/single.ts';

/** Anybody may run it. */
const PROGRAM_MODE = 0o755;
/** Folders of dist/ whose files the programs read while they run. */
const READ_FOLDERS = ['dist/panel', 'dist/swagger'];

/** Everything beside the code, by the path that `readPackageFile` asks for. */
function assets(): Record<string, string> {
  const files = READ_FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`));
  const read = ['package.json', 'dist/licences.txt', ...files].map((path) => [path, resolve(path)]);
  const native = Object.entries(nativeParts()).map(([name, file]) => [`native/${name}.node`, file]);
  return Object.fromEntries([...read, ...native]);
}

/** Makes it for this machine's kind. Run in the folder of a checkout whose dist/ is built. @param file to write */
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
      // What somebody set for programs of Node's is not meant for this one.
      execArgvExtension: 'none',
      assets: assets(),
    };
    writeFileSync(join(work, 'config.json'), JSON.stringify(config));
    const made = spawnSync(process.execPath, ['--build-sea', join(work, 'config.json')], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`the single file could not be made:\n${made.stdout}${made.stderr}`);
    chmodSync(config.output, PROGRAM_MODE);
    renameSync(config.output, file);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
