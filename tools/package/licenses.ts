/** The licenses of the single file's content: Node, the packages in dist/, and the native addons. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { licensesOf } from '../bundle/licenses.ts';
import { nativeParts } from '../bundle/single.ts';

/** The license of the running Node, from the locations that Node releases, npm packages of Node and Debian use. */
function nodeLicense(): string {
  const folder = join(dirname(process.execPath), '..');
  const places = [
    join(folder, 'LICENSE'),
    join(folder, 'node_modules', `node-${process.platform}-${process.arch}`, 'LICENSE'),
    join(folder, 'share', 'doc', 'nodejs', 'copyright'),
  ];
  const found = places.find((place) => existsSync(place));
  if (found === undefined)
    throw new Error(`Node's license was not found at ${places.join(', ')}. Use an official Node.`);
  return readFileSync(found, 'utf8').trim();
}

/** All licenses as one text. Run it in a checkout with a built dist/. */
export function allLicenses(): string {
  return [
    `This program holds Node.js ${process.versions.node}, svcd and the packages named below.`,
    nodeLicense(),
    readFileSync('dist/licenses.txt', 'utf8').trim(),
    licensesOf(Object.values(nativeParts()), 'It holds the native parts of these packages.').trim(),
    '',
  ].join(`\n\n${'='.repeat(80)}\n\n`);
}
