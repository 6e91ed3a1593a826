/**
 * Returns unused memory to the system. An idle process does not do this automatically. V8 keeps a young generation of the
 * size that the last load needed, with garbage in it. The C library keeps freed memory between blocks that are in use.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memberOf } from './json.ts';

const SHOW = '--expose-gc';
const HIDE = '--no-expose-gc';
const EMIT = 'emitWarning';
const IS_EXPERIMENTAL = 'ExperimentalWarning';

/** Runs a full garbage collection and shrinks the heap. Blocks for about 60 ms with a 20 MB heap. */
function collectGarbage(): void {
  setFlagsFromString(SHOW);
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString(HIDE);
  if (typeof collect === 'function')
    Reflect.apply(collect, undefined, [{ type: 'major', execution: 'sync', flavor: 'last-resort' }]);
}

/**
 * `node:ffi` without its experimental warning, which does not concern users of svcd. Undefined if Node does not have
 * it.
 */
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

/** `malloc_trim` of the GNU C library; null on other systems, or if Node has no `node:ffi`. */
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

/** Blocks the process for about 0.1 s, so call it only while the process is idle. */
export function releaseMemory(): void {
  collectGarbage();
  trim ??= findTrim();
  trim?.();
}
