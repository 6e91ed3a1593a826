/** The licenses of the bundled packages. Most licenses require that their text is distributed with the code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';

const FOLDER = `node_modules${sep}`;
const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i;
/** Packages that include another package's files without its license. */
const PACKED_BY: Readonly<Record<string, string>> = {
  '@fastify/swagger-ui':
    'Its folder static/ holds Swagger UI, Copyright 2020-2021 SmartBear Software Inc., under the Apache License 2.0:\nits text is in the LICENSE of svcd.',
};

/** The folder of the package that a module belongs to; null for our own. */
function packageOf(module: string): string | null {
  const at = module.lastIndexOf(FOLDER);
  if (at === -1) return null;
  const parts = module.slice(at + FOLDER.length).split(sep);
  const name = parts.slice(0, parts[0]?.startsWith('@') === true ? 2 : 1);
  return module.slice(0, at + FOLDER.length) + name.join(sep);
}

function textOf(folder: string): string {
  const manifest: { name: string; version: string; license?: string; author?: string | { name?: string } } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  const { name, version, license, author } = manifest;
  if (license === undefined) throw new Error(`${name} names no license, so it cannot be bundled`);
  const files = readdirSync(folder).filter((file) => LICENSE_FILE.test(file));
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
  const by = typeof author === 'string' ? author : author?.name;
  if (texts.length === 0 && by !== undefined) texts.push(`By ${by}`);
  if (PACKED_BY[name] !== undefined) texts.push(PACKED_BY[name]);
  return [`${name} ${version}: ${license}`, ...texts].join('\n\n');
}

/**
 * The licenses of all packages in a bundle, as one text.
 * @param modules the files of the bundle
 * @param intro its first line
 * @throws Error if a package names no license
 */
export function licensesOf(modules: readonly string[], intro = 'dist/ holds code of these packages.'): string {
  // Ids with a leading zero byte belong to the bundler.
  const folders = new Set(modules.map((module) => packageOf(module.replace(/^\0/, ''))));
  const packages = [...folders].filter((folder) => folder !== null && existsSync(join(folder, 'package.json')));
  const texts = packages.map((folder) => textOf(String(folder))).sort();
  return `${intro}\n\n${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}
