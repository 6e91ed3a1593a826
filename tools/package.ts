/**
 * `npm run package [-- --out <folder>] [--only single-file]`: packages svcd for machines without Node. Writes one
 * program that is both `svc` and `svcd`, and on Linux a container image with that program, its libraries and their
 * licenses. Both are for this machine's platform. `SOURCE_DATE_EPOCH` (seconds since 1970) sets the image's timestamp.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeImage } from './package/image.ts';
import { allLicenses } from './package/licenses.ts';
import { writeSingleFile } from './package/single-file.ts';

const MIB = 1024 * 1024;

function say(file: string, since: number): void {
  const size = (statSync(file).size / MIB).toFixed(1);
  console.log(`${file}: ${size} MiB, in ${((performance.now() - since) / 1000).toFixed(1)} s`);
}

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'out' },
    only: { type: 'string' },
    compression: { type: 'string', default: '9' },
  },
});
const out = resolve(values.out);
process.chdir(join(import.meta.dirname, '..'));
const { version }: { version: string } = JSON.parse(readFileSync('package.json', 'utf8'));
const { status } = spawnSync(process.execPath, ['tools/build.ts', '--checkout'], { stdio: 'inherit' });
if (status !== 0) process.exit(1);

mkdirSync(out, { recursive: true });
const singleFile = join(out, process.platform === 'win32' ? 'svc.exe' : 'svc');
let since = performance.now();
await writeSingleFile(singleFile);
say(singleFile, since);
const licenses = allLicenses();
writeFileSync(join(out, 'licenses.txt'), licenses);
if (values.only === undefined && process.platform === 'linux') {
  since = performance.now();
  const image = join(out, 'svcd-image.tar');
  const epoch = process.env['SOURCE_DATE_EPOCH'];
  const time = epoch === undefined ? new Date() : new Date(Number(epoch) * 1000);
  writeImage(image, { singleFile, licenses, version, time, compression: Number(values.compression) });
  say(image, since);
}
