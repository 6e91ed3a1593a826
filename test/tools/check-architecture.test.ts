import assert from 'node:assert/strict';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { browserViolations } from '../../tools/browser-closure.ts';
import { cycles, discardedPromises, layerViolations, lostErrorListeners } from '../../tools/check-architecture.ts';
import { moduleGraph } from '../../tools/module-graph.ts';

const ROOT = 'src/operations/a.ts';
const PACKAGES = new Set(['typebox']);

function inBrowser(texts: Readonly<Record<string, string>>): readonly string[] {
  return browserViolations(moduleGraph(texts), [ROOT], PACKAGES);
}

test('code shared with browsers may import such code and the named packages', () => {
  const texts = {
    [ROOT]: "import { Type } from 'typebox';\nimport { b } from '../foundation/b.ts';\n",
    'src/foundation/b.ts': "import type { A } from '../operations/a.ts';\nexport const b = 'Buffer';\n",
    'src/foundation/c.ts': "import { createHash } from 'node:crypto';\n",
  };
  assert.deepEqual(inBrowser(texts), []);
});

test('a Node module is found at any depth, with the import chain', () => {
  const texts = {
    [ROOT]: "import { b } from '../foundation/b.ts';\n",
    'src/foundation/b.ts': "export {\n  c,\n} from './c.ts';\n",
    'src/foundation/c.ts': "import type { KeyObject } from 'node:crypto';\nimport { join } from 'path';\n",
  };
  const chain = `not for a browser: ${ROOT} → src/foundation/b.ts → src/foundation/c.ts`;
  assert.deepEqual(inBrowser(texts), [`${chain} → node:crypto`, `${chain} → node:path`]);
});

test('a package that is not allowed and a missing root are found', () => {
  assert.deepEqual(inBrowser({ [ROOT]: "import pino from 'pino';\nimport '@x/y/z.js';\n" }), [
    `not for a browser: ${ROOT} → pino`,
    `not for a browser: ${ROOT} → @x/y`,
  ]);
  assert.equal(inBrowser({}).length, 1);
});

test('Node globals are found in code, but not in comments and strings', () => {
  const used = [
    'export const a = Buffer.from(x);',
    'const env = process.env;',
    'const b: Buffer | null = null;',
    'if (globalThis.process) x();',
    "const url = 'http://x'; setImmediate(y);",
    'type E = NodeJS.ProcessEnv;',
  ];
  for (const line of used) assert.equal(inBrowser({ [ROOT]: `${line}\n` }).length, 1, line);
  const unused = [
    '// A Buffer of the process',
    '/** process\n * Buffer */',
    "const a = 'a Buffer';",
    'x.process(); aBuffer();',
  ];
  for (const line of unused) assert.deepEqual(inBrowser({ [ROOT]: `${line}\n` }), [], line);
});

test('imports that break the layers or do not resolve, and cycles, are found', () => {
  const graph = moduleGraph({
    'src/foundation/x.ts': "import { y } from '../network/y.ts';\nimport z from 'nothing';\n",
    'src/network/y.ts': "import { x } from '../foundation/x.ts';\nimport { gone } from './gone.ts';\n",
  });
  assert.deepEqual(layerViolations(graph, new Set()), [
    'foundation imports no layer above it: src/foundation/x.ts → src/network/y.ts',
    'does not resolve in production: src/foundation/x.ts → nothing',
    'does not resolve in production: src/network/y.ts → src/network/gone.ts',
  ]);
  assert.deepEqual(cycles(graph), ['cycle: src/foundation/x.ts → src/network/y.ts → src/foundation/x.ts']);
});

test('imports between adapters of the transport, and from above, are found in folders of any name', () => {
  const transport = 'src/network/transport';
  const broken = (from: string, to: string): readonly string[] =>
    layerViolations(moduleGraph({ [from]: `import { x } from '${to}';\n`, [join(dirname(from), to)]: '' }), new Set());
  const between = 'an adapter of the transport imports no other one';
  const below = 'contracts of the transport import no adapter';
  const above = 'only the composition root imports an adapter of the transport';
  const names = (from: string, to: string) => broken(from, to).map((line) => line.split(':')[0]);
  assert.deepEqual(names(`${transport}/smoke/a.ts`, '../pigeon/b.ts'), [between]);
  assert.deepEqual(names(`${transport}/a.ts`, './pigeon/b.ts'), [below]);
  for (const folder of ['network/peers', 'network/reachability', 'network/links', 'capabilities/tunnels'])
    assert.deepEqual(names(`src/${folder}/a.ts`, relative(`src/${folder}`, `${transport}/pigeon/b.ts`)), [above]);
  assert.deepEqual(names(`${transport}/pigeon/a.ts`, './b.ts'), []);
  assert.deepEqual(names(`${transport}/pigeon/a.ts`, '../b.ts'), []);
  assert.deepEqual(names('src/network/peers/a.ts', '../transport/b.ts'), []);
  assert.deepEqual(names('src/daemon/a.ts', '../network/transport/pigeon/b.ts'), []);
});

test('peers must not import links', () => {
  const graph = moduleGraph({
    'src/network/links/a.ts': "import { b } from '../peers/b.ts';\n",
    'src/network/peers/b.ts': "import type { c } from '../links/c.ts';\n",
    'src/network/links/c.ts': '',
  });
  assert.deepEqual(layerViolations(graph, new Set()), [
    'peers import no part of the network except the transport: src/network/peers/b.ts → src/network/links/c.ts',
  ]);
});

test('a discarded promise is found, a discarded synchronous call is not', () => {
  const found = (text: string) => discardedPromises(moduleGraph({ 'src/a.ts': text }));
  for (const text of [
    'server.on("x", (request) => void this.#serve(request));\n',
    'if (x) return void this.close();\n',
    'const f = () => void work().finally(leave);\n',
  ])
    assert.equal(found(text).length, 1, text);
  for (const text of [
    'type F = (a: string) => void;\nconst g: () => void = h;\n',
    'if (x) return void stream.destroy();\nreturn () => void all.delete(one);\n',
    'const f = () => void count++;\nconst g = () => detach(this.close());\n',
    'function f(a: F): () => void {\n}\n',
  ])
    assert.deepEqual(found(text), [], text);
});

test('code that may remove the last error listener of a stream is found', () => {
  const found = (text: string, file = 'src/a.ts') => lostErrorListeners(moduleGraph({ [file]: text }));
  for (const text of [
    "source.off('end', ended).off('error', broken);\n",
    "source.removeListener('error', broken);\n",
    'source.removeAllListeners();\n',
    "request\n  .once('error', reject)\n  .end();\n",
    "await once(server, 'listening');\n",
  ]) {
    assert.equal(found(text).length, 1, text);
    assert.deepEqual(found(text, 'src/foundation/stream-listeners.ts'), [], text);
  }
  for (const text of ["source.on('error', broken).off('end', ended);\n", 'await listening(server);\n'])
    assert.deepEqual(found(text), [], text);
});
