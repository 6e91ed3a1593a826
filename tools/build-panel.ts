/**
 * Builds the web panel from panel/ into dist/panel: a page, scripts and a style sheet. Script and style names carry a
 * hash of their content. `manifest.json` lists the files that the daemon serves, with their content types.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type OutputChunk, rolldown } from 'rolldown';
import { operations } from '../src/operations/index.ts';

const SOURCES = join(import.meta.dirname, '../panel');
const HASH_CHARS = 10;

/** Method and path of each operation that the panel names. */
function routes(): Record<string, string> {
  const folder = join(SOURCES, 'src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
  const words = new Set(files.flatMap((file) => readFileSync(join(folder, file), 'utf8').match(/\w+/g) ?? []));
  const all = Object.entries<{ method: string; path?: string }>(operations);
  return Object.fromEntries(
    all.flatMap(([name, { method, path }]) =>
      path === undefined || !words.has(name) ? [] : [[name, `${method} ${path}`]],
    ),
  );
}

/** All style sheets in one, without comments and extra blanks. */
function styles(): string {
  const folder = join(SOURCES, 'style');
  const text = readdirSync(folder)
    .sort()
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n');
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([{};,]) ?/g, '$1')
    .replaceAll(';}', '}');
}

/** @param together modules that form one file, even if several screens share them */
async function bundled(together: ReadonlySet<string>): Promise<readonly OutputChunk[]> {
  const bundle = await rolldown({
    input: { main: join(SOURCES, 'src/main.tsx') },
    platform: 'browser',
    transform: {
      define: { ROUTES: JSON.stringify(routes()) },
    },
  });
  const { output } = await bundle.generate({
    format: 'esm',
    minify: true,
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: { groups: [{ name: 'first', test: (id: string) => together.has(id) }] },
  });
  await bundle.close();
  return output.map((part) => {
    if (part.type !== 'chunk') throw new Error(`unexpected file in the panel's bundle: ${part.fileName}`);
    return part;
  });
}

/** The modules of the first view: the entry and its static imports. */
function firstModules(chunks: readonly OutputChunk[]): Set<string> {
  const first = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports } of first) for (const chunk of chunks) if (imports.includes(chunk.fileName)) first.add(chunk);
  return new Set([...first].filter(({ isEntry }) => !isEntry).flatMap(({ moduleIds }) => moduleIds));
}

/**
 * Writes the panel into a directory and removes its previous content.
 * @returns the bundled source files
 */
export async function buildPanel(directory: string): Promise<readonly string[]> {
  // Built twice. With automatic splitting, each set of screens that share a module gets its own file, and the first
  // view would load six.
  const output = await bundled(firstModules(await bundled(new Set())));
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const files: Record<string, string> = {};
  const write = (name: string, type: string, content: string): void => {
    files[name] = type;
    writeFileSync(join(directory, name), content);
  };
  const modules: string[] = [];
  let script = '';
  for (const part of output) {
    if (part.isEntry) script = part.fileName;
    write(part.fileName, 'text/javascript; charset=utf-8', part.code);
    modules.push(...part.moduleIds);
  }
  const css = styles();
  const style = `style-${createHash('sha256').update(css).digest('hex').slice(0, HASH_CHARS)}.css`;
  write(style, 'text/css; charset=utf-8', css);
  const page = readFileSync(join(SOURCES, 'index.html'), 'utf8');
  writeFileSync(join(directory, 'index.html'), page.replace('{{style}}', style).replace('{{script}}', script));
  writeFileSync(join(directory, 'manifest.json'), `${JSON.stringify({ files }, null, 2)}\n`);
  return modules;
}

if (import.meta.main) await buildPanel(join(import.meta.dirname, '../dist/panel'));
