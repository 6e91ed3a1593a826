/** `udx-native` is bundled. This plugin tells its JavaScript where its native addon is. */
import type { Plugin } from 'rolldown';

const BINDING = '\0udx-binding';

/**
 * In an installation: the file for this machine, by its name. The package's own search resolves a dozen names through a
 * dozen files, and is used only as a fallback, such as on systems without glibc.
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
