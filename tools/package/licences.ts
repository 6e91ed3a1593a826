/** The licences of all that the single file holds: Node, the packages in dist/, and the native parts. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { licencesOf } from '../bundle/licences.ts';
import { nativeParts } from '../bundle/single.ts';

/** The licence of the Node that runs this: where releases of Node, its packages for npm, and Debian have it. */
function nodeLicence(): string {
  const folder = join(dirname(process.execPath), '..');
  const places = [
    join(folder, 'LICENSE'),
    join(folder, 'node_modules', `node-${process.platform}-${process.arch}`, 'LICENSE'),
    join(folder, 'share', 'doc', 'nodejs', 'copyright'),
  ];
  const found = places.find((place) => existsSync(place));
  if (found === undefined) throw new Error(`the licence of Node was looked for in vain at ${places.join(', ')}`);
  return readFileSync(found, 'utf8').trim();
}

/** One text of them. Run in the folder of a checkout whose dist/ is built. */
export function allLicences(): string {
  return [
    `This program holds Node.js ${process.versions.node}, svcd and the packages named below.`,
    nodeLicence(),
    readFileSync('dist/licences.txt', 'utf8').trim(),
    licencesOf(Object.values(nativeParts()), 'It holds the native parts of these packages.').trim(),
    '',
  ].join(`\n\n${'='.repeat(80)}\n\n`);
}
