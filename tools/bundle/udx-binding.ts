/** `udx-native` has its JavaScript in the bundle; how that finds its native part is said here. */
import type { Plugin } from 'rolldown';

const BINDING = '\0udx-binding';

/**
 * In an installation: the file for this machine, by its name. The package itself looks for it by resolving a dozen
 * names with a dozen files of code, which is left for the systems where that is needed, as those without glibc.
 */
export const INSTALLED = `
const file = 'udx-native/prebuilds/' + process.platform + '-' + process.arch + '/udx-native.node';
const itself = 'udx-native/binding';
try {
  module.exports = require(file);
} catch {
  module.exports = require(itself);
}`;

/** @param code CommonJS that exports the native part */
export function udxBinding(code: string): Plugin {
  return {
    name: 'udx-binding',
    resolveId: (name, importer) =>
      name === '../binding' && importer !== undefined && /[\\/]udx-native[\\/]lib[\\/]/.test(importer) ? BINDING : null,
    load: (id) => (id === BINDING ? code : null),
  };
}
