/** Bundles the sources and the packages that they need: what stands in dist/. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type InputOptions, type OutputOptions, type Plugin, rolldown } from 'rolldown';
import { buildPanel } from '../build-panel.ts';
import { writeClientTypes } from './client-types.ts';
import { declarationsAsData } from './declarations.ts';
import { licencesOf } from './licences.ts';
import { nodeModules } from './node-modules.ts';
import { INSTALLED, udxBinding } from './udx-binding.ts';

/**
 * The programs: each file of the bundle lies two folders deep, as those sources do that look for what is beside them
 * in the package.
 */
const ENTRIES = {
  'daemon/main': 'src/daemon/main.ts',
  'cli/main': 'src/surfaces/cli/main.ts',
};

/** What other programs import. */
const CLIENTS = {
  'client/node': { source: 'src/surfaces/client/node.ts', platform: 'node' },
  'client/browser': { source: 'src/surfaces/client/browser.ts', platform: 'browser' },
} as const;

/** What the package depends on stays a package of its own: native code. */
const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));

const LEFT_OUT = fileURLToPath(new URL('left-out.ts', import.meta.url));

const REPLACED = {
  // Its main file loads others by names that a bundler does not see.
  'jsonc-parser': fileURLToPath(new URL('../esm/main.js', import.meta.resolve('jsonc-parser'))),
  // Native code of 18 MB, of which two functions are used.
  'sodium-universal': fileURLToPath(new URL('../../src/network/dht/libsodium.ts', import.meta.url)),
  // HTTP/2, schemas of Fastify's own, requests without a network: a fourth of the program, for routes that have none of it.
  'node:http2': LEFT_OUT,
  '@fastify/ajv-compiler': LEFT_OUT,
  '@fastify/fast-json-stringify-compiler': LEFT_OUT,
  'light-my-request': LEFT_OUT,
};

/** Names stay what they are, as people send us stack traces. */
const MINIFY = { mangle: false, compress: true, codegen: { removeWhitespace: true } };

/** What the page of the API loads; it comes from a package whose other parts are not used. */
const SWAGGER = ['swagger-ui-bundle.js', 'swagger-ui.css'];

/** One character above 255 makes V8 keep the text of a file at two bytes for each. */
export function toAscii(code: string): string {
  return code.replaceAll(/[^\0-\x7F]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Whether an installation has a module that is no part of the bundle. */
function isThere(name: string): boolean {
  return isBuiltin(name) || Object.hasOwn(dependencies, name);
}

function write(directory: string, name: string, content: string): void {
  const file = join(directory, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

/** How a program is put together; `external` are the packages that stay outside. */
export function programOptions(
  input: Readonly<Record<string, string>>,
  plugins: readonly Plugin[],
  external: readonly string[],
): InputOptions {
  return {
    input,
    platform: 'node',
    external: [...external],
    resolve: { alias: REPLACED },
    plugins: [nodeModules, declarationsAsData, ...plugins],
    treeshake: { propertyReadSideEffects: false },
  };
}

/** How its code is written. */
export const programOutput: OutputOptions = { format: 'esm', minify: MINIFY };

/** Writes a program and the chunks that it loads later; returns the modules in them. */
async function writeProgram(
  directory: string,
  input: Readonly<Record<string, string>>,
  platform: 'node' | 'browser',
  minify: typeof MINIFY | false,
): Promise<string[]> {
  const bundle = await rolldown({ ...programOptions(input, [udxBinding(INSTALLED)], []), platform });
  const { output } = await bundle.generate({
    ...programOutput,
    minify,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  });
  const modules: string[] = [];
  for (const part of output) {
    if (part.type !== 'chunk') throw new Error(`the bundle has a file that is no chunk: ${part.fileName}`);
    const missing = part.imports.filter((name) => !isThere(name) && !output.some(({ fileName }) => fileName === name));
    if (missing.length > 0) throw new Error(`an installation would not have ${missing.join(', ')}`);
    write(directory, part.fileName, toAscii(part.code));
    modules.push(...part.moduleIds);
  }
  return modules;
}

/** Writes the bundle and what goes along with it into a directory. */
export async function writeBundle(directory: string): Promise<void> {
  const modules: string[] = [];
  // One by one: what both have in common would be a file for each set of programs and chunks that need it.
  for (const [name, source] of Object.entries(ENTRIES))
    modules.push(...(await writeProgram(directory, { [name]: source }, 'node', MINIFY)));
  // Programs of others meet its lines in their stack traces.
  for (const [name, { source, platform }] of Object.entries(CLIENTS))
    modules.push(...(await writeProgram(directory, { [name]: source }, platform, false)));
  writeClientTypes(join(directory, 'client'));
  const pages = new URL('static/', import.meta.resolve('@fastify/swagger-ui'));
  for (const name of SWAGGER) write(directory, `swagger/${name}`, readFileSync(new URL(name, pages), 'utf8'));
  modules.push(fileURLToPath(pages));
  modules.push(...(await buildPanel(join(directory, 'panel'))));
  write(directory, 'licences.txt', licencesOf(modules));
  // npm packs no lock under its own name, and updates install by it.
  copyFileSync('package-lock.json', join(directory, 'package-lock.json'));
}
