/** Both programs as one module that imports only Node's modules, for the single file. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { enginePackages } from '../../src/network/transport/quic/engine.ts';
import { programOptions, programOutput, toAscii } from './bundle.ts';
import { udxBinding } from './udx-binding.ts';

const ENTRY = 'src/daemon/single-file.ts';
const ADDONS = fileURLToPath(new URL('../../src/foundation/native-addon.ts', import.meta.url));

/** Loaded as an asset instead of from a package folder. */
const beside = udxBinding(`module.exports = require(${JSON.stringify(ADDONS)}).loadAddon('udx-native');`);

/** The code, and the modules in it. */
export async function singleProgram(): Promise<{ readonly code: string; readonly modules: readonly string[] }> {
  const bundle = await rolldown(programOptions({ single: ENTRY }, [beside], []));
  const { output } = await bundle.generate({ ...programOutput, codeSplitting: false });
  const [part, ...more] = output;
  if (more.length > 0)
    throw new Error(`expected one file, but there are ${output.map((one) => one.fileName).join(', ')}`);
  return { code: toAscii(part.code), modules: part.moduleIds };
}

/** Native addons for this machine, by the names that `loadAddon` uses. */
export function nativeParts(): Readonly<Record<string, string>> {
  const require = createRequire(import.meta.url);
  const { platform, arch } = process;
  const engine = enginePackages(platform, arch)
    .map((name) => {
      try {
        return require.resolve(name);
      } catch {
        return null;
      }
    })
    .find((path) => path !== null);
  if (engine === undefined || engine === null) throw new Error(`no QUIC engine for ${platform}-${arch} is installed`);
  const udx = dirname(require.resolve('udx-native/package.json'));
  return { quic: engine, 'udx-native': join(udx, 'prebuilds', `${platform}-${arch}`, 'udx-native.node') };
}
