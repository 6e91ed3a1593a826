/**
 * Imports of Node's modules in a bundle. An `import` reads every export, so importing `node:http` loads a WebSocket
 * client, and `node:crypto` all of WebCrypto: 60 ms of each start. This plugin omits exports that Node creates on first
 * use. The build fails if a module imports one of these by name.
 */
import { isBuiltin } from 'node:module';
import type { Plugin } from 'rolldown';

const PREFIX = '\0node:';
/** The bundler's own code imports it, which all else needs. */
const OF_THE_BUNDLER = 'node:module';
const NAME = /^[A-Za-z_$][\w$]*$/;

/** The exports of a module, except exports that Node creates on first use. */
function exportsOf(name: string): readonly string[] {
  const module: unknown = process.getBuiltinModule(`node:${name}`);
  if (typeof module !== 'object' && typeof module !== 'function') throw new Error(`this Node has no ${name}`);
  const plain = Object.entries(Object.getOwnPropertyDescriptors(module ?? {})).filter(
    ([, one]) => one.get === undefined,
  );
  return plain.map(([key]) => key).filter((key) => NAME.test(key) && key !== 'default');
}

export const nodeModules: Plugin = {
  name: 'node-modules',
  resolveId: (name, _importer, { kind }) =>
    kind === 'import-statement' && isBuiltin(name) && name !== OF_THE_BUNDLER
      ? `${PREFIX}${name.replace(/^node:/, '')}`
      : null,
  load: (id) => {
    if (!id.startsWith(PREFIX)) return null;
    const name = id.slice(PREFIX.length);
    const names = exportsOf(name);
    return `const it = process.getBuiltinModule('node:${name}');\nexport default it;\n${names.map((key) => `const _${key} = it.${key};\nexport { _${key} as ${key} };\n`).join('')}`;
  },
};
