/** Queries and actions of components. */
import { useEffect } from 'preact/hooks';
import { call, type Input, type Name, type Output } from './api.ts';
import { type Known, QueryCache } from './cache.ts';
import { here } from './place.ts';
import { useRedraw } from './redraw.ts';

const cache = new QueryCache({
  now: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
});

/** Stops queries while the page is hidden. */
export function pauseWhenHidden(): void {
  const see = (): void => cache.see(document.visibilityState === 'visible');
  document.addEventListener('visibilitychange', see);
  see();
}

function keyOf(base: string, name: Name, input: unknown): string {
  return `${base} ${name} ${JSON.stringify(input)}`;
}

/** Repeats all queries. */
export function refresh(): void {
  cache.refresh(() => true);
}

/** Repeats queries of this node by operation, and by agent if the query names one. */
export function refreshOf(names: ReadonlySet<string>, aid: string): void {
  cache.refresh((key) => {
    const [base = '', name = ''] = key.split(' ', 2);
    return base === '' && names.has(name) && (!key.includes('"aid":') || key.includes(`"aid":"${aid}"`));
  });
}

/**
 * Calls an operation on the viewed node.
 *
 * @param base the base path of the node. Code that waits before the call must pass it, because the user may view
 *   another node meanwhile.
 */
export function perform<K extends Name>(name: K, input: Input<K>, base = here().base): Promise<Output<K>> {
  return call(base, name, input);
}

/**
 * The response of the viewed node to a read operation.
 *
 * @param everyMs interval of the query, milliseconds; 0: only when it is shown
 */
export function useQuery<K extends Name>(name: K, input: Input<K>, everyMs = 0): Known<Output<K>> {
  const { base } = here();
  const key = keyOf(base, name, input);
  const render = useRedraw();
  useEffect(() => cache.watch(key, () => call(base, name, input), everyMs, render), [key, everyMs]);
  // The value of this key is the response of this operation.
  return cache.get(key) as Known<Output<K>>;
}
