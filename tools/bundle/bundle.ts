/** Bundles the sources and the packages that they need into dist/. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type InputOptions, type OutputOptions, type Plugin, rolldown } from 'rolldown';
import { buildPanel } from '../build-panel.ts';
import { writeClientTypes } from './client-types.ts';
import { declarationsAsData } from './declarations.ts';
import { licensesOf } from './licenses.ts';
import { nodeModules } from './node-modules.ts';
import { INSTALLED, udxBinding } from './udx-binding.ts';

/**
 * The programs. Bundled files are two folders deep, like the sources, so relative paths inside the package stay
 * correct.
 */
const ENTRIES = {
  'daemon/main': 'src/daemon/main.ts',
  'cli/main': 'src/surfaces/cli/main.ts',
};

/** Entry points that other programs import. */
const CLIENTS = {
  'client/node': { source: 'src/surfaces/client/node.ts', platform: 'node' },
  'client/browser': { source: 'src/surfaces/client/browser.ts', platform: 'browser' },
} as const;

/** Dependencies that stay packages: native code. */
const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));

const LEFT_OUT = fileURLToPath(new URL('left-out.ts', import.meta.url));

const REPLACED = {
  // Its main file loads modules by names that bundlers cannot resolve.
  'jsonc-parser': fileURLToPath(new URL('../esm/main.js', import.meta.resolve('jsonc-parser'))),
  // HTTP/2, which none of our servers offers.
  'node:http2': LEFT_OUT,
};

/** Names are not minified, so that stack traces in reports are readable. */
const MINIFY = { mangle: false, compress: true, codegen: { removeWhitespace: true } };

/** Files of the API page. The rest of their package is not used. */
const SWAGGER = ['swagger-ui-bundle.js', 'swagger-ui.css'];

/** V8 stores a file with one character above 255 at two bytes per character. */
export function toAscii(code: string): string {
  return code.replaceAll(/[^\0-\x7F]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** True for modules that an installation provides outside the bundle. */
function isInstalled(name: string): boolean {
  return isBuiltin(name) || Object.hasOwn(dependencies, name);
}

function write(directory: string, name: string, content: string): void {
  const file = join(directory, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

/** Input options of a program. `external` packages are not bundled. */
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

/** Output options of a program. */
export const programOutput: OutputOptions = { format: 'esm', minify: MINIFY };

/** Writes a program and its lazy chunks. Returns the modules in them. */
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
    if (part.type !== 'chunk') throw new Error(`unexpected file in the bundle: ${part.fileName}`);
    const missing = part.imports.filter(
      (name) => !isInstalled(name) && !output.some(({ fileName }) => fileName === name),
    );
    if (missing.length > 0)
      throw new Error(`not available in an installation: ${missing.join(', ')}. Bundle it or add it to dependencies.`);
    write(directory, part.fileName, toAscii(part.code));
    modules.push(...part.moduleIds);
  }
  return modules;
}

/** Writes the bundle and its companion files into a directory. */
export async function writeBundle(directory: string): Promise<void> {
  const modules: string[] = [];
  // Separately: together, each set of modules that several programs and chunks share would become a file.
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
  write(directory, 'licenses.txt', licensesOf(modules));
  // npm packs no lock under its own name, and updates install by it.
  copyFileSync('package-lock.json', join(directory, 'package-lock.json'));
}
