/**
 * Gives memory back to the system that this process has no use for. A process at rest does neither by itself: V8 keeps a
 * young generation of the size that the last load wanted, with garbage in it and behind it, and the C library keeps what
 * was freed between blocks that are still used.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memberOf } from './json.ts';

const SHOW = '--expose-gc';
const HIDE = '--no-expose-gc';
const EMIT = 'emitWarning';
const IS_EXPERIMENTAL = 'ExperimentalWarning';

/** Collects all garbage, and lets the heap shrink: some 60 ms for a heap of 20 MB, in one piece. */
function collectGarbage(): void {
  setFlagsFromString(SHOW);
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString(HIDE);
  if (typeof collect === 'function')
    Reflect.apply(collect, undefined, [{ type: 'major', execution: 'sync', flavor: 'last-resort' }]);
}

/** `node:ffi`, without its word that it is new: whoever runs svcd has not asked for it. Undefined where Node has none. */
function foreignFunctions(): object | undefined {
  const emitWarning = Reflect.get(process, EMIT);
  Reflect.set(process, EMIT, (...warning: unknown[]): void => {
    if (!warning.includes(IS_EXPERIMENTAL)) Reflect.apply(emitWarning, process, warning);
  });
  try {
    return process.getBuiltinModule('node:ffi');
  } finally {
    Reflect.set(process, EMIT, emitWarning);
  }
}

/** `malloc_trim` of the GNU C library; null elsewhere, and where Node has no `node:ffi`. */
function findTrim(): (() => void) | null {
  if (process.platform !== 'linux') return null;
  try {
    const ffi = foreignFunctions();
    const dlopen = memberOf(ffi, 'dlopen');
    if (typeof dlopen !== 'function') return null;
    const wanted = { malloc_trim: { arguments: ['u64'], return: 'i32' } };
    const opened: unknown = Reflect.apply(dlopen, ffi, [null, wanted]);
    const trim = memberOf(opened, 'functions', 'malloc_trim');
    if (typeof trim !== 'function') return null;
    return () => {
      Reflect.apply(trim, undefined, [0n]);
    };
  } catch {
    // Another C library.
    return null;
  }
}

let trim: ReturnType<typeof findTrim> | undefined;

/** Holds everything up meanwhile, for some 0.1 s: for moments in which nobody waits. */
export function releaseMemory(): void {
  collectGarbage();
  trim ??= findTrim();
  trim?.();
}
